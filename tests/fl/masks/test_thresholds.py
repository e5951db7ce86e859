"""Rows, thresholds and densities of SpaFL."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fl.contracts import Job
from fl.errors import MethodError
from fl.masks.threshold_training import Pruner
from fl.masks.thresholds import ThresholdRows, carriers
from fl.models.architectures import Architecture, build
from fl.models.layers.learned_layers import Conv, Embedding, Linear, Lstm
from fl.models.layers.residual_block import Residual
from fl.models.layers.weightless_layers import Flatten, Last, MeanPool, Relu
from fl.training import local_sgd as local
from tests.fl.two_neurons import ROWS, STEP, TAU, bench_of, flat, rows_of


def some(count, of):
    return np.arange(of) < count


def test_rows_of_a_new_lenet_lie_far_above_small_thresholds(lenet):
    """E |w| = a / 2 of U(-a, a), a = 1 / sqrt(n_in), where n_in = 25, 500, 800, 500."""
    layout = lenet.task.layout
    rows = ThresholdRows(carriers(layout), layout.size)
    means = rows.split(rows.means(lenet.method("fedavg").start().w).numpy())
    expected = [0.1, 0.02236, 0.01768, 0.02236]
    # n_out rows of n_in weights, each uniform: a standard error of E |w| / sqrt(3 n_in n_out)
    for layer, mu in zip(means, expected, strict=True):
        weights = len(layer) * (0.5 / mu) ** 2
        assert layer.mean() == pytest.approx(mu, rel=4 / (3 * weights) ** 0.5)


def test_a_row_lives_where_its_mean_is_above_the_threshold_and_not_at_equality():
    rows = rows_of(Linear(3, 2, bias=False), shape=(3,))
    w = flat(ROWS, TAU)
    assert rows.means(w).tolist() == pytest.approx([0.3, 0.04])
    assert rows.alive(w).tolist() == [True, False]
    assert rows.masked(w).tolist() == [*w[:3].tolist(), 0, 0, 0, *w[6:].tolist()]
    for dead, tau in (([0.5, -0.25, 0.0], 0.25), ([0, 0, 0], 0.0)):
        w = flat([dead, [1, 1, 1]], [tau, 0.5]).requires_grad_()
        assert rows.alive(w).tolist() == [False, True]
        computes = Pruner(rows).effective(w)
        assert computes.tolist() == [0, 0, 0, 1, 1, 1]
        (gradient,) = torch.autograd.grad(computes.sum(), [w])
        assert gradient[:6].tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("row", "change", "moved"),
    [
        ([0.4, 0.4, -0.2, 0.2], 0.08, -0.02),
        ([0.4, 0.4, -0.2, 0.2], -0.08, +0.02),
        ([-0.4, -0.4, 0.2, -0.2], 0.08, +0.02),
        ([-0.4, -0.4, 0.2, -0.2], -0.08, -0.02),
        ([0.5, -0.5, 0.25, -0.25], 0.08, 0.0),
        ([0.4, 0.4, -0.2, 0.2], 0.0, 0.0),
    ],
)
def test_importance_update(row, change, moved):
    rows = rows_of(Linear(4, 1, bias=False), shape=(4,))
    w = flat(row, [0.3])
    after = rows.nudged(w, torch.tensor([change]))
    assert (after - w)[:4].tolist() == pytest.approx([moved] * 4, abs=1e-7)
    assert after[4] == w[4]


@pytest.mark.parametrize(("divisor", "filter_moves"), [("n_in", 0.01), ("kernel_area", 0.03)])
def test_the_released_code_divides_a_filter_by_its_kernel_area(divisor, filter_moves):
    """Three channels of 2x2: n_in = 12, k h = 4; a dense layer is divided by n_in either way."""
    layers = Conv(3, 1, 2, 0, bias=False), Flatten(), Linear(9, 2, bias=False)
    tiny = bench_of(layers, np.zeros((1, 3, 4, 4)), [0], [[0]], 1)
    method = tiny.method("spafl", importance_divisor=divisor)
    own = torch.full((12 + 18 + 3,), 0.5)
    state = replace(
        method.start(), local={0: own}, memo={"change": torch.tensor([0.12, 0.09, 0.0])}
    )
    moved = own - method.received(state, 0)
    assert moved[:30].tolist() == pytest.approx(
        [filter_moves] * 12 + [0.01] * 9 + [0.0] * 9, abs=1e-7
    )


def test_densities(lenet):
    rows, macs = lenet.method("spafl", local_epochs=5).rows, lenet.task.architecture.macs
    alive = np.concatenate([some(10, 20), some(25, 50), some(100, 500), some(10, 10)])
    density = rows.densities(macs, alive)
    assert list(density) == ["layer_mean", "params", "macs", "structural"]
    assert list(density.values()) == pytest.approx([0.55, 0.2271, 0.4488, 0.2551], abs=5e-5)
    assert list(rows.densities(macs, np.ones(580, dtype=bool)).values()) == [1.0] * 4


def test_a_unit_of_a_residual_block_lives_where_one_of_its_tensors_feeds_it():
    """Filters of 2, 2 (in the block) and 2 (added to the first two); side 4: 16 uses of each
    weight.

    Multiply-adds: 9 x 2 x 16 = 288, 36 x 16 = 576, 576; output 2 x 2 = 4. Channel 0 is dead in the
    first and the last convolution, so that half of what the block's first one and the output see is
    gone.
    """
    layers = Conv(1, 2, 3, 1, bias=False), Residual(2, 2), MeanPool(), Linear(2, 2, bias=False)
    architecture = Architecture("tiny", (1, 4, 4), 2, layers)
    rows = ThresholdRows(carriers(architecture.layout), architecture.layout.size)
    dead = np.array([0, 1, 1, 1, 0, 1, 1, 1], dtype=bool)
    total = 288 + 576 + 576 + 4
    assert rows.densities(architecture.macs, dead)["structural"] == pytest.approx(
        (144 + 288 + 288 + 2) / total
    )
    fed = np.array(
        [0, 1, 1, 1, 1, 1, 1, 1], dtype=bool
    )  # the shortcut carries the last one's channel 0
    assert rows.densities(architecture.macs, fed)["structural"] == pytest.approx(
        (144 + 576 + 576 + 4) / total
    )


def test_a_layer_without_a_living_row_begins_anew():
    layers = Linear(2, 2, "features", bias=False), Relu(), Linear(2, 2, bias=False)
    tiny = bench_of(layers, [[1.0, 2.0], [2.0, -1.0]], [0, 1], [[0, 1]], 2)
    method = tiny.method("spafl", **STEP | {"lr": 1e-6})
    w = flat([[0.1, 0.2], [0.1, -0.1], [0.4, -0.6], [0.5, 0.1]], [0.5, 0.2, 0.1, 0.4])
    (phase,) = method.local_update(method.start(), 0, w, None)
    done = local.run(tiny.task, Job(0, 0, (phase,), None, method.payload(0.0), 0.0))
    assert done.collected.tolist() == [1, 1, 1, 0]  # in the first forward pass
    assert done.w[8:].tolist() == pytest.approx([0.0, 0.0, 0.1, 0.4], abs=1e-5)
    assert method.rows.alive(done.w).tolist() == [True, True, True, False]


def test_a_layer_begins_anew_at_one_living_row_of_a_hundred_and_its_thresholds_stand_still():
    rows = rows_of(Linear(1, 100, "features", bias=False), Linear(100, 200, bias=False), shape=(1,))
    w = torch.cat([torch.full((100,), 0.1), torch.full((20_000,), 0.1), torch.full((300,), 0.2)])
    w[-300] = 0.05  # one row of the first hundred lives
    w[-200:-197] = 0.05  # three of the other two hundred
    velocity = torch.ones(len(w))
    Pruner(rows).project(w, velocity)
    assert (w[-300:-200] == 0).all() and (velocity[-300:-200] == 0).all()
    assert torch.equal(w[-200:], torch.tensor([0.05] * 3 + [0.2] * 197))
    assert (velocity[:-300] == 1).all() and (velocity[-200:] == 1).all()


def test_the_output_layer_can_be_left_out(bench):
    whole, part = bench.method("spafl"), bench.method("spafl", prune_output=False)
    assert whole.layout.size - part.layout.size == 10
    assert [slot.name for slot in part.layout.slots if slot.kind == "threshold"] == [
        "conv1.weight.threshold",
        "conv2.weight.threshold",
        "linear1.weight.threshold",
    ]


@pytest.mark.parametrize(
    ("model", "shape", "classes", "output", "count"),
    [
        ("lenet5-caffe", (1, 28, 28), 10, True, 580),
        ("spafl-conv4", (3, 32, 32), 10, True, 650),
        (
            "resnet18",
            (3, 32, 32),
            100,
            False,
            4800,
        ),  # shortcuts included, final layer not, as in the released code
        ("resnet18", (3, 32, 32), 100, True, 4900),
    ],
)
def test_thresholds_of_the_papers_models(model, shape, classes, output, count):
    assert (
        sum(slot.shape[0] for slot in carriers(build(model, shape, classes).layout, output))
        == count
    )


def test_an_embedding_and_an_lstm_have_no_thresholds():
    layout = Architecture(
        "text", (4,), 5, (Embedding(5, 3), Lstm(3, 2), Last(), Linear(2, 5))
    ).layout
    assert [slot.name for slot in carriers(layout)] == ["linear1.weight"]


def test_a_model_without_rows_to_prune_is_refused(neurons):
    with pytest.raises(MethodError, match="needs convolutions or linear layers"):
        neurons.method("spafl", prune_output=False)
