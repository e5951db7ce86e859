"""Shares of the sectors' bands, by hand, also through handovers."""

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.network_uplink import NetworkUplink
from edgesim.network.interference.sector_bands import SectorBands
from edgesim.network.interference.sector_channel import SectorChannel
from fl.contracts import Grant


def grants_of(shares):
    return [Grant(k, share, 0.0, 1e9, 1.0) for k, share in enumerate(shares)]


def bands_of(shares, serving, sectors=2, reclaim=False):
    bands = SectorBands(Couplings(np.ones((len(shares), sectors)), serving), reclaim)
    bands.grant(grants_of(shares))
    for k in range(len(shares)):
        bands.begin(k, shares[k])
    return bands


def test_a_device_brings_its_share_where_there_is_room():
    bands = bands_of([0.5, 0.25, 0.5], [0, 1, 1])
    bands.hand_over(0, 1)
    assert bands.couplings.serving.tolist() == [1, 1, 1]
    assert bands.shares().tolist() == [0.25, 0.25, 0.5]
    bands.release(1)
    assert bands.shares().tolist() == [0.5, 0.0, 0.5]


def test_a_device_waits_where_there_is_none_and_the_first_that_came_is_first():
    bands = bands_of([0.5, 0.5, 0.75, 0.25], [0, 0, 1, 1])
    bands.hand_over(1, 1)
    bands.hand_over(0, 1)
    assert bands.shares().tolist() == [0.0, 0.0, 0.75, 0.25]
    bands.release(3)
    assert bands.shares().tolist() == [0.0, 0.25, 0.75, 0.0]
    bands.release(2)
    assert bands.shares().tolist() == [0.5, 0.5, 0.0, 0.0]


def test_who_goes_frees_its_share_for_who_waits_there():
    bands = bands_of([1.0, 1.0], [0, 1])
    bands.hand_over(0, 1)
    bands.hand_over(1, 0)
    assert bands.shares().tolist() == [1.0, 1.0]


def test_reclaimed_band_stays_in_its_sector():
    bands = bands_of([0.5, 0.25, 0.25, 0.5], [0, 0, 0, 1], reclaim=True)
    bands.release(0)
    assert bands.shares() == pytest.approx([0.0, 0.5, 0.5, 0.5])
    bands.hand_over(3, 0)  # what the others were lent goes to who comes
    assert bands.shares() == pytest.approx([0.0, 0.25, 0.25, 0.5])
    bands.release(1)
    assert bands.shares() == pytest.approx([0.0, 0.0, 1 / 3, 2 / 3])


@settings(max_examples=40)
@given(st.data())
def test_the_shares_of_a_sector_never_sum_to_more_than_one(data):
    count, sectors = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 3))
    serving = data.draw(st.lists(st.integers(0, sectors - 1), min_size=count, max_size=count))
    each = np.bincount(serving, minlength=sectors)
    shares = [1.0 / each[s] for s in serving]
    bands = bands_of(shares, serving, sectors, data.draw(st.booleans()))
    for _ in range(data.draw(st.integers(1, 20))):
        device = data.draw(st.integers(0, count - 1))
        if data.draw(st.booleans()):
            bands.hand_over(device, data.draw(st.integers(0, sectors - 1)))
        else:
            bands.release(device)
        used = np.bincount(bands.couplings.serving, bands.shares(), sectors)
        assert used.max() <= 1.0 + 1e-12
        assert (bands.held <= bands.granted + 1e-15).all() and bands.shares().min() >= 0.0


def test_bits_left_go_on_in_the_new_sector():
    """1 Hz, SNR 1: half a bit/s, 1 of 2 bit sent at 2 s; then 0.25 of the band, 3 s more; then
    the share that device 1 leaves, 0.25 bit in 0.5 s."""
    couplings, env = Couplings(np.ones((2, 2)), [0, 1]), simpy.Environment()
    channel = SectorChannel(couplings, bandwidth_hz=1.0, noise_w_per_hz=1.0)
    channel.rate_bps = lambda share, power_w, gain: share  # 1 bit/s over the whole band
    uplink = NetworkUplink(env, channel, couplings, interference="none")
    one, two = grants_of([0.5, 0.75])
    uplink.begin_round([one, two])
    first = env.process(uplink.carry(2.0, one))
    env.process(uplink.carry(0.75 * 5.0, two))
    env.run(until=2.0)
    uplink.hand_over(0, 1)
    env.run(first)
    assert env.now == pytest.approx(5.5)


def test_gains_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="give \\[K, S\\] and \\[K\\]"):
        Couplings(np.ones((2, 2)), [0])
    with pytest.raises(ValueError, match="numbers from 0 to 1"):
        Couplings(np.ones((1, 2)), [2])
