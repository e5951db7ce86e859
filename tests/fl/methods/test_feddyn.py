"""FedDyn on quadratics: the first models by hand, and the limit."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fl.executors.deferred_training import Trainer
from tests.fl.conftest import view_of

EXACT = {"local_steps": 60, "lr": 0.25}  # the local optimum to the last digits of float32


@pytest.mark.slow
@pytest.mark.parametrize(
    "alpha, first", [(1.0, [-0.25, -0.375, -0.4375]), (0.1, [-0.058651, -0.087977, -0.113862])]
)
def test_the_first_rounds_by_hand(quadratics, alpha, first):
    """y_k = (a_k c_k + lam_k + alpha x) / (a_k + alpha); the sum is least at -0.5."""
    state, play = quadratics("feddyn", [1.0, 3.0], [1.0, -1.0], alpha=alpha, **EXACT)
    reached = []
    for _ in first:
        state = play(state)
        reached.append(state.w[0].item())
    assert reached == pytest.approx(first, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("alpha, rounds, steps", [(1.0, 12, 60), (0.1, 120, 5)])
def test_the_linear_terms_become_the_gradients_at_the_optimum(quadratics, alpha, rounds, steps):
    """The limit is -0.5 for every alpha, also where five local steps stop short of the minimum."""
    plain = {"local_steps": steps, "lr": 0.25}
    state, play = quadratics("feddyn", [1.0, 3.0], [1.0, -1.0], alpha=alpha, **plain)
    for _ in range(rounds):
        state = play(state)
    assert state.w[0].item() == pytest.approx(-0.5, abs=1e-3)
    assert [state.local[k][0].item() for k in (0, 1)] == pytest.approx([-1.5, 1.5], abs=4e-3)


def test_samples_weigh_the_mean_and_not_the_servers_drift(bench):
    """w + h / alpha is the weighted mean of y, and h / alpha = -1 / K sum (y - x)."""
    view, plain = view_of(bench.task), {"local_steps": 3, "lr": 0.1, "alpha": 0.1}
    view = replace(view, samples=np.array([1.0, 2.0, 3.0, 10.0]))
    method = bench.method("feddyn", weighting="samples", **plain)
    state = method.start()
    updates = Trainer(method.task).submit(bench.jobs(method, state))
    after = method.aggregate(method.retain(state, updates), view, updates)
    ends = torch.stack([each.result().w for each in updates])
    drift = after.memo["drift"]
    assert torch.allclose(drift, state.w - ends.mean(0), atol=1e-7)
    weighted = (ends * torch.tensor([1.0, 2.0, 3.0, 10.0])[:, None]).sum(0) / 16
    assert torch.allclose(after.w + drift, weighted, atol=1e-6)


def test_without_its_regulariser_it_is_fedavg_to_the_byte(bench):
    plain = {"local_steps": 3, "lr": 0.1}
    _, fedavg = bench.play("fedavg", rounds=3, **plain)
    _, state = bench.play("feddyn", rounds=3, alpha=0.0, **plain)
    assert torch.equal(state.w, fedavg.w) and not state.local
    _, other = bench.play("feddyn", rounds=3, alpha=0.1, **plain)
    assert not torch.allclose(other.w, fedavg.w, atol=1e-5)
