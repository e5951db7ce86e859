"""Parameters and multiply-adds of the larger models, as FedLPS's program counts them."""

import pytest

from fl.accounting import Accounting, forward_flops
from fl.models.architectures import build


@pytest.mark.parametrize(
    ("name", "shape", "classes", "size", "macs", "flops"),
    [
        ("vgg13", (3, 32, 32), 100, 9_462_180, 228_313_088, 456_876_132),
        ("vgg16", (3, 64, 64), 200, 15_132_936, 1_253_195_776, 2_507_497_672),
    ],
)
def test_the_larger_vggs(name, shape, classes, size, macs, flops):
    """On CIFAR-100 and Tiny-ImageNet: 2 FLOP per multiply-add, 1 per bias and output."""
    architecture = build(name, shape, classes)
    assert architecture.layout.size == size and sum(architecture.macs.values()) == macs
    assert forward_flops(architecture, Accounting(count_biases=True)) == flops
