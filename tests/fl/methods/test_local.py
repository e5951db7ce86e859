"""Local: thresholds without a server."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fl.contracts import Grant
from fl.methods.local import Local
from fl.models.layers.learned_layers import Linear
from fl.models.layers.weightless_layers import Relu
from tests.fl.conftest import view_of
from tests.fl.two_neurons import QUICK, ROWS, TAU, bench_of, flat, part_of_round, returned


@pytest.mark.slow
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


@pytest.mark.slow
def test_local_ignores_the_others(bench):
    method, together = bench.play("local", rounds=2, **QUICK)
    alone = method.start()
    for _ in range(2):
        alone = part_of_round(bench, method, alone, [1])
    assert torch.equal(together.local[1], alone.local[1])
    assert torch.equal(together.w, method.start().w)
    assert type(method) is Local


@pytest.mark.slow
def test_frozen_weights_stay_and_thresholds_move(bench):
    method, state = bench.play("spafl", rounds=2, frozen_weights=True, **QUICK)
    size, start = bench.task.layout.size, method.start().w
    for w in state.local.values():
        assert torch.equal(w[:size], start[:size]) and (w[size:] > 0).any()


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
