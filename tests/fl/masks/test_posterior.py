"""Bits of a mask that is sent."""

import pytest

from fl.masks.posterior import mask_bits


@pytest.mark.parametrize(("gamma", "bits"), [(1 / 4, 349_255), (1 / 16, 145_203), (1 / 64, 49_988)])
def test_bits_of_a_mask(gamma, bits):
    kept = int(gamma * 430_500)
    assert mask_bits(430_500, kept, "entropy") == pytest.approx(
        bits, abs=6
    )  # gamma d rounded down: log2(63) = 6 bit
    assert mask_bits(430_500, kept, "bitmap") == 430_500
    assert mask_bits(430_500, kept, "seed") == 64
    assert mask_bits(430_500, kept, "none") == 0
