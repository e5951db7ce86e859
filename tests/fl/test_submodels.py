"""Submodels that are really smaller: the same weights as the masked model, fewer bits, fewer FLOPs, less time."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from edgesim.seeds import Seeds
from fl.contracts import Grant, Job, Payload, Phase, Sgd
from fl.data.datasets import federated
from fl.masks import unit_masks as masks
from fl.models.architectures import build
from fl.models.dense_submodel import dense_submodel
from fl.task import LearningTask
from fl.training import local_sgd as local
from tests.fl.conftest import Bench, view_of

LR = 0.1


def job_of(*phases, device=0):
    return Job(device, 0, phases, (), Payload(0.0, 0.0), 0.0)


def sized(view, capability, budget=None):
    budget = np.ones(len(capability)) if budget is None else np.asarray(budget)
    return replace(view, capability=np.asarray(capability, dtype=float), model_budget=budget)


@pytest.mark.parametrize("width", [0.25, 0.5, 0.7])
@pytest.mark.parametrize("optimiser", [Sgd(), Sgd(0.9, 1e-3, 1.0)])
def test_the_cut_out_model_trains_as_the_masked_one(bench, width, optimiser):
    """fl.training.local_sgd trains slices; with a hook that does nothing it must train the whole masked model instead."""
    layout, w = bench.task.layout, bench.task.initial()
    mask = torch.from_numpy(layout.expand(masks.random(layout, width, np.random.default_rng(1))))
    assert dense_submodel(layout, mask) is not None
    phase = Phase(w, mask, 5, LR, submodel=mask, optimiser=optimiser)
    sliced = local.run(bench.task, job_of(phase))
    masked = local.run(bench.task, job_of(replace(phase, project=lambda w, velocity: None)))
    assert torch.allclose(sliced.w, masked.w, atol=1e-6)
    assert sliced.loss == pytest.approx(masked.loss, rel=1e-5) and sliced.accuracy == pytest.approx(
        masked.accuracy
    )
    assert torch.equal(sliced.w[~mask], w[~mask]) and not torch.allclose(sliced.w[mask], w[mask])


def test_only_structured_masks_are_cut_out(bench):
    layout = bench.task.layout
    whole = torch.ones(layout.size, dtype=torch.bool)
    scattered = torch.from_numpy(np.random.default_rng(0).random(layout.size) < 0.5)
    rows = torch.from_numpy(layout.expand(masks.prefix(layout, 0.5), rows=True))
    half = dense_submodel(layout, torch.from_numpy(layout.expand(masks.prefix(layout, 0.5))))
    assert (
        dense_submodel(layout, whole) is None
        and dense_submodel(layout, scattered) is None
        and dense_submodel(layout, rows) is None
    )
    assert (
        half.layout.size == len(half.index) == int(layout.expand(masks.prefix(layout, 0.5)).sum())
    )


@pytest.mark.parametrize(
    "name", ["shakespeare-lstm", "resnet18", "vgg11", "spafl-conv4", "lenet5-caffe", "fedlps-cnn"]
)
def test_prefixes_of_every_model_are_cut_out(name):
    """Embeddings and shortcuts too: the dense_submodel has the very coordinates of the mask."""
    text, shape = (
        name == "shakespeare-lstm",
        (1, 28, 28) if name in ("lenet5-caffe", "fedlps-cnn") else (3, 32, 32),
    )
    layout = build(name, (80,) if text else shape, 65 if text else 10).layout
    mask = layout.expand(masks.prefix(layout, 0.5, rounding="up"))
    smaller = dense_submodel(layout, torch.from_numpy(mask))
    assert smaller is not None and np.array_equal(
        np.sort(smaller.index.numpy()), np.flatnonzero(mask)
    )


def test_a_scattered_submodel_trains_where_it_is_and_computes_with_nothing_else(tiny_bench):
    """Logits W x with x = (1, 2), W = [[1, 2], [3, 4]]; without w_01: logits (1, 11), p_1 = 0.9999546."""
    from fl.models.layers import Linear

    task = tiny_bench((Linear(2, 2, bias=False),), [[1.0, 2.0]], [0]).task
    submodel = torch.tensor([True, False, True, True])
    done = local.run(
        task, job_of(Phase(torch.tensor([1.0, 2.0, 3.0, 4.0]), submodel, 1, LR, submodel=submodel))
    )
    p1 = 1 / (1 + np.exp(-10))
    assert done.w.tolist() == pytest.approx(
        [1 + LR * p1, 2.0, 3 - LR * p1, 4 - 2 * LR * p1], abs=1e-5
    )
    assert done.accuracy == 0.0


def test_heterofl_keeps_the_first_units_and_costs_what_the_small_model_costs(bench):
    """digits-cnn: 8 and 16 channels, 64 neurons; at a quarter 2, 4 and 16 of them."""
    method = bench.method("heterofl")
    view = sized(view_of(bench.task), [1.0, 0.25, 0.5, 0.25])
    kept = method.layout.named(method.kept(None, view, 1))
    assert kept["conv1.weight"].sum() == 2 * 9 and kept["conv2.weight"].sum() == 4 * 2 * 9
    assert kept["linear1.weight"].sum() == 16 * 4 * 4 and kept["linear2.weight"].sum() == 10 * 16
    demand = method.demand(None, view, np.arange(4))
    kept_rho = 1 - demand.rho_min
    assert (
        demand.bits_down[1]
        == 32 * method.kept(None, view, 1).sum()
        == pytest.approx(demand.bits_prunable[1] * kept_rho[1])
    )
    flops = demand.work_prunable.flops * kept_rho
    macs = np.array([8 * 9, 16 * 8 * 9, 64 * 64, 640]) * np.array([64, 16, 1, 1])
    small = np.array([2 * 9, 4 * 2 * 9, 16 * 16, 160]) * np.array([64, 16, 1, 1])
    assert flops[1] / flops[0] == pytest.approx(
        (small * [2, 3, 3, 3]).sum() / (macs * [2, 3, 3, 3]).sum()
    )


def test_the_model_budget_limits_the_width_by_its_root(bench):
    method, view = bench.method("heterofl"), view_of(bench.task)
    assert [
        method.width_of(sized(view, [1, 1, 0.25, 1], [1, 1 / 16, 1 / 4, 0.64]), k) for k in range(4)
    ] == [
        1,
        0.25,
        0.25,
        0.8,
    ]
    assert bench.method("heterofl", width=0.5).width_of(view, 0) == 0.5


def test_the_mean_over_holders(bench):
    """spafl.md, check 16: 4 of the whole model and 2 of the half one: 3 where both hold, 4 where one does."""
    method = bench.method("heterofl", masked_ce=False)
    state, view = method.start(), sized(view_of(bench.task), [1.0, 0.5, 1.0, 1.0])

    class Done:
        def __init__(self, k, value):
            grant = Grant(k, 0.5, 0.0, 1.0, 1.0)
            self.job = method.configure(state, view, grant)
            mask = torch.from_numpy(method.kept(state, view, k))
            self.trained = local.Trained(torch.full_like(state.w, value), mask, 0.0)

        def result(self):
            return self.trained

    after = method.aggregate(state, view, [Done(0, 4.0), Done(1, 2.0)]).w
    half = torch.from_numpy(method.nested(0.5))
    assert set(after[half].tolist()) == {3.0} and set(after[~half].tolist()) == {4.0}
    alone = method.aggregate(state, view, [Done(1, 2.0)]).w
    assert set(alone[half].tolist()) == {2.0} and torch.equal(alone[~half], state.w[~half])


def test_absent_classes_have_no_loss_and_no_say(bench):
    method = bench.method("heterofl")
    state, view = method.start(), view_of(bench.task)
    update = local.run(bench.task, method.configure(state, view, Grant(0, 0.5, 0.0, 1.0, 1.0)))
    job = method.configure(state, view, Grant(0, 0.5, 0.0, 1.0, 1.0))
    owned = np.unique(bench.task.data.y_train[bench.task.data.train_index[0]])
    travels = method.layout.named(method.encode(job, update).travels)
    assert np.flatnonzero(travels["linear2.bias"].numpy()).tolist() == owned.tolist()
    assert bool(travels["linear1.weight"].all())
    before, after = (
        method.layout.named(state.w)["linear2.bias"],
        method.layout.named(update.w)["linear2.bias"],
    )
    moved = np.flatnonzero((before != after).numpy())
    assert moved.tolist() == owned.tolist()


def test_heterofl_at_full_width_without_its_extras_is_fedavg_to_the_byte(bench):
    _, plain = bench.play("fedavg", rounds=2, lr=LR)
    for name, params in (
        ("heterofl", {"masked_ce": False}),
        ("fedrolex", {"masked_ce": False}),
        ("fedprox", {"mu": 0.0}),
    ):
        _, state = bench.play(name, rounds=2, lr=LR, **params)
        assert torch.equal(state.w, plain.w), name
    _, state = bench.play(
        "fjord", rounds=2, lr=LR, weighting="uniform", levels=[1.0], resample="round"
    )
    assert torch.equal(state.w, plain.w)


def test_the_scaler_divides_hidden_outputs_by_the_width(tiny_bench):
    """x = 1 -> hidden (0.5 x, ...) -> logits; at width 1/2 with the scaler the hidden unit gives 1.0 instead of 0.5."""
    from fl.models.layers import Linear

    bench = tiny_bench(
        (Linear(1, 2, "features", bias=False), Linear(2, 2, bias=False)), [[1.0]], [0]
    )
    method = bench.method("heterofl", width=0.5, masked_ce=False, local_steps=1, lr=LR)
    w = torch.tensor(
        [0.5, 9.0, 1.0, 9.0, -1.0, 9.0]
    )  # hidden 0.5 (kept), 9; logits (1, -1) of the kept unit
    job = method.configure(
        replace(method.start(), w=w), view_of(bench.task), Grant(0, 1.0, 0.5, 1.0, 1.0)
    )
    done = local.run(bench.task, job)
    p1 = 1 / (1 + np.exp(2.0))  # hidden output 0.5 / 0.5 = 1: logits (1, -1)
    assert done.w.tolist() == pytest.approx(
        [0.5 + LR * 2 * 2 * p1, 9, 1 + LR * p1, 9, -1 - LR * p1, 9], abs=1e-6
    )


def test_fedrolex_rolls_with_the_round_and_begins_as_heterofl(bench):
    """fedmap.md, check 15; every unit as often over a full turn of 8 rounds."""
    rolex, static = bench.method("fedrolex", width=0.25), bench.method("heterofl", width=0.25)
    assert np.array_equal(
        rolex.kept(None, view_of(bench.task, 0), 0), static.kept(None, view_of(bench.task, 0), 0)
    )
    counts = sum(
        rolex.layout.named(rolex.kept(None, view_of(bench.task, g), 0))["conv1.bias"].astype(int)
        for g in range(8)
    )
    assert counts.tolist() == [2] * 8


def test_fjord_draws_a_width_per_batch_and_trains_nothing_beyond_its_own(bench):
    method = bench.method("fjord", local_steps=6, lr=LR, levels=[0.25, 0.5, 1.0])
    view = sized(view_of(bench.task), [0.5, 1.0, 1.0, 1.0])
    widths = method.drawn(view, 0)
    assert len(widths) == 6 and set(widths) <= {0.25, 0.5} and widths == method.drawn(view, 0)
    assert len({tuple(method.drawn(replace(view, g=g), 1)) for g in range(5)}) == 5
    state = method.start()
    done = local.run(bench.task, method.configure(state, view, Grant(0, 0.5, 0.0, 1.0, 1.0)))
    half = torch.from_numpy(method.nested(0.5))
    assert torch.equal(done.w[~half], state.w[~half]) and not torch.equal(
        done.w[half], state.w[half]
    )
    assert torch.equal(done.mask, half)


def test_fjord_sends_no_more_than_the_largest_level_it_may_draw(bench):
    """A device of width 0.8 with the levels 1/4, 1/2 and 1 never trains more than half of the units."""
    view = sized(view_of(bench.task), [0.8] * 4)
    method, half = (
        bench.method("fjord", levels=[0.25, 0.5, 1.0]),
        bench.method("heterofl", width=0.5),
    )
    assert np.array_equal(method.kept(None, view, 0), half.kept(None, view, 0))
    teaching = bench.method("fjord", levels=[0.25, 0.5, 1.0], distillation=True)
    assert np.array_equal(teaching.kept(None, view, 0), method.nested(0.8))


def test_fjords_work_is_the_mean_of_the_widths_it_drew(bench):
    method, view = bench.method("fjord", local_steps=8, levels=[0.25, 1.0]), view_of(bench.task)
    share = np.mean(np.array(method.drawn(view, 0)) == 1.0)
    whole, quarter = (
        bench.method("heterofl", local_steps=8, width=w).forecast(view, 0, 0.0)[0].work.flops
        for w in (1.0, 0.25)
    )
    assert 0 < share < 1
    assert method.forecast(view, 0, 0.0)[0].work.flops == pytest.approx(
        share * whole + (1 - share) * quarter
    )
    taught = bench.method("fjord", local_steps=8, levels=[0.25, 1.0], distillation=True)
    assert taught.forecast(view, 0, 0.0)[0].work.flops == pytest.approx(
        (1 + share) * whole + (1 - share) * quarter
    )


def test_fjord_with_distillation_learns_from_both_widths(bench):
    method = bench.method("fjord", local_steps=2, lr=LR, distillation=True, levels=[0.25])
    state = method.start()
    done = local.run(
        bench.task, method.configure(state, view_of(bench.task), Grant(0, 0.5, 0.0, 1.0, 1.0))
    )
    outside = ~torch.from_numpy(method.nested(0.25))
    assert not torch.equal(done.w[outside], state.w[outside])  # the largest width learns too


def test_fedprox_pulls_by_the_distance(tiny_bench):
    """One weight a class, logits (w0, w1), w = (1, 0), received (0, 0): the pull is mu times the distance."""
    from fl.models.layers import Linear

    bench = tiny_bench((Linear(1, 2, bias=False),), [[1.0]], [0])
    method = bench.method("fedprox", mu=0.5, local_steps=1, lr=LR)
    anchor = torch.zeros(2)
    (phase,) = method.local_update(method.start(), 0, anchor, Grant(0, 1.0, 0.0, 1.0, 1.0))
    p1 = 1 / (1 + np.exp(1.0))
    for distance in (1.0, 2.0):
        pull = local.run(
            bench.task, job_of(replace(phase, start=torch.tensor([distance, distance - 1.0])))
        ).w
        expected = [
            distance - LR * (-p1 + 0.5 * distance),
            distance - 1 - LR * (p1 + 0.5 * (distance - 1)),
        ]
        assert pull.tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", ["heterofl", "fedrolex", "fjord"])
def test_what_a_device_uses_is_its_own_submodel(bench, name):
    method = bench.method(name, local_steps=1)
    view = sized(view_of(bench.task), [1.0, 0.25, 0.5, 0.25])
    state = method.aggregate(method.start(), view, [])
    assert torch.equal(method.personalise(state, 0), state.w)
    assert torch.equal(
        method.personalise(state, 1) != 0, torch.from_numpy(method.nested(0.25)) & (state.w != 0)
    )
    assert method.personalise(state, 1) is method.personalise(state, 3)
    assert list(method.probes(state)) == ["width 1", "width 0.5", "width 0.25"]
    assert torch.equal(bench.method(name, deploy="global").personalise(state, 1), state.w)


def test_half_the_width_trains_in_less_time_than_the_whole():
    """Not a benchmark: the dense_submodel-out model must do a fraction of the work, counted by torch itself."""
    from torch.utils.flop_counter import FlopCounterMode

    data = federated("digits", 2, Seeds(0), kind="iid")
    bench = Bench(LearningTask(build("digits-cnn", data.input_shape, 10), data, 32, Seeds(0)))
    counted = {}
    for width in (1.0, 0.5):
        method = bench.method("heterofl", width=width, local_steps=1)
        job = method.configure(method.start(), view_of(bench.task), Grant(0, 0.5, 0.0, 1.0, 1.0))
        with FlopCounterMode(display=False) as counter:
            local.run(bench.task, job)
        counted[width] = counter.get_total_flops()
        assert counted[width] == pytest.approx(sum(stage.work.flops for stage in job.stages))
    assert counted[0.5] < 0.35 * counted[1.0]
