"""Fluid links: when bits arrive, by hand. The band is 1 Hz and the SNR 1, so the whole band
carries 1 bit/s.
"""

import math

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.network.channel import Channel
from edgesim.network.downlink.broadcast import BroadcastDownlink
from edgesim.network.fading.processes import BlockFading
from edgesim.network.flows.ideal_downlink import IdealDownlink
from edgesim.network.flows.stalled_links import StalledLinkError
from edgesim.network.planned_gains import PlannedGains
from edgesim.network.uplink import Uplink
from edgesim.seeds import Seeds
from fl.contracts import Grant


class Tally:
    bits = 0.0


def air(num_devices=2, coherence_s=math.inf, gain=1.0):
    fading = BlockFading(Seeds(0), num_devices, coherence_s) if coherence_s < math.inf else None
    return Channel(1.0, np.full(num_devices, gain), noise_w=1.0, fading=fading)


def grants(*shares):
    return [Grant(k, share, 0.0, 1e9, 1.0) for k, share in enumerate(shares)]


def send(link, shares, bits, starts=None):
    """When each device's bits have arrived, s."""
    env, ends = link.env, {}

    def one(grant, amount, wait_s):
        yield env.timeout(wait_s)
        yield from link.carry(amount, grant)
        ends[grant.device] = env.now

    link.begin_round(grants(*shares))
    for grant, amount, wait_s in zip(
        grants(*shares), bits, starts or [0.0] * len(bits), strict=True
    ):
        env.process(one(grant, amount, wait_s))
    env.run()
    return [ends[k] for k in range(len(bits))]


def test_a_fixed_share_on_a_static_channel_is_one_timeout():
    env, delays = simpy.Environment(), []
    timeout = env.timeout
    env.timeout = lambda delay: delays.append(delay) or timeout(delay)
    link = Uplink(env, air())
    link.begin_round(grants(0.25))
    env.run(env.process(link.carry(3.0, grants(0.25)[0])))
    assert delays == [12.0]


def test_fixed_shares_do_not_help_each_other():
    assert send(Uplink(simpy.Environment(), air()), (0.5, 0.5), (1.0, 3.0)) == [2.0, 6.0]


def test_reclaimed_band_goes_to_who_is_still_sending():
    """At 2 s device 0 is done, device 1 has 2 bit left and the whole band: 4 s."""
    assert send(Uplink(simpy.Environment(), air(), "reclaim"), (0.5, 0.5), (1.0, 3.0)) == [2.0, 4.0]


def test_reclaimed_band_is_shared_in_proportion():
    """Shares 0.5, 0.3, 0.2; device 0 sends nothing, so that the others have 0.6 and 0.4 from the
    start.
    """
    ends = send(Uplink(simpy.Environment(), air(3), "reclaim"), (0.5, 0.3, 0.2), (0.0, 6.0, 6.0))
    assert ends == pytest.approx(
        [0.0, 10.0, 12.0]
    )  # at 10 s device 2 has 2 bit left and the whole band


def test_who_still_computes_keeps_its_reservation():
    """Device 1 starts at 10 s, when device 0 has sent 5 of its 6 bit with its own half of the
    band only.
    """
    ends = send(Uplink(simpy.Environment(), air(), "reclaim"), (0.5, 0.5), (6.0, 1.0), (0.0, 10.0))
    assert ends == pytest.approx([12.0, 12.0])


def test_a_failed_device_gives_its_reservation_back():
    env = simpy.Environment()
    link = Uplink(env, air(), "reclaim")
    link.begin_round(grants(0.5, 0.5))
    sending = env.process(link.carry(3.0, grants(0.5, 0.5)[1]))
    env.run(until=2.0)
    link.release(0)
    env.run(sending)
    assert env.now == pytest.approx(4.0)


def test_interruption_counts_the_bits_on_the_way():
    env, tally = simpy.Environment(), Tally()
    link = Uplink(env, air())
    link.begin_round(grants(0.5))

    def sender():
        try:
            yield from link.carry(3.0, grants(0.5)[0], tally)
        except simpy.Interrupt:
            return env.now

    process = env.process(sender())
    env.run(until=4.0)
    process.interrupt()
    assert env.run(process) == 4.0
    assert tally.bits == pytest.approx(2.0, rel=1e-15)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 5.0), st.floats(0.05, 5.0), st.floats(0.1, 1.0), st.floats(0, 20.0))
def test_fading_is_integrated_over_its_blocks(bits, coherence_s, share, start_s):
    """An integral of its own: add whole blocks until the bits are through."""
    channel = air(1, coherence_s)
    (end_s,) = send(Uplink(simpy.Environment(), channel), (share,), (bits,), [start_s])
    time_s, left, n = start_s, bits, channel.block(start_s)
    while True:
        rate = share * math.log2(1.0 + channel.gains(n * coherence_s)[0])
        room_s = (n + 1) * coherence_s - time_s
        if left <= rate * room_s:
            break
        left, time_s, n = left - rate * room_s, (n + 1) * coherence_s, n + 1
    assert end_s == pytest.approx(time_s + left / rate, rel=1e-9)


def test_a_wake_up_at_every_edge_ends():
    """0.1 s blocks: n x 0.1 is not exact in binary, and 1000 edges are crossed."""
    (end_s,) = send(Uplink(simpy.Environment(), air(1, 0.1)), (1.0,), (100.0,))
    assert 80.0 < end_s < 160.0  # ergodic capacity at SNR 1 is 0.86 bit/s/Hz


def test_no_bits_take_no_time_even_without_a_share():
    assert send(Uplink(simpy.Environment(), air()), (0.0,), (0.0,)) == [0.0]


@pytest.mark.parametrize("coherence_s", [math.inf, 1.0])
def test_bits_without_a_share_are_refused_instead_of_waiting_for_ever(coherence_s):
    with pytest.raises(StalledLinkError, match="device 0 has 1 bit to carry but no share of the b"):
        send(Uplink(simpy.Environment(), air(2, coherence_s)), (0.0, 1.0), (1.0, 1.0))


def test_shares_above_the_band_are_refused():
    with pytest.raises(ValueError, match="at most 1"):
        Uplink(simpy.Environment(), air()).begin_round(grants(0.6, 0.6))


def test_the_ideal_downlink_takes_no_time_and_counts_bits():
    env, tally = simpy.Environment(), Tally()
    env.process(IdealDownlink(env, air()).carry(5.0, grants(1.0)[0], tally))
    env.run()
    assert (env.now, tally.bits) == (0.0, 5.0)


def test_a_broadcast_has_the_rate_of_its_worst_listener():
    """Gains 1, 3, 7 at power 1: devices 1 and 2 listen, so log2(4) = 2 bit/s/Hz in 4 Hz: 16 bit
    take 2 s.
    """
    channel = Channel(1.0, [1.0, 3.0, 7.0], noise_w=1.0)
    link = BroadcastDownlink(simpy.Environment(), channel, tx_power_w=1.0, bandwidth_hz=4.0)
    listeners = grants(0.2, 0.2, 0.2)[1:]
    link.begin_round(listeners)
    ends = []

    def listen(grant, bits):
        yield from link.carry(bits, grant)
        ends.append((grant.device, link.env.now))

    for grant, bits in zip(listeners, (16.0, 8.0), strict=True):
        link.env.process(listen(grant, bits))
    bits, gains = np.array([16.0, 0.0]), PlannedGains(link.channel)
    assert link.seconds(bits, np.array([1, 2]), gains).tolist() == [2.0, 0.0]
    link.env.run()
    assert ends == [(2, 1.0), (1, 2.0)]


def test_a_broadcast_fades_with_its_listeners():
    channel = air(2, 1.0)
    link = BroadcastDownlink(simpy.Environment(), channel, tx_power_w=1.0)
    (first, second) = (math.log2(1.0 + channel.gains(t).min()) for t in (0.0, 1.0))
    ends = send(link, (0.5, 0.5), (first + 0.5 * second,) * 2)
    assert ends == pytest.approx([1.5, 1.5], rel=1e-12)
