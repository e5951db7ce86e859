"""Modules that compute in their backward pass, or before their forward pass."""

import pytest
import torch
from torch import nn
from torch.nn.utils import prune
from torch.utils.checkpoint import checkpoint

from fl.errors import ModelError


class Checkpointed(nn.Module):
    """A hidden layer whose signals are not stored but computed again."""

    def __init__(self, reentrant=False):
        super().__init__()
        self.hidden, self.head, self.reentrant = nn.Linear(6, 4), nn.Linear(4, 3), reentrant

    def forward(self, x):
        hidden = self.hidden(x).relu()
        if not self.training:
            return self.head(hidden)
        return checkpoint(self.head, hidden, use_reentrant=self.reentrant)


class Remembered(nn.Module):
    """Only what has no parameters is computed again."""

    def __init__(self):
        super().__init__()
        self.hidden, self.head = nn.Linear(6, 4), nn.Linear(4, 3)

    def forward(self, x):
        return self.head(checkpoint(torch.relu, self.hidden(x), use_reentrant=False))


class Product(torch.autograd.Function):
    """x W^T of a layer, which is kept for the backward pass in place of W."""

    @staticmethod
    def forward(ctx, x, layer):
        ctx.layer = layer
        return x @ layer.weight.T

    @staticmethod
    def backward(ctx, gradient):
        return gradient @ ctx.layer.weight, None


class KeepsLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.head = nn.Linear(6, 4), nn.Linear(4, 3)

    def forward(self, x):
        return Product.apply(self.hidden(x), self.head) + self.head.bias


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_module_that_computes_in_its_backward_pass_is_refused(own, reentrant):
    with pytest.raises(ModelError, match="computes layers again in its backward pass, as torch"):
        own(lambda: Checkpointed(reentrant)).layout  # noqa: B018


def test_a_function_that_keeps_its_layer_is_refused(own):
    """Its gradient was made of whatever was in the memory, 4e21, without an error."""
    with pytest.raises(ModelError, match="save the tensors that a backward pass of your own needs"):
        own(KeepsLayer).layout  # noqa: B018


def test_it_may_compute_again_what_has_no_parameters(own):
    assert own(Remembered).layout.size == 6 * 4 + 4 + 4 * 3 + 3


class FirstWeights(nn.Module):
    """A buffer that was computed from a parameter, and not detached from it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)
        self.register_buffer("first", 2.0 * self.layer.weight)

    def forward(self, x):
        return self.layer(x) + x @ self.first.T


def test_so_is_a_buffer(own):
    with pytest.raises(ModelError, match="it keeps first, computed from parameters before"):
        own(FirstWeights).layout  # noqa: B018


@pytest.mark.filterwarnings("ignore:.*weight_norm")
@pytest.mark.parametrize(
    "change", [torch.nn.utils.weight_norm, lambda layer: prune.l1_unstructured(layer, "weight", 1)]
)
@pytest.mark.parametrize("given", [True, False])
def test_a_tensor_computed_before_the_forward_pass_is_refused(own, change, given):
    """The old weight norm keeps the weight that it computed last; a copy of it is not possible."""

    def make():
        layer = nn.Linear(6, 3)
        change(layer)
        return nn.Sequential(layer)

    with pytest.raises(ModelError, match=r"0\.weight, computed from parameters before"):
        own(make() if given else make).layout  # noqa: B018
