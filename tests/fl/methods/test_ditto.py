"""Ditto: two models per device."""

from dataclasses import replace

import pytest
import torch

from fl.executors.deferred_training import Trainer
from fl.models.layers.learned_layers import Linear

LR = 0.05


ONE = [[1.0]]  # a single sample x = 1


def trained(bench, method, state, k=0):
    (job,) = bench.jobs(method, state, devices=[k])
    return Trainer(bench.task).submit([job])[0].result()


def test_a_personal_step_of_ditto_by_hand(tiny_bench):
    """Logits v x with v = [1, 1], x = 1, y = 1: the loss has gradient [0.5, -0.5], v - w = 1."""
    bench = tiny_bench([Linear(1, 2, bias=False)], ONE, [1])
    method = bench.method("ditto", local_steps=1, lr=0.1, lam=0.1)
    state = replace(method.start(), w=torch.tensor([0.0, 0.0, 1.0, 1.0]))
    w = trained(bench, method, state).w
    assert w[2:].tolist() == pytest.approx([0.94, 1.04], abs=1e-7)
    assert w[:2].tolist() == pytest.approx([-0.05, 0.05], abs=1e-7)


def test_the_pull_of_ditto_doubles_with_the_distance(tiny_bench):
    bench = tiny_bench([Linear(1, 2, bias=False)], ONE, [1])
    method = bench.method("ditto", local_steps=1, lr=1.0, lam=0.5)
    moved = []
    for far in (1.0, 2.0):
        state = replace(method.start(), w=torch.tensor([0.0, 0.0, far, far]))
        moved.append(
            trained(bench, method, state).w[2:].sum() - 2 * far
        )  # the loss moves the sum by nothing
    assert moved[0].item() == pytest.approx(-1.0, abs=1e-6)
    assert moved[1].item() == pytest.approx(-2.0, abs=1e-6)


@pytest.mark.slow
def test_the_global_model_of_ditto_is_that_of_fedavg(bench):
    size = bench.task.layout.size
    _, fedavg = bench.play("fedavg", rounds=3, local_steps=3, lr=LR)
    method, ditto = bench.play("ditto", rounds=3, local_steps=3, lr=LR, lam=1.0)
    assert torch.equal(ditto.w[:size], fedavg.w)
    assert torch.equal(
        ditto.w[size:], method.start().w[size:]
    )  # the server never sees a personal model
    assert not any(
        torch.equal(method.personalise(ditto, k), fedavg.w) for k in range(bench.task.devices)
    )


def test_devices_that_cannot_improve_leave_the_global_model_of_ditto_alone(
    tiny_bench,
):  # the released program of FedLPS adds every update twice
    bench = tiny_bench([Linear(1, 2, bias=False)], [[0.0]] * 3, [0, 1, 1])  # x = 0: no gradient
    method, state = bench.play("ditto", rounds=2, lr=0.1)
    assert torch.equal(state.w, method.start().w)


def test_what_stays_of_ditto_comes_back_and_is_used(bench):
    method, state = bench.play("ditto", rounds=1, local_steps=2, lr=LR)
    size = bench.task.layout.size
    assert torch.equal(method.received(state, 1)[size:], state.local[1])
    assert torch.equal(method.received(state, 1)[:size], state.w[:size])
    assert method.personalise(state, 1) is state.local[1]
    never = replace(state, local={})
    assert method.personalise(never, 1) is never.w
    assert method.weights() == {"total": 2 * size, "global": size, "personal": size}


def test_ditto_is_charged_two_trainings_and_one_model(bench):
    fedavg, ditto = bench.method("fedavg"), bench.method("ditto")
    personal, train = ditto.stages(0, 0.0)
    assert personal.work == train.work == fedavg.stages(0, 0.0)[0].work
    assert ditto.payload(0.0) == fedavg.payload(0.0)
