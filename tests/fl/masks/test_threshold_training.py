"""Gradients and steps of thresholds: SpaFL, eqs. (5) to (9)."""

from dataclasses import replace
from math import exp

import numpy as np
import pytest
import torch

from fl.contracts import Job
from fl.masks.threshold_training import SURROGATES, Pruner
from fl.masks.thresholds import ThresholdRows
from fl.models.layers.learned_layers import Linear
from fl.models.layers.weightless_layers import Relu
from fl.training import local_sgd as local
from tests.fl.two_neurons import (
    ALPHA,
    LR,
    QUICK,
    ROWS,
    STEP,
    TAU,
    G,
    bench_of,
    flat,
    rows_of,
    trained,
    with_gradient,
)


@pytest.mark.parametrize(
    ("mask_path", "weights"),
    [
        (True, [[0.25667, -0.45667, 0.15667], [0.002, -0.002, 0.002]]),
        (False, [[0.2, -0.4, 0.1], [0, 0, 0]]),
    ],
)
def test_gradients(mask_path, weights):
    rows = rows_of(Linear(3, 2, bias=False), shape=(3,))
    w = flat(ROWS, TAU).requires_grad_()
    loss = (Pruner(rows, mask_path=mask_path).effective(w) * torch.tensor(G).flatten()).sum()
    (gradient,) = torch.autograd.grad(loss, [w])
    assert gradient[6:].tolist() == pytest.approx([-0.17, -0.006], abs=1e-7)
    assert gradient[:6].tolist() == pytest.approx(np.ravel(weights), abs=5e-6)


def test_a_step(neurons):
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
    """g does not depend on w, so the second step is 1.9 times the first on the weights of the
    living row.
    """
    method = neurons.method("spafl", **STEP | {"momentum": 0.9, "local_steps": 2})
    done = trained(neurons, method, flat(ROWS, TAU))
    assert done.w[:3].tolist() == pytest.approx(
        [0.5 - 2.9 * 0.02, -0.1 + 2.9 * 0.04, 0.3 - 2.9 * 0.01], abs=1e-6
    )


def test_a_pruned_neuron_in_front_of_relu_moves_by_the_penalty_alone():
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


@pytest.mark.slow
def test_with_thresholds_at_0_the_weights_take_ordinary_sgd_steps_bit_for_bit(bench):
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


@pytest.mark.slow
def test_invariants_of_every_step(bench):
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

    class Counting(ThresholdRows):
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


@pytest.mark.slow
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
