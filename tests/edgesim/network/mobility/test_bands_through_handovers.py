"""Handovers and failed links at any instant: bands and bits, by random draws."""

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.network.fading.processes import BlockFading
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.moving_sectors import MovingSectors
from edgesim.network.interference.network_uplink import NetworkUplink
from edgesim.network.interference.sector_channel import SectorChannel
from edgesim.network.layout.coupling import SectorLinks
from edgesim.network.mobility.a3_event import A3Rule
from edgesim.network.mobility.serving_sectors import LossRule, ServingSectors
from edgesim.seeds import Seeds
from fl.contracts import Grant


def random_walks(seed, count, sectors):
    """Gains that are drawn anew at every refresh: handovers as often as can be."""

    def at(time_s):
        rng = np.random.default_rng([seed, round(time_s * 1e6)])
        gain = 10.0 ** rng.uniform(-12.0, -9.0, (count, sectors))
        none = np.zeros((count, sectors))
        return SectorLinks(gain, none > 0.0, none, none)

    return at


@pytest.mark.slow
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["fixed", "reclaim"]),
    st.sampled_from(["events", "full", "refresh"]),
    st.sampled_from([0.0, 0.03]),
)
@settings(max_examples=10)
def test_bands_are_never_exceeded_and_bits_are_the_integral_of_the_rate(
    seed, share, heard, interruption_s
):
    """Promise 2 through handovers and failed links, for every share and interference."""
    rng, count, sectors = np.random.default_rng(seed), 9, 3
    walk_at = random_walks(seed, count, sectors)
    env, segments, used = simpy.Environment(), [], []
    couplings = Couplings(walk_at(0.0).coupling, walk_at(0.0).coupling.argmax(axis=1))
    fading = BlockFading(Seeds(seed), count, 0.07)
    channel = SectorChannel(couplings, bandwidth_hz=1e6, noise_w_per_hz=1e-19, fading=fading)
    rule = A3Rule(1.0, 0.0, 0.04, 0)
    serving = ServingSectors(walk_at, rule, 0.1, LossRule(-15.0, 0.3))
    walk = MovingSectors(serving, channel, np.arange(sectors), interruption_s)
    uplink = NetworkUplink(
        env, channel, couplings, heard, 0.05, share, lambda *each: segments.append(each), walk=walk
    )
    shares_now = uplink.bands.shares

    def shares():
        found = shares_now()
        used.append(np.bincount(couplings.serving, found, sectors).max())
        used.append(uplink.bands.reserved().max())
        return found

    uplink.bands.shares = shares
    granted = rng.dirichlet(np.ones(count))
    for s in range(sectors):  # as a plan divides every sector
        here = couplings.serving == s
        granted[here] /= granted[here].sum() if here.any() else 1.0
    grants = [Grant(k, float(granted[k]), 0.0, 1e9, 0.1) for k in range(count)]
    uplink.begin_round(grants)
    sent, lost = dict.fromkeys(range(count), 0.0), set()

    def device(grant, bits, start_s):
        yield env.timeout(start_s)
        left, k = bits, grant.device
        while True:
            span = type("Kept", (), {})()
            try:
                yield from uplink.carry(left, grant, span)
            except simpy.Interrupt as stop:
                assert stop.cause == "failed"
                lost.add(k)
            left -= span.bits
            sent[k] += span.bits
            if (pause_s := uplink.pause_s(k)) is None:
                break
            assert pause_s == interruption_s
            yield env.timeout(pause_s)
        if k not in lost:
            assert sent[k] == pytest.approx(bits, rel=1e-9)

    bits = rng.uniform(1e4, 2e5, count)
    ends = [
        env.process(device(grant, bits[grant.device], rng.uniform(0.0, 0.3))) for grant in grants
    ]
    env.run(env.all_of(ends) | env.timeout(300.0))  # nobody waits for ever
    assert not any(each.is_alive for each in ends)
    assert max(used) <= 1.0 + 1e-12
    for k in range(count):
        mine = [each for each in segments if each[0] == k]
        assert sum(each[5] for each in mine) == pytest.approx(sent[k], rel=1e-9, abs=1e-3)
        for _, start_s, end_s, _, rate, carried in mine:
            assert carried == pytest.approx(rate * (end_s - start_s), rel=1e-6, abs=1e-3)
    assert not uplink.bands.held.any() and not uplink.bands.sending.any()
