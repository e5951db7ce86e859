"""The uplink of a network: a handover in the last instant of an upload, or to a full sector."""

import math

import numpy as np
import pytest
import simpy

from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.network_uplink import NetworkUplink
from edgesim.network.interference.sector_channel import SectorChannel
from fl.contracts import Grant


class ByHand:
    """In place of `MovingSectors`: the test hands over."""

    interruption_s = 0.05

    def follow(self, now_s):
        return []

    def update_k(self):
        pass

    def next_change_s(self, time_s):
        return math.inf


@pytest.mark.parametrize("last", [2, 0], ids=["to a slow sector", "to a fast one"])
def test_an_upload_handed_over_at_its_end_leaves_no_pause_behind(last):
    """10 Mbit: 9 in the fast sector 0, then all but what the slow sector 1 sends in two steps of
    the clock. Added to what was sent before, that rounds to nothing; in a fast sector it takes no
    time. A second later the device can send at once.
    """
    env, couplings = simpy.Environment(), Couplings([[1e-7, 1e-13, 1e-13]], [0])
    channel = SectorChannel(couplings, bandwidth_hz=1e6, noise_w_per_hz=1e-19)
    uplink = NetworkUplink(env, channel, couplings, "none", walk=ByHand())
    grant, sent, waits = Grant(0, 1.0, 0.0, 1e9, 0.1), [], []
    uplink.begin_round([grant])

    def device():
        while True:  # as `upload` of edgesim.engine.rounds
            left, span = 1e7 - sum(sent), type("Kept", (), {})()
            while left > 0.0 and (pause_s := uplink.pause_s(0)) is not None:
                yield env.timeout(pause_s)
            yield from uplink.carry(left, grant, span)
            sent.append(span.bits)
            if span.bits >= left:
                break
        yield env.timeout(1.0)
        waits.append(uplink.pause_s(0))

    def network():
        yield env.timeout(0.9e7 / float(channel.rate_bps(1.0, 0.1, 1e-7)))
        uplink.hand_over(0, 1)
        yield env.timeout(0.06)
        end_s = float(uplink.timer.table.finish_s[0])
        yield env.timeout(end_s - 2.0 * math.ulp(end_s) - env.now)
        uplink.hand_over(0, last)

    env.process(device())
    env.process(network())
    env.run()
    assert sent == [9e6, pytest.approx(1e6, abs=1e-9), 0.0] and sent[1] < 1e6
    assert sum(sent) == 1e7 and waits == [None]


@pytest.mark.parametrize("fails", [True, False])
def test_a_link_that_fails_during_the_interruption_fails_the_upload_at_its_end(fails):
    """Handed over at 1 s for 50 ms, and once more at 1.02 s: that one's 50 ms end at 1.07 s."""
    env, couplings = simpy.Environment(), Couplings([[1e-7, 1e-7, 1e-7]], [0])
    channel = SectorChannel(couplings, bandwidth_hz=1e6, noise_w_per_hz=1e-19)
    uplink = NetworkUplink(env, channel, couplings, "none", walk=ByHand())
    grant, ends = Grant(0, 1.0, 0.0, 1e9, 0.1), []
    uplink.begin_round([grant])

    def device():
        try:
            yield from uplink.carry(1e9, grant)
            while (pause_s := uplink.pause_s(0)) is not None:
                yield env.timeout(pause_s)
            ends.append(("sends", env.now))
        except simpy.Interrupt as stop:
            ends.append((stop.cause, env.now))
        uplink.release(0)
        yield env.timeout(1.0)
        ends.append(("next", uplink.pause_s(0)))  # nothing is left of it for another upload

    def network():
        yield env.timeout(1.0)
        uplink.hand_over(0, 1)
        yield env.timeout(0.02)
        uplink.hand_over(0, 2, lost=fails)

    env.process(device())
    env.process(network())
    env.run()
    ended = ("failed", pytest.approx(1.05)) if fails else ("sends", pytest.approx(1.07))
    assert ends == [ended, ("next", None)]


def test_who_waits_for_a_band_disturbs_nobody():
    """Device 1 goes over to sector 1, whose whole band device 2 has: sector 0 hears device 2 alone.

    5 MHz x log2(1 + 0.2 W 1e-10 / (5 MHz (N0 + 0.2 W 1e-11 / 10 MHz))) are 21.542833 Mbit/s.
    """
    env, segments = simpy.Environment(), []
    couplings = Couplings([[1e-10, 1e-11], [1e-10, 3e-11], [1e-11, 1e-10]], [0, 0, 1])
    density = 10.0 ** ((-174.0 + 5.0 - 30.0) / 10.0)
    channel = SectorChannel(couplings, bandwidth_hz=10e6, noise_w_per_hz=density)
    uplink = NetworkUplink(env, channel, couplings, on_segment=lambda *each: segments.append(each))
    grants = [Grant(k, share, 0.0, 1e9, 0.2) for k, share in enumerate((0.5, 0.5, 1.0))]
    uplink.begin_round(grants)
    for grant in grants:
        env.process(uplink.carry(20e6, grant))
    env.run(until=0.1)
    uplink.hand_over(1, 1)
    env.run()
    device, _, end_s, share, rate_bps, _ = np.array(segments).T
    waits = (device == 1) & (share == 0.0)
    until_s = end_s[waits].max()
    assert end_s[device == 2].max() == pytest.approx(until_s)  # then its band is free
    beside = rate_bps[(device == 0) & (end_s > 0.1) & (end_s <= until_s)]
    assert beside / 1e6 == pytest.approx(np.full(len(beside), 21.542833), abs=1e-6)
    assert len(beside)
