"""APFL: two steps by hand, and its limits."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fl.executors.deferred_training import Trainer
from fl.models.layers.learned_layers import Linear
from fl.objective import ERRORS, Objective
from tests.fl.conftest import Bench

PLAIN = {"local_steps": 3, "lr": 0.1}


def test_two_steps_on_a_quadratic_by_hand(tiny_bench, monkeypatch):
    """(x - 1)^2 / 2 from 0, steps of 0.1: w 0.1, 0.19; v 0.05, 0.09625; mixture 0.075, 0.143125."""
    monkeypatch.setattr(
        "torch.nn.functional.cross_entropy", lambda x, y: 0.5 * (x[:, 0] - 1).square().mean()
    )
    bench = tiny_bench([Linear(1, 2, bias=False)], [[1.0]], [0])
    expected = {1: (0.1, 0.05, 0.075), 2: (0.19, 0.09625, 0.143125)}
    for steps, (w, v, mixture) in expected.items():
        method = bench.method("apfl", local_steps=steps, lr=0.1)
        state = method.start()
        state = replace(state, w=torch.tensor([0.0, 0.0, 0.0, 0.0, 0.5]))
        after = bench.round(method, state)
        assert after.w[0].item() == pytest.approx(w, abs=1e-6)
        assert after.local[0][0].item() == pytest.approx(v, abs=1e-6)
        mixed = 0.5 * v + 0.5 * w
        assert method.personalise(after, 0)[0].item() == pytest.approx(mixed, abs=1e-6)
        assert mixed == pytest.approx(mixture)


def test_it_minimises_the_loss_of_the_task(tiny_bench):
    """Real target 3 at the input 1, from 0: both gradients are -6, v's half of it."""
    bench = tiny_bench([Linear(1, 1, bias=False)], [[1.0]], [3])
    squared = Objective(ERRORS["squared-error"], plain=False, labels=False)
    data, (x, y) = bench.task.data, (np.ones((1, 1), np.float32), np.full((1, 1), 3, np.float32))
    data = replace(data, y_train=y, y_test=y, images=lambda: (x, x))
    bench = Bench(replace(bench.task, data=data, objective=squared))
    method = bench.method("apfl", local_steps=1, lr=0.1)
    start = replace(method.start(), w=torch.tensor([0.0, 0.0, 0.5]))
    after = bench.round(method, start)
    assert after.w[0].item() == pytest.approx(0.6) and after.local[0][0].item() == pytest.approx(
        0.3
    )


def test_the_global_model_is_that_of_fedavg(bench):
    size = bench.task.layout.size
    _, fedavg = bench.play("fedavg", rounds=2, **PLAIN)
    _, state = bench.play("apfl", rounds=2, **PLAIN)
    assert torch.allclose(state.w[:size], fedavg.w, atol=1e-6)


def test_the_ends_of_the_mixture(bench):
    method, state = bench.play("apfl", rounds=2, alpha=0.0, **PLAIN)
    size = bench.task.layout.size
    assert torch.equal(method.personalise(state, 1), state.w[:size])
    method, state = bench.play("apfl", rounds=2, alpha=1.0, **PLAIN)
    assert torch.equal(method.personalise(state, 1), state.local[1][:size])
    assert not torch.equal(state.local[1][:size], state.w[:size])


def test_with_alpha_one_a_device_trains_alone(bench):
    """v_k is FedAvg of device k with nobody else: the server's mean of one is what it returned."""
    _, state = bench.play("apfl", rounds=2, alpha=1.0, **PLAIN)
    local = bench.method("fedavg", **PLAIN)
    alone = local.start()
    for _ in range(2):
        alone = bench.round(local, alone, devices=[1])
    v = state.local[1][: bench.task.layout.size]
    assert torch.allclose(v, alone.w, atol=1e-6)
    assert not torch.allclose(v, local.start().w, atol=1e-3)


def test_with_alpha_zero_the_own_model_is_idle(bench):
    method, state = bench.play("apfl", rounds=2, alpha=0.0, **PLAIN)
    first = method.start().w[: bench.task.layout.size]
    for local in state.local.values():
        assert torch.equal(local[: len(first)], first)


def test_the_share_moves_only_when_it_may_and_stays_within_its_bounds(bench):
    _, fixed = bench.play("apfl", rounds=1, **PLAIN)
    _, free = bench.play("apfl", rounds=1, adaptive=True, **PLAIN)
    _, steep = bench.play("apfl", rounds=2, adaptive=True, local_steps=3, lr=1.0)
    assert {local[-1].item() for local in fixed.local.values()} == {0.5}
    assert all(local[-1].item() != 0.5 for local in free.local.values())
    assert all(0 <= local[-1].item() <= 1 for local in steep.local.values())


def test_it_sends_one_model_and_computes_two(bench):
    fedavg, method = bench.method("fedavg"), bench.method("apfl")
    assert method.payload(0.0) == fedavg.payload(0.0)
    personal, train = method.stages(0, 0.0)
    assert personal.work == train.work == fedavg.stages(0, 0.0)[0].work


def test_both_gradients_come_from_the_same_batch_and_model(bench):
    """One step: v moves by half the gradient at the mixture, w by that of FedAvg."""
    method = bench.method("apfl", local_steps=1, lr=0.1)
    state = method.start()
    (job,) = bench.jobs(method, state, devices=[0])
    done = Trainer(bench.task).submit([job])[0].result().w
    size = bench.task.layout.size
    moved_w, moved_v = (done - state.w)[:size], (done - state.w)[size:-1]
    assert torch.allclose(moved_v, 0.5 * moved_w, atol=1e-6)  # v = w at first: the same gradient
