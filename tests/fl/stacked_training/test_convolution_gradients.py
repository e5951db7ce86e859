"""Batched products against torch's own backward pass, for every shipped CNN that suits them."""

import pytest
import torch

from fl.models.architectures import build
from fl.models.named_models import MODELS, TEXT
from fl.stacked_training.convolution_gradients import ConvolutionGradients
from fl.stacked_training.perceptron_gradients import ProductGradient
from fl.stacked_training.stackable_models import is_plain_cnn
from fl.stacked_training.vmapped_gradients import VmappedGradients

SHAPE = (1, 28, 28)
IMAGES = [name for name in MODELS if name not in TEXT]
PLAIN = ["digits-cnn", "liu-cnn", "fedlps-cnn", "lenet5-caffe"]


def test_which_models_are_plain():
    """What has batch norm, a residual or attention is not; the small and the large CNNs are."""
    assert [name for name in IMAGES if is_plain_cnn(build(name, (3, 32, 32), 10))] == PLAIN


@pytest.mark.parametrize("name", PLAIN)
def test_loss_hits_and_gradients_are_those_of_autograd(name):
    architecture, models, batch = build(name, SHAPE, 10), 3, 5
    generator = torch.Generator().manual_seed(0)
    slots = architecture.layout.slots
    leaves = [
        torch.randn(models, *slot.shape, generator=generator, dtype=torch.float64) / 10
        for slot in slots
    ]
    x = torch.rand(models, batch, *SHAPE, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 10, (models, batch), generator=generator)
    share = torch.full((models, batch), 1 / batch, dtype=torch.float64)
    trained = [True] * len(slots)
    expected = VmappedGradients(architecture, trained)(leaves, x, y, share)
    found = ConvolutionGradients(architecture, trained)(leaves, x, y, share)
    assert torch.allclose(found[0].view(models, batch), expected[0])
    assert torch.equal(found[1], expected[1])
    for one, other in zip(found[2], expected[2], strict=True):
        value = one.value() if isinstance(one, ProductGradient) else one
        assert other.abs().max() > 1e-6 and torch.allclose(value, other, atol=1e-12)
