"""SpaFL and Local: the checks of the digest (spafl.md, section 12) by number; what travels, stays and is charged."""

from dataclasses import dataclass, replace
from math import exp
from typing import Any

import numpy as np
import pytest
import torch

from edgesim.seeds import Seeds
from fl.accounting import Accounting
from fl.contracts import Grant, Job, Trained
from fl.data.datasets import Federated
from fl.errors import MethodError
from fl.executors.trainer import Trainer
from fl.masks.threshold_training import SURROGATES, Pruner
from fl.masks.thresholds import Rows, carriers
from fl.method_base.method import State, check
from fl.methods import resolve
from fl.methods.local import Local
from fl.models.architectures import Architecture, build
from fl.models.layers import Conv, Embedding, Linear, Lstm, Residual
from fl.models.stateless_layers import Flatten, Last, MeanPool, Relu
from fl.task import LearningTask
from fl.training import local_sgd as local
from tests.fl.conftest import Bench, view_of

ROWS = [[0.5, -0.1, 0.3], [0.05, -0.05, 0.02]]  # mu = 0.3, 0.04
TAU = [0.2, 0.05]
G = [[0.2, -0.4, 0.1], [0.3, 0.1, -0.2]]  # dF / d(masked weight)
ALPHA = 0.002
LR = 0.1
CALM = {"momentum": 0.0, "lr": LR, "threshold_penalty": ALPHA}
STEP = CALM | {"local_steps": 1}
QUICK = {"lr": 0.05, "local_epochs": 1}


def rows_of(*layers, shape=(1, 8, 8), output=True):
    layout = Architecture("tiny", shape, 2, layers).layout
    return Rows(carriers(layout, output), layout.size)


def flat(weights, tau):
    return torch.cat(
        [
            torch.tensor(weights, dtype=torch.float32).flatten(),
            torch.tensor(tau, dtype=torch.float32),
        ]
    )


def data_of(x, y, parts, classes):
    """Training and test samples x [N, ...], y [N]; device k has those of parts[k]."""
    x, y = np.asarray(x, dtype=np.float32), np.asarray(y, dtype=np.int64)
    parts = [np.asarray(part) for part in parts]
    return Federated(
        y, y, lambda: (x, x), x.shape[1:], parts, parts, tuple(map(str, range(classes)))
    )


def bench_of(layers, x, y, parts, batch_size, classes=2, accounting=None):
    data = data_of(x, y, parts, classes)
    architecture = Architecture("tiny", data.input_shape, classes, tuple(layers))
    return Bench(LearningTask(architecture, data, batch_size, Seeds(0), accounting or Accounting()))


@pytest.fixture(scope="module")
def neurons():
    """Two neurons without a bias that see the three unit vectors, in one batch of one device."""
    return bench_of((Linear(3, 2, bias=False),), np.eye(3), [0, 1, 2], [[0, 1, 2]], 3, classes=3)


def with_gradient(phase, g=G):
    """The phase on the loss whose gradient by the masked weights is g, whatever the weights: sum_ij g_ij w_ij."""
    columns = torch.tensor(g).T
    return replace(phase, criterion=lambda logits, y: (logits * columns[y]).sum())


def trained(bench, method, w, g=G):
    """What one round makes of w on device 0."""
    phases = method.local_update(method.start(), 0, w, None)
    job = Job(
        0, 0, tuple(with_gradient(phase, g) for phase in phases), None, method.payload(0.0), 0.0
    )
    return local.run(bench.task, job)


@dataclass(frozen=True)
class Done:
    """An update that is there already."""

    job: Any
    trained: Trained

    def result(self):
        return self.trained


def returned(method, w, k):
    mask = torch.ones(len(w), dtype=torch.bool)
    return Done(Job(k, 0, (), None, method.payload(0.0), 0.0), Trained(w, mask, 0.0))


# --- checks 1 to 4: mask, gradient, step, importance update ----------------------------------------------------------


def test_check_1_a_row_lives_where_its_mean_is_above_the_threshold_and_not_at_equality():
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
    ("mask_path", "weights"),
    [
        (True, [[0.25667, -0.45667, 0.15667], [0.002, -0.002, 0.002]]),
        (False, [[0.2, -0.4, 0.1], [0, 0, 0]]),
    ],
)
def test_check_2_gradients(mask_path, weights):
    rows = rows_of(Linear(3, 2, bias=False), shape=(3,))
    w = flat(ROWS, TAU).requires_grad_()
    loss = (Pruner(rows, mask_path=mask_path).effective(w) * torch.tensor(G).flatten()).sum()
    (gradient,) = torch.autograd.grad(loss, [w])
    assert gradient[6:].tolist() == pytest.approx([-0.17, -0.006], abs=1e-7)
    assert gradient[:6].tolist() == pytest.approx(np.ravel(weights), abs=5e-6)


def test_check_3_a_step(neurons):
    method = neurons.method("spafl", **STEP)
    done = trained(neurons, method, flat(ROWS, TAU))
    assert done.w[6:].tolist() == pytest.approx([0.2171637, 0.0507902], abs=1e-7)
    assert done.w[:6].tolist() == pytest.approx([0.48, -0.06, 0.29, 0.05, -0.05, 0.02], abs=1e-7)
    assert done.collected.tolist() == [1, 0]


def test_a_step_with_the_path_through_the_mean(neurons):
    done = trained(neurons, neurons.method("spafl", mask_path=True, **STEP), flat(ROWS, TAU))
    moved = [[0.025667, -0.045667, 0.015667], [0.0002, -0.0002, 0.0002]]
    assert done.w[:6].tolist() == pytest.approx((np.array(ROWS) - moved).ravel(), abs=1e-6)


def test_a_step_with_the_surrogate_of_the_other_programs_moves_thresholds_by_the_penalty_alone(
    neurons,
):
    done = trained(
        neurons, neurons.method("spafl", surrogate="inverted-clip", **STEP), flat(ROWS, TAU)
    )
    assert done.w[6:].tolist() == pytest.approx(
        [tau + LR * ALPHA * exp(-tau) for tau in TAU], abs=1e-8
    )


def test_a_second_step_has_momentum(neurons):
    """g does not depend on w, so the second step is 1.9 times the first on the weights of the living row."""
    method = neurons.method("spafl", **STEP | {"momentum": 0.9, "local_steps": 2})
    done = trained(neurons, method, flat(ROWS, TAU))
    assert done.w[:3].tolist() == pytest.approx(
        [0.5 - 2.9 * 0.02, -0.1 + 2.9 * 0.04, 0.3 - 2.9 * 0.01], abs=1e-6
    )


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
def test_check_4_importance_update(row, change, moved):
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


# --- checks 5 to 7: the server, dead filters, thresholds that stay ---------------------------------------------------


def test_check_5_the_mean_of_the_thresholds_whatever_the_order(neurons):
    method = neurons.method("spafl")
    state = replace(method.start(), w=flat(ROWS, [0.05, 0.05]))
    ends = [
        returned(method, flat(ROWS, [0.1, 0.5]), 0),
        returned(method, flat(np.ones((2, 3)), [0.3, 0.0]), 1),
    ]
    after, turned = (
        method.aggregate(state, view_of(neurons.task), updates) for updates in (ends, ends[::-1])
    )
    assert after.w[6:].tolist() == pytest.approx([0.2, 0.25], abs=1e-7)
    assert after.memo["change"].tolist() == pytest.approx([0.15, 0.2], abs=1e-7)
    assert torch.equal(after.w, turned.w)
    assert torch.equal(after.w[:6], state.w[:6])


def test_where_nobody_arrives_thresholds_stay_and_their_change_is_0(bench):
    method = bench.method("spafl", **QUICK)
    state = bench.round(method, method.start())
    assert state.memo["change"].abs().sum() > 0
    after = method.aggregate(state, view_of(bench.task), [])
    assert torch.equal(after.w, state.w) and after.memo["change"].abs().sum() == 0 and after.g == 2


def test_check_6_a_pruned_neuron_in_front_of_relu_moves_by_the_penalty_alone():
    layers = Linear(2, 2, "features", bias=False), Relu(), Linear(2, 2, bias=False)
    tiny = bench_of(layers, [[1.0, 2.0], [2.0, -1.0]], [0, 1], [[0, 1]], 2)
    method = tiny.method("spafl", **STEP)
    w = flat([[0.1, 0.2], [0.7, -0.3], [0.4, -0.6], [0.5, 0.1]], [0.5, 0.1, 0.1, 0.4])
    (phase,) = method.local_update(method.start(), 0, w, None)
    done = local.run(tiny.task, Job(0, 0, (phase,), None, method.payload(0.0), 0.0))
    alone = [LR * ALPHA * exp(-tau) for tau in (0.5, 0.1, 0.1, 0.4)]
    moved = (done.w - w)[8:].tolist()
    assert done.collected.tolist() == [0, 1, 1, 0]
    assert moved[0] == pytest.approx(alone[0], abs=3e-8)
    assert abs(moved[1] - alone[1]) > 1e-3  # it lives
    assert (
        abs(moved[3] - alone[3]) > 1e-3
    )  # no ReLU behind the output layer: its pruned rows have gradients
    assert torch.equal(done.w[:2], w[:2])


def test_check_7_with_thresholds_at_0_the_weights_take_ordinary_sgd_steps_bit_for_bit(bench):
    settings = {"lr": 0.05, "momentum": 0.9, "local_epochs": 2}
    method, fedavg = bench.method("spafl", **settings), bench.method("fedavg", **settings)
    state = method.start()
    (job,), (plain,) = (
        bench.jobs(method, state, devices=[1]),
        bench.jobs(fedavg, fedavg.start(), devices=[1]),
    )
    weights = torch.from_numpy(method.layout.where(lambda slot: slot.kind != "threshold"))
    done = local.run(bench.task, replace(job, phases=(replace(job.phases[0], mask=weights),)))
    expected = local.run(bench.task, plain).w
    size = bench.task.layout.size
    assert torch.equal(done.w[:size], expected) and not torch.equal(expected, state.w[:size])
    assert (done.w[size:] == 0).all()


# --- checks 8 to 11: bits, FLOPs, densities, layers that died --------------------------------------------------------


@pytest.fixture(scope="module")
def lenet():
    """LeNet-5-Caffe on 100 devices of 600 pictures each, batches of 64; nobody looks at the pictures."""
    labels = np.zeros(60_000, dtype=np.int64)
    parts = list(np.arange(60_000).reshape(100, 600))
    data = Federated(
        labels, labels, lambda: (None, None), (1, 28, 28), parts, parts, tuple("0123456789")
    )
    return Bench(
        LearningTask(
            build("lenet5-caffe", (1, 28, 28), 10), data, 64, Seeds(0), Accounting(backward="twice")
        )
    )


def bits_of(bench, name, rounds=500, **params):
    """Bits of so many rounds like the first, of ten devices, both ways."""
    method = bench.method(name, participants=10, **params)
    state = method.start()
    jobs = bench.jobs(method, state, devices=method.select(state, view_of(bench.task)))
    assert len(jobs) == 10
    return rounds * sum(job.payload.bits_down + job.payload.bits_up for job in jobs)


@pytest.mark.parametrize(
    ("name", "params", "bits"),
    [
        ("spafl", {"delta": "broadcast"}, 185_600_000),  # Table 2
        ("spafl", {"delta": "since_last"}, 185_600_000),
        ("spafl", {"importance_update": False}, 185_600_000),
        ("spafl", {"frozen_weights": True}, 185_600_000),
        ("spafl", {}, 278_400_000),
        ("spafl", {"delta": "broadcast", "threshold_bits": 8}, 46_400_000),
        ("local", {}, 0),
        ("fedavg", {"local_epochs": 5}, 137_760_000_000),  # the paper prints 133.8 Gbit
    ],
)
def test_check_8_traffic(lenet, name, params, bits):
    assert bits_of(lenet, name, **params) == bits


def test_check_9_flops(lenet):
    """3 passes, 5 epochs, 600 samples, 2,293,000 multiply-adds; and the last term of (50), 1.5 d per epoch."""
    method = lenet.method("spafl", local_epochs=5)
    (stage,) = method.stages(0, 0.0)
    cost = method.rows.cost(lenet.task.architecture, np.ones(4), lenet.task.accounting)
    assert (
        lenet.task.accounting.work(cost, method.steps(0), method.samples_per_step(0)).flops
        == 2 * 20_637_000_000
    )
    assert stage.work.flops == 2 * (20_637_000_000 + 1.5 * 430_500 * 5)
    assert stage.work.weight_steps == 430_500 * 50
    fedavg = lenet.method("fedavg", local_epochs=5)
    assert fedavg.stages(0, 0.0)[0].work.flops == 2 * 20_637_000_000


def some(count, of):
    return np.arange(of) < count


def test_check_10_densities(lenet):
    rows, macs = lenet.method("spafl", local_epochs=5).rows, lenet.task.architecture.macs
    alive = np.concatenate([some(10, 20), some(25, 50), some(100, 500), some(10, 10)])
    density = rows.densities(macs, alive)
    assert list(density) == ["layer_mean", "params", "macs", "structural"]
    assert list(density.values()) == pytest.approx([0.55, 0.2271, 0.4488, 0.2551], abs=5e-5)
    assert list(rows.densities(macs, np.ones(580, dtype=bool)).values()) == [1.0] * 4


def test_a_unit_of_a_residual_block_lives_where_one_of_its_tensors_feeds_it():
    """Filters of 2, 2 (in the block) and 2 (added to the first two); side 4: 16 uses of each weight.

    Multiply-adds: 9 x 2 x 16 = 288, 36 x 16 = 576, 576; output 2 x 2 = 4. Channel 0 is dead in the first and the last
    convolution, so that half of what the block's first one and the output see is gone.
    """
    layers = Conv(1, 2, 3, 1, bias=False), Residual(2, 2), MeanPool(), Linear(2, 2, bias=False)
    architecture = Architecture("tiny", (1, 4, 4), 2, layers)
    rows = Rows(carriers(architecture.layout), architecture.layout.size)
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


def test_check_11_a_layer_without_a_living_row_begins_anew():
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


# --- checks 12 to 14: what stays, what travels, what always holds ----------------------------------------------------


def part_of_round(bench, method, state, devices, received=None):
    """A round of some devices, of which only ``received`` are in time."""
    updates = Trainer(bench.task).submit(bench.jobs(method, state, devices=devices))
    arrived = updates if received is None else [u for u in updates if u.job.device in received]
    return method.aggregate(method.retain(state, updates), view_of(bench.task, state.g), arrived)


def test_check_12_who_does_not_take_part_is_left_alone(bench):
    method = bench.method("spafl", **QUICK)
    first = part_of_round(bench, method, method.start(), [0, 1])
    second = part_of_round(bench, method, first, [1, 3])
    assert sorted(first.local) == [0, 1] and sorted(second.local) == [0, 1, 3]
    assert torch.equal(second.local[0], first.local[0]) and not torch.equal(
        second.local[1], first.local[1]
    )
    assert torch.equal(
        method.personalise(second, 2), method.start().w
    )  # never asked: as initialised, nothing pruned
    assert (
        method.measures(first)["never_sampled"] == 2
        and method.measures(second)["never_sampled"] == 1
    )


def test_check_13_weights_never_travel(bench):
    method = bench.method("spafl", **QUICK)
    state = method.start()
    count, size = 8 + 16 + 64 + 10, bench.task.layout.size
    (job,) = bench.jobs(method, state, devices=[2])
    done = Trainer(bench.task).submit([job])[0].result()
    sent = method.encode(job, done)
    assert sent.travels[size:].all() and not sent.travels[:size].any()
    assert job.payload.bits_up == count * 32 and job.payload.bits_down == 2 * count * 32
    scrambled = done.w.clone()
    scrambled[:size] = 9.0
    ends = [
        method.aggregate(state, view_of(bench.task), [returned(method, w, 2)])
        for w in (done.w, scrambled)
    ]
    assert torch.equal(ends[0].w[size:], ends[1].w[size:]) and torch.equal(
        ends[0].w[size:], done.w[size:]
    )
    assert torch.equal(ends[0].w[:size], state.w[:size])


def test_check_14_invariants_of_every_step(bench):
    """Large steps, so that clamping is needed and rows die."""
    method = bench.method("spafl", lr=2.0, threshold_penalty=0.01, local_epochs=3)
    rows = method.rows
    (job,) = bench.jobs(method, method.start(), devices=[0])
    images, seen = bench.task.train[0][:5], []

    def watched(w, velocity):
        job.phases[0].project(w, velocity)
        tau, masked = rows.thresholds(w), rows.masked(w)
        assert tau.min() >= 0 and tau.max() <= 1
        largest = max(float(x.abs().max()) for x in rows.tensors(w))
        assert largest <= 1
        zeroed = w.clone()
        each = zip(
            rows.tensors(masked),
            rows.tensors(zeroed),
            rows.alive(w).split(rows.counts),
            strict=True,
        )
        for computes, x, alive in each:
            assert torch.equal(computes, x * alive.unsqueeze(1))
            x[~alive] = 0.0
        computed = Pruner(rows).effective(w)
        logits = [bench.task.architecture.logits(weights, images) for weights in (computed, zeroed)]
        assert torch.equal(*logits)
        seen.append((float(rows.alive(w).float().mean()), float(tau.max()), largest))

    local.run(bench.task, replace(job, phases=(replace(job.phases[0], project=watched),)))
    alive, tau, weight = np.array(seen).T
    assert alive.min() < 1 and tau.max() > 0.1 and weight.max() == 1


# --- the importance update, and what a device knows for it -----------------------------------------------------------


def state_with(method, own, old, new):
    """Device 0 with weights and thresholds ``own``, after global thresholds ``old`` and ``new``."""
    state = replace(method.start(), w=flat(np.zeros((2, 3)), new), local={0: own}, g=2)
    return replace(
        state,
        memo={"change": torch.tensor(new) - torch.tensor(old), "seen": torch.tensor([[0.1, 0.0]])},
    )


@pytest.mark.parametrize(
    ("params", "moved"),
    [
        ({}, [-0.02, 0.01]),  # -(0.26 - 0.2) / 3, -(0.0 - 0.03) / 3
        ({"delta": "broadcast"}, [-0.02, 0.01]),
        ({"delta": "since_last"}, [-0.16 / 3, 0.0]),  # it last received 0.1 and 0.0
        ({"importance_update": False}, [0.0, 0.0]),
        ({"frozen_weights": True}, [0.0, 0.0]),
    ],
)
def test_a_device_starts_from_its_own_weights_and_the_servers_thresholds(neurons, params, moved):
    method = neurons.method("spafl", **params)
    own = flat(ROWS, TAU)
    state = state_with(method, own, [0.2, 0.03], [0.26, 0.0])
    if not method.moves:
        state = replace(state, memo={})
    start = method.received(state, 0)
    assert start[6:].tolist() == pytest.approx([0.26, 0.0])
    assert (start - own)[:6].tolist() == pytest.approx([moved[0]] * 3 + [moved[1]] * 3, abs=1e-7)
    assert torch.equal(state.local[0], own)


def test_the_first_round_moves_no_weights(bench):
    method = bench.method("spafl")
    assert torch.equal(method.received(method.start(), 0), method.start().w)


def test_since_last_remembers_what_a_device_received(bench):
    method = bench.method("spafl", delta="since_last", **QUICK)
    states = [method.start()]
    for devices in ([0, 1], [1], [2], [0]):
        states.append(part_of_round(bench, method, states[-1], devices))
    tau = [method.rows.thresholds(state.w) for state in states]
    seen = states[3].memo["seen"]
    assert (
        torch.equal(seen[0], tau[0])
        and torch.equal(seen[1], tau[1])
        and torch.equal(seen[2], tau[2])
    )
    expected = method.rows.nudged(states[3].local[0], tau[3] - tau[0])
    size = bench.task.layout.size
    assert torch.equal(method.received(states[3], 0)[:size], expected[:size])
    assert "change" not in states[3].memo


# --- reductions, switches --------------------------------------------------------------------------------------------


def test_one_device_without_the_importance_update_is_local(tiny_bench):
    rng = np.random.default_rng(3)
    layers = Linear(4, 6, "features"), Relu(), Linear(6, 2)
    x, y = rng.standard_normal((12, 4)), rng.integers(0, 2, 12)
    tiny = bench_of(layers, x, y, [np.arange(12)], 4)
    settings = {"lr": 0.1, "threshold_penalty": 0.02, "local_epochs": 5}
    method, spafl = tiny.play("spafl", rounds=4, importance_update=False, **settings)
    _, alone = tiny.play("local", rounds=4, **settings)
    _, moved = tiny.play("spafl", rounds=4, **settings)
    assert torch.equal(spafl.local[0], alone.local[0]) and not torch.equal(
        moved.local[0], alone.local[0]
    )
    assert not method.rows.alive(alone.local[0]).all()


def test_local_ignores_the_others(bench):
    method, together = bench.play("local", rounds=2, **QUICK)
    alone = method.start()
    for _ in range(2):
        alone = part_of_round(bench, method, alone, [1])
    assert torch.equal(together.local[1], alone.local[1])
    assert torch.equal(together.w, method.start().w)
    assert type(method) is Local


def test_frozen_weights_stay_and_thresholds_move(bench):
    method, state = bench.play("spafl", rounds=2, frozen_weights=True, **QUICK)
    size, start = bench.task.layout.size, method.start().w
    for w in state.local.values():
        assert torch.equal(w[:size], start[:size]) and (w[size:] > 0).any()


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


def test_the_warm_up_of_the_penalty(neurons):
    """sigmoid(-5) = 0.0066929 in round 0, sigmoid(5) = 0.9933071 in round 1."""
    method = neurons.method("spafl", penalty_warmup=True, **STEP | {"threshold_penalty": 1.0})
    nothing = [[0.0] * 3] * 2
    for g, factor in ((0, 0.0066929), (1, 0.9933071), (9, 1.0)):
        (phase,) = method.local_update(
            replace(method.start(), g=g), 0, flat(np.ones((2, 3)), [0.0, 0.2]), None
        )
        job = Job(0, g, (with_gradient(phase, nothing),), None, method.payload(0.0), 0.0)
        moved = local.run(neurons.task, job).w[6:] - torch.tensor([0.0, 0.2])
        assert moved.tolist() == pytest.approx([LR * factor, LR * factor * exp(-0.2)], rel=1e-4)


@pytest.mark.parametrize(
    ("name", "slopes"),
    [
        ("identity", [1, 1, 1, 1, 1]),
        ("inverted-clip", [0, 0, 0, 0, 1]),
        ("piecewise", [2, 1.6, 0.8, 0.4, 0]),
    ],
)
def test_surrogates(name, slopes):
    q = torch.tensor([0.0, -0.1, 0.3, 0.7, -1.2])
    assert SURROGATES[name](q).tolist() == pytest.approx(slopes)
    rows = rows_of(Linear(1, 5, bias=False), shape=(1,))
    w = torch.cat([torch.full((5,), 0.5), 0.5 - q]).requires_grad_()
    (gradient,) = torch.autograd.grad(
        Pruner(rows, surrogate=name, mask_path=True).effective(w).sum(), [w]
    )
    h = gradient[5:]
    assert h.tolist() == pytest.approx([-0.5 * slope for slope in slopes])
    assert torch.allclose(gradient[:5], (q > 0).float() - h)  # n_in = 1, w > 0: g p - h


def test_few_threshold_bits_round_what_is_sent(bench):
    method, state = bench.play("spafl", rounds=1, threshold_bits=6, **QUICK)
    steps = method.rows.thresholds(state.w) * 63
    assert torch.equal(steps, steps.round()) and steps.max() >= 1
    own = method.rows.thresholds(state.local[0]) * 63
    assert not torch.allclose(own, own.round(), atol=1e-3)
    sent = method.encode(
        bench.jobs(method, state, devices=[0])[0], Trained(state.local[0], method.shared_mask, 0.0)
    )
    assert torch.allclose(method.rows.thresholds(sent.values) * 63, own.round(), atol=1e-4)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("local", {"weighting": "samples"}),
        ("spafl", {"importance_update": False, "delta": "sent"}),
        ("spafl", {"importance_update": False, "importance_divisor": "n_in"}),
        ("spafl", {"frozen_weights": True, "importance_update": True}),
        ("spafl", {"frozen_weights": True, "mask_path": True}),
        ("spafl", {"local_epochs": 5, "local_steps": 3}),
    ],
)
def test_parameters_without_effect_are_refused(name, given):
    with pytest.raises(MethodError, match="is not read where"):
        check(resolve(name), given)


# --- what is planned, charged, measured ------------------------------------------------------------------------------


def test_what_is_charged_is_the_mean_over_the_steps(lenet):
    """Rows of conv2 (1,600,000 of 2,293,000 multiply-adds) live in a quarter of the 50 steps."""
    method = lenet.method("spafl", local_epochs=5)
    (job,) = lenet.jobs(method, method.start(), devices=[0])
    assert job.stages is None
    collected = torch.full((580,), 50.0)
    collected[20:70] = 12.5
    (stage,) = method.charged(job, Trained(None, None, 0.0, collected=collected))
    upkeep = 1.5 * 430_500 * 5
    assert stage.work.flops == pytest.approx(2 * (9000 * (2_293_000 - 0.75 * 1_600_000) + upkeep))
    assert stage.work.weight_steps == pytest.approx(50 * (430_500 - 0.75 * 25_000))


def test_the_plan_counts_the_rows_that_live_at_the_start(lenet):
    """Half of the dense neurons (400,000 multiply-adds) get a threshold above every mean, conv1 all of them."""
    method = lenet.method("spafl", local_epochs=5)
    state, view, two = method.start(), view_of(lenet.task), np.array([3, 8])
    dense = method.demand(state, view, two)
    assert np.array_equal(dense.work_prunable.flops, [method.stages(0, 0.0)[0].work.flops] * 2)
    assert np.array_equal(
        dense.work_prunable.flops, method.demand(None, view, two).work_prunable.flops
    )
    w = state.w.clone()
    tau = method.rows.thresholds(w)
    tau[70:320], tau[:20] = 0.9, 0.9  # a layer that died computes again in the first step
    pruned = method.demand(replace(state, w=w), view, two)
    saved = dense.work_prunable.flops - pruned.work_prunable.flops
    assert saved.tolist() == pytest.approx([2 * 9000 * 200_000] * 2)
    assert (pruned.rho_min == 0).all() and (pruned.bits_prunable == 580 * 32).all()
    assert (pruned.bits_down == 2 * 580 * 32).all()


def test_planning_changes_nothing_at_the_device(bench):
    """Its thresholds would begin anew in the first step; until then they are what they are."""
    method = bench.method("local")
    own = method.start().w.clone()
    method.rows.thresholds(own)[:8] = 0.9
    state = replace(method.start(), local={1: own.clone()})
    method.demand(state, view_of(bench.task), np.array([1]))
    assert torch.equal(state.local[1], own)


def test_late_devices_keep_what_they_trained_and_the_server_never_hears_of_it(bench):
    method = bench.method("spafl", **QUICK)
    state = method.start()
    late = part_of_round(bench, method, state, [0, 1], received=[0])
    alone = part_of_round(bench, method, state, [0])
    assert sorted(late.local) == [0, 1] and torch.equal(late.w, alone.w)
    tau = method.rows.thresholds
    assert torch.equal(tau(method.received(late, 1)), tau(late.w))
    assert not torch.equal(tau(late.local[1]), tau(late.w))


def test_measures_are_means_over_all_devices(neurons):
    rng = np.random.default_rng(0)
    three = bench_of((Linear(3, 2, bias=False),), rng.random((3, 3)), [0, 1, 1], [[0], [1], [2]], 1)
    method = three.method("spafl")
    state = replace(method.start(), local={0: flat(ROWS, TAU)}, notes={"recovered": 7})
    expected = {
        f"density_{name}": pytest.approx((0.5 + 1 + 1) / 3)
        for name in ("layer_mean", "params", "macs")
    }
    expected["density_structural"] = pytest.approx(2.5 / 3)
    assert method.measures(state) == expected | {"filters_recovered": 7.0, "never_sampled": 2.0}


def test_rows_that_come_back_are_counted(neurons):
    method = neurons.method("spafl")
    dead, back = flat(ROWS, [0.5, 0.05]), flat(ROWS, [0.1, 0.05])  # none live; the first one
    state = replace(method.start(), local={0: dead})
    once = method.retain(state, [returned(method, back, 0)])
    again = method.retain(once, [returned(method, flat(ROWS, [0.1, 0.01]), 0)])
    assert once.notes == {"recovered": 1} and again.notes == {"recovered": 2}
    assert method.retain(again, [returned(method, dead, 0)]).notes == {"recovered": 2}


def test_devices_use_their_masked_model(neurons):
    method = neurons.method("spafl")
    state = replace(method.start(), local={0: flat(ROWS, TAU)}, w=flat(np.ones((2, 3)), [0.0, 0.0]))
    assert method.personalise(state, 0)[:6].tolist() == pytest.approx([*ROWS[0], 0.0, 0.0, 0.0])
    grant = Grant(0, 1.0, 0.0, 1.0, 1.0)
    assert torch.equal(
        method.configure(state, view_of(neurons.task), grant).phases[0].start[:6],
        flat(ROWS, TAU)[:6],
    )


def test_what_hooks_remember_follows_the_weights():
    rows = rows_of(Linear(3, 2, bias=False), shape=(3,))
    pruner, w = Pruner(rows), flat(ROWS, TAU)
    assert pruner.collect(w).tolist() == [1, 0]
    w[3] = 0.2  # mu = 0.09
    assert pruner.collect(w).tolist() == [1, 1]
    w[6] = 0.31
    assert pruner.collect(w).tolist() == [0, 1]
    assert pruner.effective(flat(ROWS, TAU)).tolist() == pytest.approx([*ROWS[0], 0, 0, 0])


def test_the_means_are_computed_once_a_step(neurons):
    asked = []

    class Counting(Rows):
        def means(self, w):
            asked.append(len(w))
            return super().means(w)

    method = neurons.method("spafl", **STEP | {"local_steps": 4})
    pruner = Pruner(Counting(method.rows.weights, method.rows.size))
    (phase,) = method.local_update(method.start(), 0, flat(ROWS, TAU), None)
    phase = replace(
        phase, effective=pruner.effective, project=pruner.project, collect=pruner.collect
    )
    phase = with_gradient(phase)
    local.run(neurons.task, Job(0, 0, (phase,), None, method.payload(0.0), 0.0))
    assert len(asked) == 4 + 1


def test_a_phase_can_be_trained_again_from_elsewhere(bench):
    """What its hooks remember of one w says nothing about another."""
    method = bench.method("spafl", threshold_penalty=0.05, **QUICK)
    (job,) = bench.jobs(method, method.start(), devices=[0])
    once = local.run(bench.task, job)
    halved = replace(job, phases=(replace(job.phases[0], start=job.phases[0].start / 2),))
    other = local.run(bench.task, halved)
    again = local.run(bench.task, job)
    assert torch.equal(once.w, again.w) and torch.equal(once.collected, again.collected)
    (fresh,) = bench.jobs(method, method.start(), devices=[0])
    expected = local.run(
        bench.task, replace(fresh, phases=(replace(fresh.phases[0], start=halved.phases[0].start),))
    )
    assert torch.equal(other.w, expected.w) and not torch.equal(other.collected, once.collected)


@pytest.mark.parametrize("delta", ["sent", "since_last"])
def test_a_resumed_run_goes_on_as_it_would_have(bench, delta):
    method = bench.method("spafl", delta=delta, **QUICK)
    state = part_of_round(bench, method, method.start(), [0, 2])
    resumed = State.from_arrays(*state.to_arrays())
    ends = [part_of_round(bench, method, each, [2, 3]) for each in (state, resumed)]
    (arrays, record), (again, record_again) = (end.to_arrays() for end in ends)
    assert arrays.keys() == again.keys() and all(
        np.array_equal(arrays[name], again[name]) for name in arrays
    )
    assert record == record_again
