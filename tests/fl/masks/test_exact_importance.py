"""Liu, eq. (19): the loss without each weight, by hand and beside its linear estimate."""

import pytest
import torch

from fl.masks.exact_importance import loss_changes
from fl.models.architectures import Architecture
from fl.models.layers.learned_layers import Linear
from fl.objective import ERRORS, Objective

SQUARED = Objective(ERRORS["squared-error"], plain=False, labels=False)
LINEAR = Architecture("linear", (2,), 1, (Linear(2, 1, bias=False),))


def changes(w, x, y, among=None):
    w, x, y = torch.tensor(w), torch.tensor(x), torch.tensor(y)
    among = torch.ones(len(w), dtype=torch.bool) if among is None else torch.tensor(among)
    return loss_changes(LINEAR, w, among, x, y, SQUARED.mean)


def test_squared_error_by_hand():
    """2 * 1 + 1 * 3 = 5 where 4 is asked: 1. Without w_1 3, again 1; without w_2 2, which is 4."""
    assert changes([2.0, 1.0], [[1.0, 3.0]], [[4.0]]).tolist() == [0.0, 3.0]
    assert changes([2.0, 1.0], [[1.0, 3.0]], [[4.0]], [False, True]).tolist() == [3.0]


def test_a_batch_has_the_change_of_its_mean():
    """Second sample: 2 - 1 = 1 where 3 is asked: 4; without w_1 16, without w_2 1."""
    found = changes([2.0, 1.0], [[1.0, 3.0], [1.0, -1.0]], [[4.0], [3.0]])
    assert found.tolist() == [(0 + 12) / 2, (3 - 3) / 2]


def test_changes_below_the_rounding_of_a_loss_in_single_precision():
    """(1000 + w_1 1e-3)^2 changes by 2e-6, of which 1e6 as a float32 has nothing."""
    assert changes([1e-6, 1.0], [[1e-3, 1e3]], [[0.0]])[0].item() == pytest.approx(-2e-6, rel=1e-3)


def test_small_weights_change_the_loss_by_gradient_times_weight(bench):
    """Every tensor of a CNN: F(w | w_j = 0) - F(w) = -g_j w_j + O(w_j^2)."""
    model, task = bench.task.architecture, bench.task
    x, y = (each[:8] for each in task.train)
    w = task.initial().double()
    generator = torch.Generator().manual_seed(1)
    among = torch.rand(len(w), generator=generator) < 0.03
    w[among] *= 1e-4
    leaf = w.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(task.objective.mean(model.logits(leaf, x.double()), y), leaf)
    found = loss_changes(model, w, among, x, y, task.objective.mean)
    expected = -(gradient * w)[among]
    assert float(expected.abs().max()) > 1e-7
    assert torch.allclose(found, expected, rtol=1e-2, atol=1e-11)
