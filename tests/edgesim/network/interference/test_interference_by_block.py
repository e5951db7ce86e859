"""Interference in the resource blocks that devices hold: by hand, and what must hold of any."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.network.fading.selective import SelectiveFading
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.resource_grid import ResourceGrid
from edgesim.network.interference.sector_bands import SectorBands
from edgesim.network.interference.sector_channel import SectorChannel
from edgesim.network.interference.uplink_rates import UplinkRates
from edgesim.seeds import Seeds
from fl.contracts import Grant
from solvers.rate_laws.efficiency_laws import HullLaw

NOISE = 1e-20  # W/Hz; gains, powers and band below make signals 100 and interference 0 to 24 of it
LAW = HullLaw(np.array([0.25, 1.0, 3.0, 10.0]), np.array([0.25, 0.8, 1.5, 2.5]))
SEEDS = st.integers(0, 10**6)


def rates_of(couplings, shares, blocks=None, offset=None, power_w=None, **options):
    """Rates of devices that hold these shares and send with 1 W over 1 MHz, or ``power_w``."""
    bands = SectorBands(couplings)
    bands.grant([Grant(k, share, 0.0, 1e9, 0.0) for k, share in enumerate(shares)])
    bands.sending[:] = True
    grid = None if blocks is None else ResourceGrid(bands, blocks, Seeds(0))
    if offset is not None:
        grid.offset[:] = offset
    channel = SectorChannel(couplings, bandwidth_hz=1e6, noise_w_per_hz=NOISE, **options)
    rates = UplinkRates(couplings, channel, bands, grid)
    rates.power_w[:] = np.array(shares) if power_w is None else power_w
    return rates


def everybody(rates, fewer=()):
    """Rates of all, bit/s, where all but ``fewer`` send."""
    sending = np.ones(len(rates.couplings), dtype=bool)
    sending[list(fewer)] = False
    return rates(sending, 0.0)[0]


def drawn(network, seed):
    """(couplings of two to four sectors, shares, powers, blocks)."""
    rng = np.random.default_rng(seed)
    sectors, each = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    couplings = network.gains(seed, sectors, each)
    shares = rng.dirichlet(np.ones(each), sectors).ravel() * rng.uniform(0.3, 1.0)
    return couplings, shares, rng.uniform(0.01, 0.2, len(couplings)), int(rng.integers(1, 60))


@pytest.mark.parametrize("offset", range(4))
def test_two_sectors_by_hand(offset):
    """1 MHz, four blocks. Device 0 has all of them; 1 and 2 have two each in the other sector.

    Densities 1 uW/Hz x gains 1e-12, over a noise of 1e-20 W/Hz: signal 100. From devices 1 and 2
    come 24 and 0 of the noise: half of the band has SINR 4, half has 100. Of device 0 come 3.
    """
    gain = [[1e-12, 3e-14], [2.4e-13, 1e-12], [0.0, 1e-12]]
    rates = rates_of(Couplings(gain, [0, 1, 1]), [1.0, 0.5, 0.5], 4, [offset, 1.0])
    found, efficiency, _ = rates(np.ones(3, dtype=bool), 0.0)
    half = math.log2(1 + 25.0)
    mean = 0.5 * (math.log2(1 + 100 / 25) + math.log2(1 + 100))
    assert found == pytest.approx([1e6 * mean, 0.5e6 * half, 0.5e6 * half], rel=1e-12)
    assert efficiency == pytest.approx([mean, half, half], rel=1e-12)
    assert rates.density == pytest.approx([12 * NOISE, 3 * NOISE], rel=1e-12, abs=0.0)
    with_mean = rates_of(rates.couplings, [1.0, 0.5, 0.5])
    assert everybody(with_mean)[0] == pytest.approx(1e6 * math.log2(1 + 100 / 13), rel=1e-12)


def test_the_ratio_is_that_without_what_the_receiver_loses():
    """6.0206 dB, a factor of 4: device 0 above has SINR 1 and 25 for its rate, and still 4 and 100.

    log2(1 + SINR) of the mean: 1/2 log2(2 x 26) carries bits, and sqrt(5 x 101) - 1 = 21.472205 is
    the ratio; 4 (sqrt(2 x 26) - 1) = 24.844410 is none.
    """
    gain = [[1e-12, 3e-14], [2.4e-13, 1e-12], [0.0, 1e-12]]
    rates = rates_of(Couplings(gain, [0, 1, 1]), [1.0, 0.5, 0.5], 4, [0, 1.0], loss=4.0)
    found, efficiency, _ = rates(np.ones(3, dtype=bool), 0.0)
    assert found[0] == pytest.approx(1e6 * 0.5 * math.log2(2 * 26), rel=1e-12)
    assert 2.0 ** efficiency[0] - 1.0 == pytest.approx(21.472205, abs=1e-6)
    assert 2.0 ** efficiency[1:] - 1.0 == pytest.approx([25.0, 25.0], rel=1e-12)


@pytest.mark.parametrize("loss", [1.0, 4.0])
def test_the_ratio_is_that_of_the_mean_over_parts_of_the_band_that_fade_apart(loss):
    """SINR 100 / 25 = 4 and 100 / 4 = 25 before fading, over what the receiver loses for the rate.

    Of the mean power over the band, the ratio was up to 2 dB above that of the bits that were sent.
    """
    band = SelectiveFading(Seeds(0), 2, 1.0, delay_spread_s=1e-6, bandwidth_hz=1e6, parts=4)
    couplings = Couplings([[1e-12, 3e-14], [2.4e-13, 1e-12]], [0, 1])
    rates = rates_of(couplings, [1.0, 1.0], fading=band, loss=loss)
    found, efficiency, _ = rates(np.ones(2, dtype=bool), 0.0)
    ratio = np.array([[4.0], [25.0]]) * band.powers(0)
    assert efficiency == pytest.approx(np.log2(1.0 + ratio).mean(axis=1), rel=1e-12)
    assert found == pytest.approx(1e6 * np.log2(1.0 + ratio / loss).mean(axis=1), rel=1e-12)


def test_three_sectors_and_blocks_that_are_divided():
    """Device 0 has blocks 0 and half of 1. Device 1 has the other half of 1, which a quarter of
    device 2 fills from the next sector: 0.75 of a block, beside device 3 in block 0 of a third.

    The density of a block is its mean: in block 1 device 2 with 8 x 0.75, in block 0 device 3
    with 4 times the noise.
    """
    gain = [[1e-12, 0, 0], [1e-12, 0, 0], [8e-14, 1e-12, 0], [4e-14, 0, 1e-12]]
    shares = [0.375, 0.125, 0.1875, 0.25]
    rates = rates_of(Couplings(gain, [0, 0, 1, 2]), shares, 4, [0.0, 1.0, 0.0])
    zero, one = math.log2(1 + 100 / 5), math.log2(1 + 100 / 7)
    wanted = [0.25e6 * zero + 0.125e6 * one, 0.125e6 * one]
    assert everybody(rates)[:2] == pytest.approx(wanted, rel=1e-12)
    # of device 2, not of device 3
    wanted = [0.25e6 * math.log2(1 + 100) + 0.125e6 * one, 0.125e6 * one]
    assert everybody(rates, fewer=[3])[:2] == pytest.approx(wanted, rel=1e-12)


def test_a_law_takes_the_ratio_of_the_mean_of_the_bits():
    """Half of the band with SINR 4 and half with 100, as in the first test."""
    couplings = Couplings([[1e-12, 0], [2.4e-13, 1e-12], [0.0, 1e-12]], [0, 1, 1])
    wanted = 1e6 * float(LAW.efficiency(np.sqrt(5.0 * 101.0) - 1.0))
    rates = rates_of(couplings, [1.0, 0.5, 0.5], 4, law=LAW)
    assert everybody(rates)[0] == pytest.approx(wanted, rel=1e-12)


class Faded:
    """Interfering links of twice their mean."""

    def powers(self, n, k_factor=None):
        return np.full((3, 2), 2.0)


def test_interfering_links_fade_in_every_block():
    couplings = Couplings([[1e-12, 0], [1.2e-13, 1e-12], [0.0, 1e-12]], [0, 1, 1])
    rates = rates_of(couplings, [1.0, 0.5, 0.5], 4, cross=Faded())
    assert everybody(rates)[0] == pytest.approx(0.5e6 * math.log2(5 * 101), rel=1e-12)


@settings(max_examples=25)
@given(SEEDS, st.sampled_from([None, LAW]))
def test_one_sector_alone_has_the_rates_of_noise(seed, law):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 6))
    alone = Couplings(10.0 ** rng.uniform(-13, -9, (count, 1)), np.zeros(count, dtype=int))
    shares, blocks = rng.dirichlet(np.ones(count)), int(rng.integers(1, 60))
    noise = everybody(rates_of(alone, shares, law=law))
    assert everybody(rates_of(alone, shares, blocks, law=law)) == pytest.approx(noise, rel=1e-12)


@settings(max_examples=25)
@given(SEEDS, st.integers(1, 60), st.integers(1, 4))
def test_full_grids_of_equal_densities_have_the_rates_of_the_mean(seed, blocks, each):
    """Devices of a sector arrive alike at every other sector, and fill their own."""
    rng = np.random.default_rng(seed)
    gain = np.repeat(10.0 ** rng.uniform(-13, -11, (3, 3)), each, axis=0)
    couplings = Couplings(gain, np.repeat(np.arange(3), each))
    shares = rng.dirichlet(np.ones(each), 3).ravel()
    mean = everybody(rates_of(couplings, shares))
    assert everybody(rates_of(couplings, shares, blocks)) == pytest.approx(mean, rel=1e-11)


@settings(max_examples=40)
@given(SEEDS)
def test_the_mean_over_the_blocks_is_the_mean_over_the_band(network, seed):
    couplings, shares, power_w, blocks = drawn(network, seed)
    mean, by_block = (rates_of(couplings, shares, n, power_w=power_w) for n in (None, blocks))
    everybody(mean), everybody(by_block)
    assert by_block.density == pytest.approx(mean.density, rel=1e-11, abs=0.0)


@settings(max_examples=15)
@given(SEEDS)
def test_over_all_places_of_an_interfering_sector_no_device_has_less_than_with_the_mean(
    network, seed
):
    """The rate is convex in I, and each block meets each block of the other sector once."""
    rng = np.random.default_rng(seed)
    couplings, shares = network.gains(seed, 2, 2), rng.dirichlet(np.ones(2), 2).ravel()
    mean, blocks = everybody(rates_of(couplings, shares)), int(rng.integers(1, 12))
    each = [everybody(rates_of(couplings, shares, blocks, [0, n])) for n in range(blocks)]
    assert (np.mean(each, axis=0)[:2] >= mean[:2] * (1 - 1e-12)).all()


@pytest.mark.slow
@settings(max_examples=40)
@given(SEEDS, st.data())
def test_one_interferer_more_speeds_nobody_up(network, seed, data):
    couplings, shares, power_w, blocks = drawn(network, seed)
    rates = rates_of(couplings, shares, blocks, power_w=power_w)
    silent = data.draw(st.sets(st.integers(0, len(couplings) - 1), min_size=1))
    before = everybody(rates, silent)
    after = everybody(rates, sorted(silent)[1:])
    others = [k for k in range(len(couplings)) if k != min(silent)]
    assert (after[others] <= before[others] * (1 + 1e-12)).all()
