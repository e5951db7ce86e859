"""Steps by hand on models of a few weights."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fl.contracts import Job, Payload, Phase
from fl.models.layers.learned_layers import Linear
from fl.training import local_sgd as local

ALL3, ALL4 = torch.ones(3, dtype=torch.bool), torch.ones(4, dtype=torch.bool)


def job_of(*phases, device=0, g=0, **options):
    return Job(device, g, phases, (), Payload(0.0, 0.0), 0.0, **options)


def squares(w, x, y):
    return 0.5 * (w[:2] @ x[0] + w[2] - y[0]) ** 2


@pytest.fixture
def plane(tiny_bench):
    """Three weights (two and a bias), one sample x = (1, 2), y = 1."""
    return tiny_bench([Linear(2, 1)], [[1.0, 2.0]], [1]).task


def test_one_step_on_three_weights(plane):
    """w = (1, 1, 0): error 3 - 1 = 2, gradient (2, 4, 2); lr 0.1; the second weight is masked."""
    w = torch.tensor([1.0, 1.0, 0.0])
    done = local.run(
        plane, job_of(Phase(w, torch.tensor([True, False, True]), 1, 0.1, loss=squares))
    )
    assert done.w.tolist() == pytest.approx([0.8, 1.0, -0.2])
    assert done.loss == 2.0
    assert w.tolist() == [1.0, 1.0, 0.0]  # what the server holds is not written to


def test_two_steps_and_a_rate_per_weight(plane):
    """After (0.8, 1, -0.2) the error is 1.6: with rates (0.1, 0, 0.1) the next step is 0.1 x 1.6
    x (1, -, 1).
    """
    rate = torch.tensor([0.1, 0.0, 0.1])
    done = local.run(
        plane, job_of(Phase(torch.tensor([1.0, 1.0, 0.0]), ALL3, 2, rate, loss=squares))
    )
    assert done.w.tolist() == pytest.approx([0.64, 1.0, -0.36])
    assert done.loss == pytest.approx((2.0 + 0.5 * 1.6**2) / 2)


def softmax_gradient(w, x, y):
    """Of cross entropy for logits (w0 x + w2, w1 x + w3): (p - onehot) x for the weights, p -
    onehot for the biases.
    """
    logits = np.array([w[0] * x + w[2], w[1] * x + w[3]])
    p = np.exp(logits) / np.exp(logits).sum() - np.eye(2)[y]
    return np.concatenate([p * x, p])


@pytest.fixture
def logistic(tiny_bench):
    return tiny_bench([Linear(1, 2)], [[2.0]], [1])


@pytest.mark.parametrize("mask", [[1, 1, 1, 1], [1, 0, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0]])
def test_masked_cross_entropy_step(logistic, mask):
    w = np.array([0.3, -0.1, 0.2, 0.4])
    phase = Phase(
        torch.tensor(w, dtype=torch.float32), torch.tensor(mask, dtype=torch.bool), 1, 0.5
    )
    expected = w - 0.5 * np.array(mask) * softmax_gradient(w, 2.0, 1)
    assert local.run(logistic.task, job_of(phase)).w.tolist() == pytest.approx(expected, abs=1e-6)


def test_pruning_by_hand(logistic):
    """Liu (20)-(22): the warm-up moves (w0, w1) twice as far as the biases (x = 2): rho = 0.5
    keeps w0 and w1.
    """
    method = logistic.method("pruning-only", local_steps=1, lr=0.5)
    state = method.start()
    (job,) = logistic.jobs(method, state, rho=0.5)
    done = local.run(logistic.task, job)
    start = state.w.double().numpy() * [1, 1, 0, 0]
    assert done.mask.tolist() == [True, True, False, False]
    expected = start - 0.5 * softmax_gradient(start, 2.0, 1) * [1, 1, 0, 0]
    assert done.w.tolist() == pytest.approx(expected, abs=1e-6)
    after = logistic.round(method, state, rho=0.5)
    assert after.w[:2].tolist() == pytest.approx(expected[:2], abs=1e-6)
    assert torch.equal(
        after.w[2:], state.w[2:]
    )  # nobody kept the biases: they keep their old value


def hidden_gradient(w, x, y):
    """Of logits W h + c with h = a x + b; w = (a, b, W0, W1, c0, c1)."""
    a, b, w0, w1, c0, c1 = w
    h = a * x + b
    logits = np.array([w0 * h + c0, w1 * h + c1])
    p = np.exp(logits) / np.exp(logits).sum() - np.eye(2)[y]
    back = p @ [w0, w1]
    return np.array([back * x, back, *(p * h), *p])


@pytest.mark.parametrize(
    ("name", "order"), [("fedalt", [[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1]]), ("fedsim", [[1] * 6])]
)
def test_personal_and_shared_steps_by_hand(tiny_bench, name, order):
    """Liu (6), (7): alternating, the shared gradient is taken at the new personal part."""
    bench = tiny_bench([Linear(1, 1, "features"), Linear(1, 2)], [[1.5]], [0])
    method = bench.method(name, personal_steps=1, global_steps=1, personal_lr=0.3, global_lr=0.2)
    state = method.start()
    rates = np.array([0.3, 0.3, 0.2, 0.2, 0.2, 0.2])
    w = state.w.double().numpy()
    for mask in order:
        w = w - rates * np.array(mask) * hidden_gradient(w, 1.5, 0)
    after = bench.round(method, state)
    assert after.w[2:].tolist() == pytest.approx(w[2:], abs=1e-6)
    assert torch.equal(after.w[:2], state.w[:2])  # the personal part does not travel
    assert after.local[0].tolist() == pytest.approx(w[:2], abs=1e-6)
    assert method.personalise(after, 0).tolist() == pytest.approx(w, abs=1e-6)


def test_batches_use_every_sample_before_one_comes_back(bench):
    task = bench.task
    mine = task.data.train_index[1]
    job = job_of(device=1, g=5)
    index = local.batches(task, Phase(None, None, 40, 0.1), job).flatten().numpy()
    assert index.shape == (40 * 16,)
    assert sorted(index[: len(mine)]) == sorted(mine)
    assert np.array_equal(
        index, local.batches(task, Phase(None, None, 40, 0.1), job).flatten().numpy()
    )
    assert np.array_equal(
        index[:32], local.batches(task, Phase(None, None, 2, 0.1), job).flatten().numpy()
    )
    other = (
        local.batches(task, Phase(None, None, 40, 0.1, batches="warm-up"), job).flatten().numpy()
    )
    assert not np.array_equal(index, other)


def test_batches_are_keyed_by_device_and_round(tiny_bench):
    task = tiny_bench([Linear(1, 2)], [[1.0]] * 40, [0] * 40, batch_size=20).task
    task.data.train_index[:2] = np.arange(20), np.arange(20, 40)
    phase = Phase(None, None, 1, 0.1)
    orders = [
        local.batches(task, phase, job_of(device=k, g=g))[0] % 20
        for k, g in ((0, 0), (1, 0), (0, 1))
    ]
    assert len({tuple(order.tolist()) for order in orders}) == 3


def test_a_device_with_fewer_samples_than_a_batch(tiny_bench):
    task = tiny_bench([Linear(1, 2)], [[1.0], [2.0]], [0, 1], batch_size=8).task
    assert local.batches(task, Phase(None, None, 3, 0.1), job_of(device=1)).tolist() == [
        [1],
        [1],
        [1],
    ]


def test_finish_makes_the_result_of_all_phases(logistic):
    w = torch.zeros(4)
    phases = Phase(w, ALL4, 1, 0.5), Phase(w + 1, ALL4, 0, 0.5)
    done = local.run(logistic.task, job_of(*phases, finish=lambda results: results[0] + results[1]))
    assert done.w.tolist() == pytest.approx(
        1 - 0.5 * softmax_gradient(np.zeros(4), 2.0, 1), abs=1e-6
    )


@pytest.mark.parametrize("name", ["scaffold", "feddyn", "fedprox", "hermes", "depthfl"])
def test_the_loss_that_is_reported_is_without_the_penalty(bench, name):
    """Of the first step, which both devices take from the same model."""
    method = bench.method(name, lr=0.05, local_steps=1)
    state = method.start()
    for _ in range(2):
        state = bench.round(method, state)
    jobs = [
        replace(job, phases=(replace(job.phases[-1], penalty=penalty),))
        for job in bench.jobs(method, state, devices=[0])
        for penalty in (job.phases[-1].penalty, None, lambda v: 7.0 + v.sum())
    ]
    losses = [local.run(method.task, job).loss for job in jobs]
    assert jobs[0].phases[0].penalty is not None
    assert losses[0] == pytest.approx(losses[1]) and losses[2] == pytest.approx(losses[1])


@pytest.mark.parametrize(
    ("name", "params"),
    [("depthfl", {}), ("apfl", {}), ("moon", {}), ("fjord", {"distillation": True})],
)
def test_the_loss_that_is_reported_is_that_of_the_samples(bench, name, params):
    """A model of zeros has the cross entropy ln 10, whatever else a method minimises beside it."""
    method = bench.method(name, lr=0.05, local_steps=1, **params)
    state = method.start()
    (job,) = bench.jobs(method, replace(state, w=torch.zeros_like(state.w)), devices=[0])
    assert local.run(method.task, job).loss == pytest.approx(np.log(10))
