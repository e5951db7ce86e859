"""The posterior of survival counts, and their bits."""

import numpy as np
import pytest

from edgesim.seeds import Seeds
from fl.masks.posterior import Beta
from fl.methods.fedmap.granularity import PerWeight
from fl.methods.fedmap.keep_probability_posterior import count_bits
from fl.methods.fedmap.thinning import thin
from fl.models.architectures import build

LENET = build("lenet5-caffe", (1, 28, 28), 10).layout


def rng(name="thin", **keys):
    return Seeds(1).stream(name, **keys)


def test_posterior_of_one_device():
    """FedMAP, eq. (9), with a prior of 2: alpha = 2 + m, beta = 2 + [m < n]."""
    prior = Beta(np.full(4, 2.0), np.full(4, 2.0))
    after = prior.counted([(np.array([1, 0, 1, 2]), 2)])
    assert after.alpha.tolist() == [3, 2, 3, 4]
    assert after.beta.tolist() == [3, 3, 3, 2]
    assert after.mode().tolist() == pytest.approx([1 / 2, 1 / 3, 1 / 2, 3 / 4])
    assert prior.mode().tolist() == [0.5] * 4


def test_a_literal_device_of_full_capacity_tells_nothing():
    """E1: n = 0, m = 0 adds neither a success nor a failure."""
    prior = Beta(np.full(2, 2.0), np.full(2, 2.0))
    after = prior.counted([(np.zeros(2), 0)])
    assert (after.alpha == 2).all()
    assert (after.beta == 2).all()


@pytest.mark.parametrize(
    ("draws", "raw", "bit"), [(1, 430_500, 1), (2, 861_000, 1.5), (4, 1_291_500, 1.875)]
)
def test_bits_of_survival_counts_at_one_half(draws, raw, bit):
    """The entropy of a truncated geometric count, 2 - 2^(1-n) bits at p = 1/2."""
    exact = np.concatenate(
        [np.full(2 ** (draws - 1 - min(m, draws - 1)), m) for m in range(draws + 1)]
    )
    assert np.bincount(exact).tolist()[-1] == 1
    assert count_bits(exact, draws, "entropy") / len(exact) == pytest.approx(bit, abs=1e-12)
    grain = PerWeight(LENET)
    drawn = thin(grain, np.full(grain.count, 0.5, np.float32), 1.001 * 2.0**-draws, rng())
    assert drawn.draws == draws
    assert count_bits(drawn.survived, draws, "raw") == raw
    assert count_bits(drawn.survived, draws, "entropy") == pytest.approx(430_500 * bit, rel=0.002)


def test_raw_bits_of_six_draws():
    assert count_bits(np.zeros(430_500, int), 6, "raw") == 1_291_500
