"""VGG-13 and VGG-16 against torch's own modules with the same weights."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from edgesim.seeds import Seeds
from fl.models.architectures import build

pytestmark = pytest.mark.slow

PLANS = {  # Simonyan and Zisserman, ICLR 2015, Table 1, B and D: filters, and 0 for a pool
    "vgg13": (64, 64, 0, 128, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0),
    "vgg16": (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0),
}
LABELS = torch.tensor([3, 5])


def reference(plan):
    """Convolutions of 3x3 with a bias, batch norms and ReLUs, pools, one linear layer."""
    layers, inputs = [], 3
    for filters in plan:
        if filters:
            layers += [nn.Conv2d(inputs, filters, 3, padding=1), nn.BatchNorm2d(filters), nn.ReLU()]
        else:
            layers.append(nn.MaxPool2d(2))
        inputs = filters or inputs
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(inputs, 7))


def model_and_pictures(name, dtype):
    """The architecture, its tensors, of which no norm is 1 or 0, and two pictures."""
    architecture, rng = build(name, (3, 32, 32), 7), np.random.default_rng(1)
    w = torch.from_numpy(architecture.initial(Seeds(0).stream("init"))).to(dtype)
    for slot in architecture.layout.slots:
        if slot.kind == "norm":
            w[slot.slice] += 0.1 * torch.from_numpy(rng.standard_normal(slot.size)).to(dtype)
    tensors = [part.requires_grad_() for part in architecture.layout.split(w)]
    return architecture, tensors, torch.from_numpy(rng.random((2, 3, 32, 32))).to(dtype)


@pytest.mark.parametrize("name", PLANS)
def test_logits_and_gradients_are_torchs(name):
    architecture, tensors, x = model_and_pictures(name, torch.float32)
    theirs = reference(PLANS[name])
    with torch.no_grad():
        for place, own in zip(theirs.parameters(), tensors, strict=True):
            assert place.shape == own.shape
            place.copy_(own)
    logits, expected = architecture.forward(tensors, x), theirs(x)
    assert torch.allclose(logits, expected, atol=1e-5)
    mine = torch.autograd.grad(cross_entropy(logits, LABELS), tensors)
    cross_entropy(expected, LABELS).backward()
    for own, place in zip(mine, theirs.parameters(), strict=True):
        assert torch.allclose(own, place.grad, atol=1e-5)


@pytest.mark.parametrize("name", PLANS)
def test_gradients_are_differences(name):
    """100 random coordinates, in double precision; larger steps cross the kinks of ReLUs."""
    architecture, tensors, x = model_and_pictures(name, torch.float64)
    parts = torch.autograd.grad(cross_entropy(architecture.forward(tensors, x), LABELS), tensors)
    gradient = torch.cat([part.flatten() for part in parts])
    w, rng = torch.cat([part.detach().flatten() for part in tensors]), np.random.default_rng(0)
    chosen = rng.choice(len(w), 100, replace=False)
    direction = torch.zeros_like(w)
    direction[chosen] = torch.from_numpy(rng.choice([-1.0, 1.0], 100))
    with torch.no_grad():
        up, down = (
            cross_entropy(architecture.logits(w + step * direction, x), LABELS)
            for step in (1e-7, -1e-7)
        )
    slope = float(gradient @ direction)
    assert float((up - down) / 2e-7) == pytest.approx(slope, rel=1e-5) and abs(slope) > 0.01
