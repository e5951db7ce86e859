"""pFedMe: a local round by hand, its limit, and what it costs."""

from dataclasses import replace

import pytest
import torch

from fl.executors.deferred_training import Trainer
from fl.training.local_sgd import samples

INNER = (0.09, 0.0504, 0.067824, 0.060157, 0.063531)  # to theta = 1/16, from 0


@pytest.mark.parametrize(("steps", "theta"), list(enumerate(INNER, start=1)))
def test_a_local_round_on_a_quadratic_by_hand(quadratics, steps, theta):
    """f = (theta - 1)^2 / 2, lam 15, steps of 0.09; then w = 0.005 x 15 theta."""
    start, play = quadratics("pfedme", [1.0], [1.0], local_steps=1, inner_steps=steps)
    after = play(start)
    assert after.local[0][0].item() == pytest.approx(theta, abs=1e-6)
    assert after.w[0].item() == pytest.approx(0.005 * 15 * theta, abs=1e-7)


def test_many_inner_steps_reach_the_exact_minimiser(quadratics):
    """theta - 1 + 15 theta = 0: theta = 1/16."""
    start, play = quadratics("pfedme", [1.0], [1.0], local_steps=1, inner_steps=40)
    assert play(start).local[0][0].item() == pytest.approx(1 / 16, abs=1e-7)


def test_theta_goes_on_from_one_local_round_to_the_next(quadratics):
    """Second round, K = 1: theta = .09 - .09 (.09 - 1 + 15 (.09 - w)) with w = .075 x .09."""
    start, play = quadratics("pfedme", [1.0], [1.0], local_steps=2, inner_steps=1)
    after, w = play(start), 0.075 * 0.09
    theta = 0.09 - 0.09 * (0.09 - 1 + 15 * (0.09 - w))
    assert after.local[0][0].item() == pytest.approx(theta, abs=1e-6)
    assert after.w[0].item() == pytest.approx(w - 0.075 * (w - theta), abs=1e-7)


@pytest.mark.slow
def test_the_server_goes_a_share_of_the_way(quadratics):
    one, half = (
        play(start).w[0].item()
        for start, play in (
            quadratics("pfedme", [1.0, 3.0], [1.0, -1.0], server_mix=mix) for mix in (1.0, 0.5)
        )
    )
    assert half == pytest.approx(one / 2) and one != 0


def test_with_one_inner_step_and_eta_lam_of_one_it_is_fedavg_with_one_step(bench):
    size = bench.task.layout.size
    _, fedavg = bench.play("fedavg", local_steps=1, lr=0.1)
    whole = {"local_steps": 1, "inner_steps": 1, "personal_lr": 0.1, "lam": 10.0, "lr": 0.1}
    _, state = bench.play("pfedme", **whole)
    assert torch.allclose(state.w[:size], fedavg.w, atol=1e-6)


def test_every_mini_batch_is_held_and_the_next_local_round_has_the_next(bench):
    method = bench.method("pfedme", local_steps=3, inner_steps=2)
    (job,) = bench.jobs(method, method.start(), devices=[1])
    once = replace(job.phases[0], steps=3, hold=1)
    expected = samples(bench.task, once, job)[0].reshape(3, -1)
    for phase, batch in zip(job.phases, expected, strict=True):
        drawn, sizes = samples(bench.task, phase, job)
        assert sizes is None and drawn.reshape(2, -1).tolist() == [batch.tolist()] * 2


def test_a_held_smaller_last_batch(bench):
    method = bench.method("fedavg", local_epochs=1)
    (job,) = bench.jobs(method, method.start(), devices=[2])
    phase = job.phases[0]
    drawn, sizes = samples(bench.task, phase, job)
    held, twice = samples(bench.task, replace(phase, steps=2 * phase.steps, hold=2), job)
    assert twice == [size for size in sizes for _ in range(2)] and len(held) == 2 * len(drawn)
    assert held[-sizes[-1] :].tolist() == drawn[-sizes[-1] :].tolist()


def test_it_sends_one_model_and_computes_k_steps_for_each_batch(bench):
    fedavg = bench.method("fedavg", local_steps=4)
    method = bench.method("pfedme", local_steps=4, inner_steps=5)
    assert method.payload(0.0) == fedavg.payload(0.0)
    (mine,), (plain,) = method.stages(0, 0.0), fedavg.stages(0, 0.0)
    assert mine.work.flops == 5 * plain.work.flops


def test_a_device_uses_theta_and_begins_at_w(bench):
    method, state = bench.play("pfedme", rounds=1, local_steps=2)
    size = bench.task.layout.size
    assert torch.equal(method.personalise(state, 1), state.local[1])
    received = method.received(state, 1)
    assert torch.equal(received[:size], received[size:])
    (update,) = Trainer(method.task).submit(bench.jobs(method, state, devices=[1]))
    assert int(method.encode(update.job, update.result()).travels.sum()) == size
