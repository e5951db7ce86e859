"""Work and bits of a FedLPS round; numbers of Table I by hand."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from edgesim.seeds import Seeds
from fl.accounting import Accounting
from fl.contracts import Grant
from fl.data.samples import Federated
from fl.models.architectures import build
from fl.task import LearningTask
from tests.fl.conftest import Bench, view_of

HALF = {"ratio": "fixed", "width": 0.5}


def sized(view, capability, g=0):
    return replace(view, capability=np.asarray(capability, dtype=float), g=g)


def jobs(method, state, view, devices):
    return [method.configure(state, view, Grant(int(k), 0.1, 0.0, 1.0, 1.0)) for k in devices]


@pytest.fixture(scope="module")
def mnist_sized():
    """FedLPS' MNIST network and 180 samples per device, without the pictures."""
    y = np.arange(180) % 10
    x = np.zeros((180, 1, 28, 28), dtype=np.float32)
    data = Federated(
        y,
        y,
        lambda: (x, x),
        (1, 28, 28),
        [np.arange(180)] * 5,
        [np.arange(9)] * 5,
        tuple("0123456789"),
    )
    twice = Accounting(mask_overhead="bitmap", backward="twice", count_biases=True)
    return Bench(LearningTask(build("fedlps-cnn", (1, 28, 28), 10), data, 32, Seeds(0), twice))


LEVELS = {1: (2788.128, 698_880), 0.5: (1405.728, 358_880), 0.25: (672.13, 183_360)}
LEVELS |= {0.125: (301.65, 97_120), 0.0625: (203.96, 58_400)}


COST_OF_A_ROUND = """
import sys
import numpy as np
from fl.contracts import View
from edgesim.seeds import Seeds
from fl.data.datasets import load, spread
from fl.method_base.method import bind
from fl.methods import resolve
from fl.models.architectures import build
from fl.task import LearningTask
data, ones = spread(load("digits"), 4, Seeds(0)), np.ones(4)
task = LearningTask(build("digits-cnn", (1, 8, 8), 10), data, 16, Seeds(0))
method = bind(resolve("fedlps"), task, {"xi": 10})
view = View(0, 0.0, np.arange(4), ones, ones, data.samples, np.inf, ones, ones)
assert (method.demand(None, view, np.arange(4)).bits_prunable > 0).all()
print("torch" in sys.modules)
"""


@pytest.mark.parametrize("z", LEVELS)
def test_work_and_bits_of_a_round(mnist_sized, z):
    method = mnist_sized.method("fedlps", ratio="capability", local_steps=30)
    view = sized(view_of(mnist_sized.task), [z] * 5)
    (job,) = jobs(method, method.start(), view, [2])
    mega_flops, bits_up = LEVELS[z]
    assert job.stages[0].work.flops / 1e6 == pytest.approx(mega_flops, abs=0.01)
    assert job.payload.bits_down == 698_880
    assert job.payload.bits_up == bits_up + 80  # the pattern, 1 bit per unit
    demand = method.demand(method.start(), view, np.array([2]))
    assert (1 - demand.rho_min) * demand.work_prunable.flops == pytest.approx(
        job.stages[0].work.flops
    )
    assert (1 - demand.rho_min) * demand.bits_prunable == pytest.approx(job.payload.bits_up)
    assert demand.bits_down == 698_880


@pytest.mark.parametrize(("z", "entropy"), [(1, 0.0), (0.5, 80.0), (0.25, 63.26864724)])
def test_the_pattern_at_its_entropy(mnist_sized, z, entropy):
    """80 units: all, 40, and 2 + 5 + 12 = 19 of them, 19 log2(80 / 19) + 61 log2(80 / 61) bit."""
    task = mnist_sized.task
    coded = Bench(replace(task, accounting=replace(task.accounting, mask_overhead="entropy")))
    method = coded.method("fedlps", ratio="capability", local_steps=30)
    (job,) = jobs(method, method.start(), sized(view_of(coded.task), [z] * 5), [2])
    assert job.payload.bits_up == pytest.approx(LEVELS[z][1] + entropy, rel=1e-12)


@pytest.mark.slow
def test_the_cost_of_a_round_is_known_without_torch():
    """`edgesim check` answers at once because of this."""
    done = subprocess.run(
        [sys.executable, "-c", COST_OF_A_ROUND], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_mean_work_of_the_five_levels(mnist_sized):
    assert np.mean(list(LEVELS)) == 0.3875
    method = mnist_sized.method("fedlps", ratio="capability", local_steps=30)
    view = sized(view_of(mnist_sized.task), list(LEVELS))
    flops = [job.stages[0].work.flops / 1e6 for job in jobs(method, method.start(), view, range(5))]
    assert np.mean(flops) == pytest.approx(1074.3, abs=0.05)
    assert np.mean(flops) / 2788.128 == pytest.approx(0.3853, abs=1e-4)


def test_gradients_of_all_scores_are_charged(mnist_sized):
    """Forward and gradients by activations on the half model, gradients by weights dense."""
    view = view_of(mnist_sized.task)
    method = mnist_sized.method("fedlps", local_steps=30, q_grad="all", **HALF)
    (job,) = jobs(method, method.start(), view, [0])
    assert job.stages[0].work.flops / 1e6 == pytest.approx((2 * 1405.728 + 2788.128) / 3)


def test_dense_gradients_by_weights_are_charged_in_the_first_layer_too(bench):
    """Counted gradients: by the weights of all layers, dense; by activations of all but the first.

    Of the digits' net, half of its units kept with the weights that lead into them.
    """
    method = bench.method("fedlps", local_steps=30, q_grad="all", **HALF)
    (job,) = jobs(method, method.start(), view_of(bench.task), [0])
    uses = {"conv1": 64 * 72, "conv2": 16 * 1152, "linear1": 64 * 64, "linear2": 640}
    half = {name: macs / (1 if name == "linear2" else 2) for name, macs in uses.items()}
    by_activations = sum(half.values()) - half["conv1"]
    macs = sum(half.values()) + by_activations + sum(uses.values())
    assert job.stages[0].work.flops == 2 * macs * 30 * bench.task.batch(0)


def test_dropped_units_save_quadratically_in_structural_mode(mnist_sized):
    method = mnist_sized.method("fedlps", local_steps=30, prune_mode="structural", **HALF)
    (job,) = jobs(method, method.start(), view_of(mnist_sized.task), [0])
    weights = 5 * 25 + 10 * 5 * 25 + 25 * 160 + 10 * 25 + (5 + 10 + 25 + 10)
    assert job.payload.bits_up == 32 * weights + 80
    macs = 5 * 25 * 576 + 10 * 125 * 64 + 25 * 160 + 10 * 25
    biases = 5 * 576 + 10 * 64 + 25 + 10
    assert job.stages[0].work.flops == pytest.approx(3 * 32 * 30 * (2 * macs + biases))
