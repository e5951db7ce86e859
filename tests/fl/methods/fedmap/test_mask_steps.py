"""Mask steps: gradients, counts and the differentiable expansion."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fl.accounting import StepCost
from fl.methods.fedmap.granularity import PerUnit, PerWeight
from fl.methods.fedmap.mask_steps import MaskSteps, probability, spread
from fl.methods.fedmap.thinning import Record
from fl.models.architectures import build
from fl.models.layout import Layout, Slot

U1, U2 = [0.3, 0.7, 0.1, 0.4], [0.6, 0.2, 0.9, 0.1]


class Fixed:
    """A generator whose uniforms are given."""

    def __init__(self, *draws):
        self.draws = list(draws)

    def random(self, size, dtype):
        draw = np.asarray(self.draws.pop(0), dtype=dtype)
        assert len(draw) == size
        return draw


def weights(count, least=0):
    """A grain of one layer of so many weights."""
    return PerWeight(Layout((Slot("w", (count, 1), 0, "weight", "classifier", 0),)), least)


def mask_steps(exponent="draws", scaled=False, gamma=0.5, indicator="candidates"):
    settings = SimpleNamespace(
        places=weights(4),
        least_draws=1,
        exponent=exponent,
        surrogate="fedpm",
        mask_scaler=scaled,
        indicator=indicator,
    )
    return MaskSteps(0, settings, gamma, lambda child, parent: StepCost(1, 0, 10.0, 0))


def mask_gradient(steps, shrink, x=(1.0, 2.0, 3.0, 4.0)):
    """Gradient by s of sum_j c_j w_j, and the effective w, after the draws U1, U2 and the shrink
    draw.
    """
    w = torch.cat([torch.tensor(x), torch.zeros(4), torch.zeros(4)]).requires_grad_(True)
    computing = steps.effective(w, Fixed(U1, U2, shrink))
    (gradient,) = torch.autograd.grad(
        (computing * torch.tensor([1.0, 10.0, 100.0, 1000.0])).sum(), w
    )
    assert not gradient[:4].any()
    assert not gradient[8:].any()
    return gradient[4:8].tolist(), computing.detach().tolist()


SHAPES = {
    "digits-cnn": (1, 8, 8),
    "spafl-conv4": (3, 32, 32),
    "resnet18": (3, 32, 32),
    "shakespeare-lstm": (80,),
}


@pytest.mark.parametrize(
    ("shrink", "child"), [([1, 1, 1, 0.2], [0, 0, 0, 4]), ([1, 1, 1, 0.9], [0, 0, 0, 0])]
)
def test_the_gradient_belongs_to_the_parent_whatever_the_shrink_draw_left(shrink, child):
    """FedMAP, eq. (7): position 4 alone has a gradient, g x 0.1640625 (n = 3); the printed
    indicator gives also 1 and 3.
    """
    gradient, computing = mask_gradient(mask_steps(), shrink)
    assert computing == child
    assert gradient == [0, 0, 0, 1000 * 4 * 0.1640625]


def test_the_printed_exponent_counts_survivals():
    """E4: a candidate that the shrink draw removed has n - 1."""
    assert mask_gradient(mask_steps("survivals"), [1, 1, 1, 0.2])[0][3] == 4000 * 0.1640625
    assert mask_gradient(mask_steps("survivals"), [1, 1, 1, 0.9])[0][3] == 4000 * 0.15625


def test_the_printed_indicator_fails_where_nothing_survives_the_last_draw():
    """Counts 1, 0, 1, 3: the fourth alone. Counts 1, 0, 1, 2: also the first and the third."""
    printed = mask_steps(indicator="printed")
    assert np.nonzero(mask_gradient(printed, [1, 1, 1, 0.2])[0])[0].tolist() == [3]
    gradient, _ = mask_gradient(mask_steps(indicator="printed"), [1, 1, 1, 0.9])
    assert gradient == pytest.approx([each * 0.1640625 for each in (1, 0, 300, 4000)])


def test_the_scaler_multiplies_what_the_child_keeps():
    """H7b: one of four weights is kept, so that it counts twice; so does its gradient."""
    gradient, computing = mask_gradient(mask_steps(scaled=True), [1, 1, 1, 0.2])
    assert computing == [0, 0, 0, 8]
    assert gradient[3] == 2 * 4000 * 0.1640625


def test_what_a_device_counts_in_its_mask_steps():
    """The record: draws and cost of a mean step, without those of the upload."""
    steps = mask_steps()
    start = torch.zeros(12)
    w = steps.begin(start)
    for _ in range(2):
        steps.effective(w, Fixed(U1, U2, U1))
    after = steps.finish([w])
    assert Record(*after[8:].tolist()) == Record(draws=0, draws_per_step=3, flops=10, weights=1)
    w = steps.begin(start)  # a job may run twice
    steps.effective(w, Fixed([0.6, 0.7, 0.1, 0.4], U1))
    assert Record(*steps.finish([w])[8:].tolist()) == Record(
        draws=0, draws_per_step=2, flops=10, weights=1
    )
    assert not start.any()


def test_saturated_logits_still_leave_at_times():
    """p stays below 1, so that thinning comes to an end."""
    p = probability(torch.tensor([1e9, 40.0, 0.0, -1e9]))
    assert p[0] == p[1] < 1
    assert p[3] > 0
    assert 1 - float(p[0]) == pytest.approx(1e-6, rel=0.1)


@pytest.mark.parametrize("name", SHAPES)
def test_differentiable_expansion_is_the_expansion(name):
    layout = build(name, SHAPES[name], 10).layout
    for grain in (PerUnit(layout), PerWeight(layout)):
        chosen = np.random.default_rng(1).random(grain.count) < 0.5
        factors = spread(grain, torch.from_numpy(chosen).float())
        assert (factors.numpy() == grain.expand(chosen)).all()


def test_gradient_of_a_unit_gathers_its_weights_at_both_ends():
    """d sum(M w) / d m_u is the sum of w over what leaving the unit out would take away: its row
    and its column.
    """
    layout = build("digits-cnn", (1, 8, 8), 10).layout
    grain = PerUnit(layout)
    chosen = torch.ones(grain.count, requires_grad=True)
    w = torch.from_numpy(np.random.default_rng(2).normal(size=layout.size))
    (gradient,) = torch.autograd.grad((spread(grain, chosen) * w).sum(), chosen)
    for unit in (0, 9, grain.count - 1):
        one = np.ones(grain.count, bool)
        one[unit] = False
        without = grain.expand(one)
        assert float(gradient[unit]) == pytest.approx(
            float(w[~torch.from_numpy(without)].sum()), rel=1e-4
        )
