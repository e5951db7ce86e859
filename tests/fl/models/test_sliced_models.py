"""Is the masked dense model the sliced one? For every architecture: outputs, one SGD step, batch
norm in both modes.

In double precision: the two sum in different orders, so they agree to rounding and not to the byte.
"""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from edgesim.seeds import Seeds
from fl.models.architectures import build
from fl.models.batch_norm import Collected
from fl.models.named_models import MODELS

SHAPES = {
    "vgg11": (3, 32, 32),
    "vgg13": (3, 32, 32),
    "vgg16": (3, 32, 32),
    "resnet18": (3, 8, 8),
    "spafl-conv4": (3, 28, 28),
    "shakespeare-lstm": (12,),
    "reddit-lstm": (12,),
    "vit": (3, 8, 8),
    "lenet5-caffe": (1, 20, 20),
    "fedlps-cnn": (1, 20, 20),
}


def random_units(rng, units):
    kept = rng.random(units) < 0.6
    kept[rng.integers(units)] = True
    return kept


def prefix_units(rng, units):
    return np.arange(units) < np.ceil(rng.choice([0.25, 0.5, 0.8]) * units)


def sliced(layout, tensors, kept):
    """The tensors [..] of the layout, only where all axes lie on kept units."""
    for slot, tensor in zip(layout.slots, tensors, strict=True):
        for dimension, axis in enumerate(slot.axes):
            if axis is not None and axis.group in kept:
                places = torch.from_numpy(np.flatnonzero(axis.spread(kept[axis.group])))
                tensor = tensor.index_select(dimension, places)
        yield tensor.clone().requires_grad_()


def narrow(name, choose, seed=0):
    """An architecture, its masked dense tensors, the sliced ones, the mask, and a batch."""
    architecture = build(name, SHAPES.get(name, (1, 8, 8)), 10)
    layout, rng = architecture.layout, np.random.default_rng(seed)
    kept = {
        group.name: choose(rng, group.units) for group in layout.groups.values() if group.hidden
    }
    mask = torch.from_numpy(layout.expand(kept))
    w = torch.from_numpy(architecture.initial(Seeds(seed).stream("init"))).double()
    w += 0.1 * torch.from_numpy(
        rng.standard_normal(layout.size)
    )  # so that the norms' scales differ from 1
    dense = [view.clone().requires_grad_() for view in layout.split(w * mask)]
    shape = (4, *architecture.input_shape)
    x = torch.from_numpy(rng.integers(0, 10, shape) if len(shape) == 2 else rng.random(shape))
    y = x.roll(1, dims=1) if architecture.at_every_step else torch.arange(4)
    return architecture, kept, mask, dense, list(sliced(layout, dense, kept)), (x, y)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "choose"),
    [(name, random_units) for name in MODELS]
    + [(name, prefix_units) for name in MODELS if name not in ("vgg11", "vgg16")],  # as vgg13
)
def test_outputs_and_a_step_of_sgd(name, choose):
    architecture, kept, mask, dense, small, (x, y) = narrow(name, choose)
    assert sum(tensor.numel() for tensor in small) == mask.sum() < mask.numel()
    moved = []
    for tensors in (dense, small):
        logits = architecture.forward(tensors, x)
        gradients = torch.autograd.grad(cross_entropy(logits, y), tensors)
        moved.append(
            (
                logits.detach(),
                [(t - 0.1 * g).detach() for t, g in zip(tensors, gradients, strict=True)],
            )
        )
    (dense_logits, dense_moved), (small_logits, small_moved) = moved
    assert dense_logits.std() > 1e-3
    assert torch.allclose(small_logits, dense_logits, atol=1e-9)
    for expected, got, before in zip(
        sliced(architecture.layout, dense_moved, kept), small_moved, small, strict=True
    ):
        assert torch.allclose(got, expected, atol=1e-9)
        assert not torch.equal(got, before)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spafl-conv4", "vgg11", "resnet18"])
def test_outputs_with_frozen_statistics(name):
    architecture, _, _, dense, small, (x, _) = narrow(name, random_units, seed=1)
    logits = []
    for tensors in (dense, small):
        norms = Collected()
        for part in x.split(2):
            architecture.forward(tensors, part, norms)
        logits.append(architecture.forward(tensors, x[:1], norms.frozen()))
    assert torch.allclose(*logits, atol=1e-9)
    assert not torch.allclose(logits[0], architecture.forward(dense, x)[:1], atol=1e-3)
