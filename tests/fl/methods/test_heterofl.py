"""HeteroFL: nested submodels."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from edgesim.seeds import Seeds
from fl.contracts import Grant, View
from fl.data.samples import Federated
from fl.masks import unit_masks as masks
from fl.method_base.hyperparameter_declaration import parameters
from fl.method_base.method import bind
from fl.methods import available, resolve
from fl.methods._ordered_dropout import first_units, width_of
from fl.models.architectures import build
from fl.task import LearningTask
from fl.training import local_sgd as local
from tests.fl.conftest import view_of


@pytest.fixture(scope="module")
def lenet():
    """A task on LeNet without a use for its two pictures."""
    x, y = np.zeros((2, 1, 28, 28), np.float32), np.array([0, 1])
    each = [np.array([0]), np.array([1])]
    data = Federated(y, y, lambda: (x, x), (1, 28, 28), each, each, tuple("0123456789"))
    return LearningTask(build("lenet5-caffe", (1, 28, 28), 10), data, 1, Seeds(0))


LR = 0.1


def sized(view, capability, budget=None):
    budget = np.ones(len(capability)) if budget is None else np.asarray(budget)
    return replace(view, capability=np.asarray(capability, dtype=float), model_budget=budget)


def test_static_and_rolling_submodels_of_lenet(lenet):
    """Width 1/2: 10 x 25 + 25 x 250 + 250 x 400 + 10 x 250 weights."""
    layout = lenet.layout
    half = layout.expand(masks.prefix(layout, 0.5, rounding="up"))
    assert half.sum() == 109_000
    view = View(
        0,
        0.0,
        np.arange(2),
        np.ones(2),
        np.ones(2),
        lenet.samples,
        np.inf,
        np.ones(2),
        np.full(2, 0.25),
    )
    static, rolling = (
        bind(resolve(name), lenet, {}).kept(None, view, 0) for name in ("heterofl", "fedrolex")
    )
    assert (static == half).all()
    assert (rolling == static).all()
    later = bind(resolve("fedrolex"), lenet, {}).kept(None, replace(view, g=1), 0)
    assert later.sum() == 109_000
    assert not (later == static).all()


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
    view = sized(view_of(bench.task), [1, 1, 0.25, 1], [1, 1 / 16, 1 / 4, 0.64])
    assert [width_of(None, view, k) for k in range(4)] == [1, 0.25, 0.25, 0.8]
    assert width_of(0.5, view, 0) == 0.5


def test_only_methods_that_keep_a_width_have_one():
    have = {m for m in available() if any(p.name == "width" for p in parameters(resolve(m)))}
    assert have == {"efd", "fedlps", "fedmp", "fedrolex", "fjord", "heterofl"}


def test_the_mean_over_holders(bench):
    """4 of the whole model and 2 of the half one: 3 where both hold, 4 where one does."""
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
    half = torch.from_numpy(first_units(method.layout, 0.5))
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


@pytest.mark.slow
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
    """x = 1 -> hidden (0.5 x, ...) -> logits; at width 1/2 with the scaler the hidden unit gives
    1.0 instead of 0.5.
    """
    from fl.models.layers.learned_layers import Linear

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


@pytest.mark.parametrize("name", ["heterofl", "fedrolex", "fjord"])
def test_what_a_device_uses_is_its_own_submodel(bench, name):
    method = bench.method(name, local_steps=1)
    view = sized(view_of(bench.task), [1.0, 0.25, 0.5, 0.25])
    state = method.aggregate(method.start(), view, [])
    assert torch.equal(method.personalise(state, 0), state.w)
    assert torch.equal(
        method.personalise(state, 1) != 0,
        torch.from_numpy(first_units(method.layout, 0.25)) & (state.w != 0),
    )
    assert method.personalise(state, 1) is method.personalise(state, 3)
    assert list(method.probes(state)) == ["width 1", "width 0.5", "width 0.25"]
    assert torch.equal(bench.method(name, deploy="global").personalise(state, 1), state.w)
