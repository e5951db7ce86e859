"""More band, lower thresholds and fewer interferers slow no device of a network, at no instant and
to no end; more power does not slow the device itself, but for what it does to others."""

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.network.adaptation.link_adaptation import schemes
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.network_uplink import NetworkUplink
from edgesim.network.interference.sector_bands import SectorBands
from edgesim.network.interference.sector_channel import SectorChannel
from edgesim.network.interference.uplink_rates import UplinkRates
from fl.contracts import Grant
from solvers.rate_laws.efficiency_laws import HullLaw

DENSITY = 10.0**-19.9
SNR, BITS = schemes("64qam")
LAW, EASIER = HullLaw(SNR, BITS), HullLaw(SNR * 0.5, BITS)
SEEDS = st.integers(0, 10**6)


def ends(couplings, bits, starts=None, heard="events", law=None, band_hz=10e6, power_w=0.2):
    """When each device's bits have arrived, s; ``power_w`` of each or all, equal shares."""
    env, couplings, done = simpy.Environment(), couplings.copy(), {}
    channel = SectorChannel(couplings, bandwidth_hz=band_hz, noise_w_per_hz=DENSITY, law=law)
    uplink = NetworkUplink(env, channel, couplings, heard)
    each = np.bincount(couplings.serving, minlength=couplings.sectors)[couplings.serving]
    power_w = np.broadcast_to(power_w, len(couplings)).tolist()
    grants = [Grant(k, 1.0 / each[k], 0.0, 1e9, power_w[k]) for k in range(len(couplings))]
    uplink.begin_round(grants)

    def one(grant, start_s):
        yield env.timeout(start_s)
        yield from uplink.carry(bits[grant.device], grant, None)
        done[grant.device] = env.now

    for grant, start_s in zip(grants, starts or [0.0] * len(grants), strict=True):
        env.process(one(grant, start_s))
    env.run()
    return np.array([done[k] for k in range(len(grants))])


def drawn(network, seed):
    """Couplings of two or three sectors, bits and starts."""
    rng = np.random.default_rng(seed)
    couplings = network.gains(seed, int(rng.integers(2, 4)), int(rng.integers(1, 3)))
    count = len(couplings)
    return couplings, rng.uniform(1e5, 4e6, count).tolist(), rng.uniform(0, 0.3, count).tolist()


@settings(max_examples=15)
@given(seed=SEEDS, adapted=st.booleans(), more=st.floats(1.0, 10.0))
def test_more_band_or_lower_thresholds_end_no_upload_later(network, seed, adapted, more):
    couplings, bits, starts = drawn(network, seed)
    law = LAW if adapted else None
    before = ends(couplings, bits, starts, law=law) * (1 + 1e-9)
    assert (ends(couplings, bits, starts, law=law, band_hz=10e6 * more) <= before).all()
    if adapted:
        assert (ends(couplings, bits, starts, law=EASIER) <= before).all()


@settings(max_examples=15)
@given(seed=SEEDS, heard=st.sampled_from(["none", "full"]), more=st.floats(1.0, 10.0))
def test_power_at_ones_own_device_ends_its_upload_no_later(network, seed, heard, more):
    couplings, bits, starts = drawn(network, seed)
    before = ends(couplings, bits, starts, heard, LAW)
    power_w = np.full(len(couplings), 0.2)
    power_w[0] *= more
    after = ends(couplings, bits, starts, heard, LAW, power_w=power_w)
    assert after[0] <= before[0] * (1 + 1e-9)
    if heard == "none":
        assert after[1:] == pytest.approx(before[1:], rel=1e-12)


@settings(max_examples=40)
@given(seed=SEEDS, data=st.data(), more=st.floats(1.0, 10.0))
def test_the_rates_of_an_instant(network, seed, data, more):
    """Of those who send: with one interferer less; with more power of one, for all."""
    couplings, _, _ = drawn(network, seed)
    count, sectors = len(couplings), couplings.sectors
    bands = SectorBands(couplings)
    bands.grant([Grant(k, sectors / count, 0.0, 1e9, 0.2) for k in range(count)])
    bands.sending[:] = True
    channel = SectorChannel(couplings, bandwidth_hz=10e6, noise_w_per_hz=DENSITY)
    rates = UplinkRates(couplings, channel, bands)
    rates.power_w[:] = 0.2
    sending = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    one = data.draw(st.integers(0, count - 1))
    sending[one] = True
    before = rates(sending, 0.0)[0]
    fewer = sending.copy()
    fewer[one] = False
    others = np.arange(count) != one
    assert (rates(fewer, 0.0)[0][others] >= before[others] * (1 - 1e-12)).all()
    rates.power_w[one] *= more
    louder = rates(sending, 0.0)[0]
    assert louder[one] >= before[one] * (1 - 1e-12)
    assert (louder[others] <= before[others] * (1 + 1e-12)).all()


def test_more_power_may_come_back_as_longer_interference():
    """Two sectors: device 1 is slowed by the power of device 0, and disturbs it for longer.

    Rates of an instant rise with the own power, ends of uploads need not: both send in both
    sectors nearly as loud as at home, and device 0 has little left when device 1 ends.
    """
    two = Couplings([[1e-9, 1e-10], [1e-10, 1e-9]], [0, 1])
    bits = [3.6e6, 3.4e6]
    before = ends(two, bits)
    after = ends(two, bits, power_w=[0.2 * 1.05, 0.2])
    assert after[1] > before[1] and after[0] > before[0] * (1 + 1e-6)
