"""FedNova: normalised means by hand."""

from dataclasses import replace

import pytest
import torch

from fl.contracts import Job, Payload, Phase, Trained
from fl.errors import MethodError
from tests.fl.conftest import view_of

LR = 0.1


class Walked:
    """An update of so many steps of size LR along a constant gradient."""

    def __init__(self, device, w, steps, gradient):
        phase = Phase(w, torch.ones(len(w), dtype=torch.bool), steps, LR)
        self.job = Job(device, 0, (phase,), (), Payload(0.0, 0.0), 0.0)
        self.trained = Trained(w - LR * steps * gradient, phase.mask, 0.0)

    def result(self):
        return self.trained


@pytest.mark.parametrize("gradients, fednova, fedavg", [((1, 1), -0.2, -0.2), ((1, -1), 0.0, 0.1)])
def test_one_and_three_steps_along_constant_gradients(bench, gradients, fednova, fedavg):
    for name, moved in (("fednova", fednova), ("fedavg", fedavg)):
        method = bench.method(name, weighting="uniform")
        state = replace(method.start(), w=torch.zeros_like(method.start().w))
        updates = [
            Walked(k, state.w, steps, g)
            for k, (steps, g) in enumerate(zip((1, 3), gradients, strict=True))
        ]
        after = method.aggregate(state, view_of(bench.task), updates)
        assert after.w[0].item() == pytest.approx(moved, abs=1e-7)


def test_how_far_steps_carry(bench):
    assert bench.method("fednova").reach(3, LR) == 3
    assert bench.method("fednova", momentum=0.9).reach(2, LR) == pytest.approx(2.9)
    assert bench.method("fednova", momentum=0.9).reach(3, LR) == pytest.approx(5.61)
    assert bench.method("fednova", mu=0.1).reach(3, LR) == pytest.approx(2.9701)


def test_how_far_steps_carry_that_have_become_tiny(bench):
    """1 - lr mu rounds to 1 from lr mu = 2^-54 on: 0.01, after 312 rounds with lr_decay 0.9."""
    method = bench.method("fednova", mu=0.1)
    assert [method.reach(3, rate) for rate in (1e-13, 1e-16)] == pytest.approx([3, 3], rel=1e-9)


def test_equal_steps_are_fedavg(bench):
    plain = {"local_steps": 3, "lr": LR, "weighting": "samples"}
    _, fedavg = bench.play("fedavg", rounds=2, **plain)
    _, state = bench.play("fednova", rounds=2, **plain)
    assert torch.allclose(state.w, fedavg.w, atol=1e-7)


def test_one_more_number_travels_up(bench):
    fedavg, method = bench.method("fedavg").payload(0.0), bench.method("fednova").payload(0.0)
    assert method.bits_up == fedavg.bits_up + 32 and method.bits_down == fedavg.bits_down


def test_mu_with_momentum_is_refused(bench):
    with pytest.raises(MethodError, match=r"mu.*momentum"):
        bench.method("fednova", mu=0.1, momentum=0.9)


def test_a_proximal_step_beyond_the_received_model_is_refused(bench):
    """With lr mu = 2 two steps end where they began: |a_k| would be 0."""
    with pytest.raises(MethodError, match=r"mu is 4\.0, .* lr mu up to 1; lr is 0\.5"):
        bench.method("fednova", lr=0.5, mu=4.0)
    assert bench.method("fednova", lr=0.5, mu=2.0).reach(3, 0.5) == 1


@pytest.mark.parametrize(
    ("eta", "fednova", "fedavg"),
    [(0.1, 0.05079, -0.46092), (0.01, 0.005008, -0.49623), (0.001, 0.0005, -0.49962)],
)
def test_where_one_and_three_steps_on_opposite_quadratics_end(bench, eta, fednova, fedavg):
    """Curvature 1, centres 1 and -1, the optimum is 0: FedAvg ends near who took more steps.

    After tau steps y = c + (1 - eta)^tau (w - c). A round is affine in w: two give its fixed point.
    """
    for name, limit in (("fednova", fednova), ("fedavg", fedavg)):
        method = bench.method(name, weighting="uniform", lr=eta)
        state, reached = method.start(), []
        for w in (0.0, 1.0):
            state = replace(state, w=torch.full_like(state.w, w, dtype=torch.float64))
            updates = []
            for k, (centre, steps) in enumerate([(1.0, 1), (-1.0, 3)]):
                phase = Phase(state.w, torch.ones(len(state.w), dtype=torch.bool), steps, eta)
                update = Walked(k, state.w, steps, 0.0)
                update.job = Job(k, 0, (phase,), (), Payload(0.0, 0.0), 0.0)
                moved = centre + (1 - eta) ** steps * (state.w - centre)
                update.trained = Trained(moved, phase.mask, 0.0)
                updates.append(update)
            reached.append(method.aggregate(state, view_of(bench.task), updates).w[0].item())
        assert reached[0] / (1 - reached[1] + reached[0]) == pytest.approx(limit, abs=6e-6)


@pytest.mark.parametrize(
    "from_now, left, expected",
    [(False, 0.5, 2.5), (True, 0.5, 2.0), (False, 1.0, 4.0), (True, 1.0, 3.0)],
)
def test_what_staleness_moves_is_the_normalised_change_of_the_device(
    bench, from_now, left, expected
):
    """From 0, two steps to 2 and four to 4, and the model is 1 by now; tau_eff = 3.

    Both changes are normalised to 3: 1 + s 3 if measured from the model downloaded, and
    1 + s (0 + 3 - 1) from that of now, also where the clock leaves all of an update, s = 1.
    """
    method = bench.method("fednova", weighting="uniform")
    zeros = torch.zeros_like(method.start().w)
    begun = replace(method.start(), w=zeros)
    now = replace(begun, g=1, w=zeros + 1.0)
    updates = [
        method.damped(Walked(k, zeros, steps, -1.0 / LR), now, now if from_now else begun, left)
        for k, steps in enumerate((2, 4))
    ]
    after = method.aggregate(now, view_of(bench.task), updates)
    assert after.w[0].item() == pytest.approx(expected, abs=1e-6)
