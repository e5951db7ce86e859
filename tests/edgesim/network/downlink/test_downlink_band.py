"""A downlink in a band of its own hears the fading of that band."""

from __future__ import annotations

import math

import numpy as np
import pytest
import simpy

from edgesim.network.channel import Channel
from edgesim.network.downlink.broadcast import BroadcastDownlink
from edgesim.network.downlink.sector_downlink import SectorDownlink
from edgesim.network.fading.processes import BlockFading
from edgesim.network.fading.selective import SelectiveFading, fades_in_band
from edgesim.network.interference.couplings import Couplings
from edgesim.network.planned_gains import PlannedGains
from edgesim.seeds import Seeds
from fl.contracts import Grant

BAND_HZ, PARTS, OWN_HZ = 13e6, 13, 3e6  # the downlink has the three parts in the middle
WHO = np.arange(3)


def fading():
    return SelectiveFading(Seeds(0), 3, 1e-9, 0.0, 1e-6, BAND_HZ, PARTS)


def down(mode, **changes):
    env, about = simpy.Environment(), {"noise_w_per_hz": 1e-6, "fading": fading(), **changes}
    channel = Channel(BAND_HZ, [1.0, 2.0, 4.0], **about)
    if mode == "broadcast of a cell":
        return BroadcastDownlink(env, channel, 30.0, OWN_HZ)
    one = Couplings(np.array([[1.0], [2.0], [4.0]]), np.zeros(3))
    options = {"interference": "none", "planned": "none"}
    return SectorDownlink(env, channel, one, 30.0, OWN_HZ, mode, **options)


def test_a_band_with_the_same_middle_has_the_parts_that_are_there():
    whole, own = fading().powers(0), fading().over(OWN_HZ).powers(0)
    assert own == pytest.approx(whole[:, 5:8], rel=1e-9)
    assert fading().over(2.5e6).parts == 3 and fading().over(1e5).parts == 1
    assert fading().over(26e6).parts == 26


@pytest.mark.parametrize("mode", ["broadcast of a cell", "broadcast", "unicast"])
def test_a_download_flows_and_is_planned_at_what_its_own_band_carries(mode):
    """mean_r log2(1 + 10 h_k |a_r|^2) in three of thirteen parts; 10 = 30 W / (1e-6 W/Hz 3 MHz)."""
    link = down(mode)
    powers = link.channel.path_gain[:, None] * fading().powers(0)[:, 5:8]
    rate_bps = OWN_HZ * np.log2(1.0 + 10.0 * powers).mean(axis=1)
    bits = np.full(3, 9e6)
    in_turns = np.sort(rate_bps)[::-1]
    expected_s = 9e6 / rate_bps.min() * np.ones(3)
    if mode == "unicast":
        steps = np.diff(9e6 / in_turns, prepend=0.0) * np.array([3, 2, 1])
        expected_s[np.argsort(-rate_bps)] = np.cumsum(steps)
    planned_s = link.seconds(bits, WHO, PlannedGains(link.channel))
    assert planned_s == pytest.approx(expected_s, rel=1e-9)
    grants = [Grant(k, 0.0, 0.0, 1e9, 0.0) for k in range(3)]
    link.begin_round(grants)
    ended_s = {}

    def receive(grant):
        yield from link.carry(9e6, grant)
        ended_s[grant.device] = link.env.now

    for grant in grants:
        link.env.process(receive(grant))
    link.env.run()
    assert [ended_s[k] for k in range(3)] == pytest.approx(expected_s, rel=1e-9)


def test_a_quantile_counts_with_the_fades_of_its_own_band():
    link = down("unicast")
    heard = link._planned_channel(WHO)
    assert (
        heard.fades_in(np.zeros(3), WHO).tolist() == [math.floor(fades_in_band(OWN_HZ, 1e-6))] * 3
    )
    assert fades_in_band(BAND_HZ, 1e-6) > 3.0 * fades_in_band(OWN_HZ, 1e-6)


def test_a_flat_channel_is_the_same_in_every_band():
    link = down("unicast", fading=BlockFading(Seeds(0), 3, 1.0))
    assert link._planned_channel(WHO) is link.channel
