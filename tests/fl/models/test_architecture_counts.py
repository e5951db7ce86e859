"""Parameters and multiply-adds of the larger models, as FedLPS's program counts them."""

import numpy as np
import pytest

from fl.accounting import Accounting, forward_flops, step_cost
from fl.models.architectures import build


@pytest.mark.parametrize(
    ("name", "shape", "classes", "size", "macs", "flops", "round_mflop"),
    [
        ("vgg13", (3, 32, 32), 100, 9_462_180, 228_313_088, 456_876_132, 4_934_262.2),
        ("vgg16", (3, 64, 64), 200, 15_132_936, 1_253_195_776, 2_507_497_672, 27_080_974.9),
    ],
)
def test_the_larger_vggs(name, shape, classes, size, macs, flops, round_mflop):
    """On CIFAR-100 and Tiny-ImageNet: 2 FLOP per multiply-add, 1 per bias and output.

    A client's round is 5 passes over 36 batches of 20, a backward pass twice a forward pass.
    """
    architecture = build(name, shape, classes)
    assert architecture.layout.size == size and sum(architecture.macs.values()) == macs
    twice = Accounting(count_biases=True, backward="twice")
    assert forward_flops(architecture, twice) == flops
    everything = np.ones(size, dtype=bool)
    step = step_cost(architecture, everything, ~everything, twice)
    assert 5 * 36 * 20 * step.flops / 1e6 == pytest.approx(round_mflop, abs=0.06)
