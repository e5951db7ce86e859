"""Uploads of a network by hand, and what must hold of any: two sectors of 10 MHz, N0 -174 dBm/Hz
and 5 dB, p 0.2 W, gains 1e-10 at the own sector and 1e-11 at the other.
"""

import itertools
import math

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.network.fading.processes import BlockFading
from edgesim.network.flows.stalled_links import StalledLinkError
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.network_planning.load import loads
from edgesim.network.interference.network_uplink import NetworkUplink
from edgesim.network.interference.sector_channel import SectorChannel
from edgesim.network.tdd_service import ALWAYS, TddService
from edgesim.network.uplink import Uplink
from edgesim.seeds import Seeds
from fl.contracts import Grant

DENSITY = 10.0 ** ((-174.0 + 5.0 - 30.0) / 10.0)
TWO = Couplings([[1e-10, 1e-11], [1e-11, 1e-10]], [0, 1])
BY_BLOCK = {"interference": "resolved", "blocks": 7, "streams": Seeds(0)}


class Tally:
    bits, sector, sinr_db = 0.0, -1, math.nan


def channel_of(couplings, **options):
    return SectorChannel(couplings, bandwidth_hz=10e6, noise_w_per_hz=DENSITY, **options)


def grants_of(shares, power_w=0.2):
    return [Grant(k, share, 0.0, 1e9, power_w) for k, share in enumerate(shares)]


def send(uplink, bits, shares=None, starts=None, tallies=None, power_w=0.2):
    """When each device's bits have arrived, s."""
    env, ends = uplink.env, {}
    shares = [1.0] * len(bits) if shares is None else shares
    grants = grants_of(shares, power_w)

    def one(grant, wait_s):
        yield env.timeout(wait_s)
        yield from uplink.carry(bits[grant.device], grant, (tallies or {}).get(grant.device))
        ends[grant.device] = env.now

    uplink.begin_round(grants)
    for grant, wait_s in zip(grants, starts or [0.0] * len(bits), strict=True):
        env.process(one(grant, wait_s))
    env.run()
    return [ends[k] for k in range(len(bits))]


def uplink_of(couplings=TWO, options=(), **changes):
    couplings = couplings.copy()
    return NetworkUplink(
        simpy.Environment(), channel_of(couplings, **dict(options)), couplings, **changes
    )


def test_two_sectors_by_hand():
    """Both at 33.795951 Mbit/s, then 73.207161 Mbit/s alone."""
    segments = []
    uplink = uplink_of(on_segment=lambda *segment: segments.append(segment))
    tallies = {0: Tally(), 1: Tally()}
    ends = send(uplink, [10e6, 40e6], tallies=tallies)
    assert ends == pytest.approx([0.295893436, 0.705689410], abs=1e-9)
    rates = [segment[4] / 1e6 for segment in segments]
    assert rates == pytest.approx([33.795951, 33.795951, 73.207161], abs=1e-6)
    assert [tallies[k].sector for k in (0, 1)] == [0, 1]
    assert tallies[0].bits == 10e6 and tallies[1].bits == 40e6
    together, alone = 2 ** (3.3795951) - 1, 2 ** (7.3207161) - 1
    assert tallies[0].sinr_db == pytest.approx(10 * math.log10(together), abs=1e-5)
    assert tallies[0].sinr_db < tallies[1].sinr_db < 10 * math.log10(alone)


def test_devices_in_other_blocks_do_not_hear_each_other():
    """Two sectors, half of the band each, 5 and 20 Mbit: 5 MHz log2(1 + h p / (N0 5 MHz + i p)).

    In the same blocks i is 1e-11, in other ones 0.
    """
    noise = DENSITY * 5e6 / 0.2
    for offset, others in (([0.0, 0.0], 1e-11), ([0.0, 2.0], 0.0)):
        uplink = uplink_of(interference="resolved", blocks=4, streams=Seeds(0))
        uplink.rates.grid.offset[:] = offset
        ends = send(uplink, [5e6, 20e6], [0.5, 0.5])
        together, alone = (5e6 * math.log2(1 + 1e-10 / (noise + i)) for i in (others, 0.0))
        assert ends[0] == pytest.approx(5e6 / together, rel=1e-12)
        assert ends[1] == pytest.approx(ends[0] + (20e6 - 5e6) / alone, rel=1e-12)


@pytest.mark.parametrize(
    ("mode", "ends"),
    [
        ("none", [0.136598658, 0.546394631]),
        ("full", [0.295893436, 1.183573745]),
        ("events", [0.295893436, 0.705689410]),
    ],
)
def test_who_is_heard_by_mode(mode, ends):
    """10 and 40 Mbit at 73.207161 or 33.795951 Mbit/s."""
    assert send(uplink_of(interference=mode), [10e6, 40e6]) == pytest.approx(ends, abs=1e-8)


def test_refreshing_is_late_by_at_most_its_time():
    """The end of device 0 at 0.2959 s is seen at 0.3 s: 0.00410656 s more at the low rate."""
    ends = send(uplink_of(interference="refresh", refresh_s=0.1), [10e6, 40e6])
    low, high = 33.795950746e6, 73.207161448e6
    assert ends[0] == pytest.approx(0.295893436, abs=1e-9)
    assert ends[1] == pytest.approx(0.3 + (40e6 - 0.3 * low) / high, abs=1e-9)
    # who begins between two multiples is not seen before the next
    ends = send(uplink_of(interference="refresh", refresh_s=0.1), [10e6, 40e6], starts=[0.05, 0.0])
    assert ends[1] == pytest.approx(
        0.1 + _rest(40e6 - 0.1 * high, ends[0], 0.1, low, high), abs=1e-9
    )


def _rest(bits, end_s, from_s, low, high):
    """Time that is left at the low rate until the multiple after ``end_s``, then at the high."""
    until_s = math.ceil(end_s / 0.1) * 0.1
    return until_s - from_s + (bits - (until_s - from_s) * low) / high


def test_the_fixed_point_of_loads():
    """Both 30 Mbit in T = 2 s."""
    two = np.ones(2)
    x = loads(TWO, channel_of(TWO), TWO.own, two, 0.2 * two, 30e6 * two, 2.0)
    assert x == pytest.approx([0.313496917] * 2, abs=1e-9)
    x = loads(TWO, channel_of(TWO), TWO.own, np.array([1.0, 0.0]), 0.2 * two, 30e6 * two, 2.0)
    assert x == pytest.approx([30e6 / (2 * 73.207161448e6), 0.0])
    x = loads(TWO, channel_of(TWO), TWO.own, two, 0.2 * two, 3e9 * two, 2.0)
    assert x.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("mode", "bias"), [("none", -0.538351), ("load", -0.293671), ("full", 0.0), ("events", 0.0)]
)
def test_by_how_much_a_mode_is_off_where_all_send_together(mode, bias):
    """Twice 30 Mbit: 0.887680 s beside each other, 0.409796 s alone, and 0.313497 x 2 s by the
    loads of a threshold of 2 s."""
    uplink = uplink_of(interference=mode)
    uplink.expect(np.array([0.2, 0.2]) * 0.313496917 if mode == "load" else None)
    ends = send(uplink, [30e6, 30e6])
    assert ends == pytest.approx([30.0 / 33.795951 * (1.0 + bias)] * 2, rel=2e-6)


def test_one_sector_is_the_cell_to_the_last_bit():
    """Nobody else is there: the ends are those of `Uplink`."""
    one = Couplings([[1e-10], [3e-11], [1e-12]], [0, 0, 0])
    bits, shares, starts = [4e6, 2e6, 1e6], [0.5, 0.3, 0.2], [0.0, 0.013, 0.4]
    for share in ("fixed", "reclaim"):
        cell = Uplink(simpy.Environment(), channel_of(one), share)
        ends = send(cell, bits, shares, starts)
        assert send(uplink_of(one, share=share), bits, shares, starts) == (
            ends if share == "fixed" else pytest.approx(ends, rel=1e-12)
        )


def test_fading_and_slots_are_those_of_the_cell():
    one, bits = Couplings([[1e-12], [3e-12]], [0, 0]), [4e5, 8e5]
    slots = (TddService(2.5e-3, 1.9e-3, 2.5e-3), ALWAYS)
    for options in (
        {"fading": BlockFading(Seeds(1), 2, 4e-3)},
        {"air_times": slots},
        {"fading": BlockFading(Seeds(1), 2, 4e-3), "air_times": slots},
    ):
        ends = send(Uplink(simpy.Environment(), channel_of(one, **options)), bits, [0.5, 0.5])
        assert send(uplink_of(one, options), bits, [0.5, 0.5]) == pytest.approx(ends, rel=1e-12)


def random_network(seed, sectors, per_sector):
    """Strong links to the own sector, weaker ones to the others; equal shares."""
    rng, count = np.random.default_rng(seed), sectors * per_sector
    gain = 10.0 ** rng.uniform(-13.0, -10.5, (count, sectors))
    serving = np.repeat(np.arange(sectors), per_sector)
    gain[np.arange(count), serving] = 10.0 ** rng.uniform(-11.0, -9.0, count)
    bits, starts = rng.uniform(1e5, 4e6, count), rng.uniform(0.0, 0.3, count)
    return Couplings(gain, serving), bits.tolist(), [1.0 / per_sector] * count, starts.tolist()


@settings(max_examples=15)
@given(
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from([{}, BY_BLOCK]),
)
def test_bits_are_the_integral_of_the_rate_and_shares_fit_the_band(
    seed, sectors, each, reclaim, mode
):
    couplings, bits, shares, starts = random_network(seed, sectors, each)
    segments = []
    uplink = uplink_of(
        couplings,
        on_segment=lambda *segment: segments.append(segment),
        share="reclaim" if reclaim else "fixed",
        **mode,
    )
    tallies = {k: Tally() for k in range(len(bits))}
    send(uplink, bits, shares, starts, tallies)
    carried = np.zeros(len(bits))
    for device, start_s, end_s, _, rate_bps, sent in segments:
        carried[device] += rate_bps * (end_s - start_s)
        assert sent == pytest.approx(rate_bps * (end_s - start_s), rel=1e-6, abs=1e-3)
    assert carried == pytest.approx(np.array(bits), rel=1e-9)
    assert [tallies[k].bits for k in range(len(bits))] == bits
    edges = sorted({time for segment in segments for time in segment[1:3]})
    for middle in (0.5 * (a + b) for a, b in itertools.pairwise(edges)):
        used = np.zeros(sectors)
        for device, start_s, end_s, share, *_ in segments:
            if start_s < middle < end_s:
                used[couplings.serving[device]] += share
        assert used.max() <= 1.0 + 1e-12


@pytest.mark.slow
@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 3))
def test_fewer_interferers_and_more_power_never_slow_a_device(seed, sectors, each):
    """Ends with everybody heard all the time, while they send, and nobody; a silenced sector; more
    power."""
    couplings, bits, shares, starts = random_network(seed, sectors, each)
    full, events, none = (
        np.array(send(uplink_of(couplings, interference=mode), bits, shares, starts))
        for mode in ("full", "events", "none")
    )
    assert (none <= events * (1 + 1e-12)).all() and (events <= full * (1 + 1e-12)).all()
    gone = [0.0 if couplings.serving[k] == 0 else amount for k, amount in enumerate(bits)]
    for mode in ({}, BY_BLOCK):
        fewer, more = (
            np.array(send(uplink_of(couplings, **mode), amounts, shares, starts))
            for amounts in (gone, bits)
        )
        assert (fewer[each:] <= more[each:] * (1 + 1e-12)).all()
    louder = send(uplink_of(couplings, interference="none"), bits, shares, starts, power_w=0.3)
    assert (np.array(louder) <= none * (1 + 1e-12)).all()


def test_an_interruption_counts_the_bits_on_the_way_and_ends_the_interference():
    uplink, tally = uplink_of(), Tally()
    env, (one, two) = uplink.env, grants_of([1.0, 1.0])
    uplink.begin_round([one, two])

    def sender():
        try:
            yield from uplink.carry(10e6, one, tally)
        except simpy.Interrupt:
            return env.now

    stopped = env.process(sender())
    other = env.process(uplink.carry(40e6, two))
    env.run(until=0.1)
    stopped.interrupt()
    assert env.run(stopped) == 0.1
    assert tally.bits == pytest.approx(0.1 * 33.795950746e6, rel=1e-9)
    env.run(other)
    assert env.now == pytest.approx(0.1 + (40e6 - 3.3795950746e6) / 73.207161448e6, rel=1e-9)


def test_a_rate_of_zero_that_stays_is_an_error():
    silent = Couplings([[0.0, 0.0], [1e-11, 1e-10]], [0, 1])
    with pytest.raises(StalledLinkError, match="device 0 has 1e\\+06 bit to carry"):
        send(uplink_of(silent), [1e6, 1e6])


def test_shares_of_a_sector_sum_to_one_at_most():
    with pytest.raises(ValueError, match=r"the band shares of a sector sum to 1\.5"):
        uplink_of(Couplings([[1e-10], [1e-10]], [0, 0])).begin_round(grants_of([0.75, 0.75]))
    with pytest.raises(ValueError, match="interference is loud; allowed are none, full"):
        uplink_of(interference="loud")
    for wrong in ({"interference": "resolved"}, {"blocks": 7, "streams": Seeds(0)}):
        with pytest.raises(ValueError, match="resource blocks goes with interference resolved"):
            uplink_of(**wrong)
