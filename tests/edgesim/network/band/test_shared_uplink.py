"""The band among those that send: by hand, and beside shares that are set again at each change.

The whole band carries 1 bit/s of each device, so that bits are seconds of the band.
"""

import math

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.network.band.fluid_sharing import FluidSharing, weighted_shares
from edgesim.network.band.processor_sharing import REFRESH, ProcessorSharing
from edgesim.network.band.shared_uplink import SharedUplink
from edgesim.network.band.uploads import Upload
from edgesim.network.channel import Channel
from edgesim.network.fading.processes import BlockFading
from edgesim.network.flows.stalled_links import StalledLinkError
from edgesim.network.given_losses.traced_losses import TracedLosses
from edgesim.network.given_losses.varying_channel import VaryingChannel
from edgesim.records.span import Span
from edgesim.seeds import Seeds
from fl.contracts import Grant
from solvers.band_over_time.earliest_deadline import earliest_deadline


def air(devices, coherence_s=math.inf, bandwidth_hz=1.0):
    fading = BlockFading(Seeds(0), devices, coherence_s) if coherence_s < math.inf else None
    return Channel(bandwidth_hz, np.ones(devices), noise_w=1.0, fading=fading)


def send(link, jobs, weights=None, until=None):
    """(end of each upload, s; its span) of jobs (begin, bits)."""
    env, ends = link.env, {}
    spans = [Span(0, k, "upload") for k in range(len(jobs))]
    weights = weights or [1.0] * len(jobs)

    def one(k, begin_s, bits):
        yield env.timeout(begin_s)
        yield from link.carry(bits, Grant(k, weights[k], 0.0, 1e9, 1.0), spans[k])
        ends[k] = env.now

    for k, (begin_s, bits) in enumerate(jobs):
        env.process(one(k, begin_s, bits))
    env.run(until)
    return [ends.get(k, math.nan) for k in range(len(jobs))], spans


def fair(devices, **more):
    return SharedUplink(simpy.Environment(), air(devices, **more), "fair")


def test_three_uploads_of_equal_weight():
    link = fair(3)
    assert isinstance(link.band, ProcessorSharing)
    jobs = [(0.0, 2.0), (1.0, 1.0), (1.5, 0.25)]
    assert send(link, jobs)[0] == [3.25, 3.25, 2.25]
    band = ProcessorSharing(air(3))
    for k, (begin_s, bits) in enumerate(jobs):
        band.begin(begin_s, Upload(k, bits, 1.0, 1.0, begin_s))
    assert band.record()["tags"] == [[0, 2.0], [1, 2.0], [2, 1.5]]


def test_three_uploads_of_other_weights():
    jobs, weights = [(0.0, 2.0), (0.0, 1.0), (1.0, 0.5)], [2.0, 1.0, 1.0]
    assert send(fair(3), jobs, weights)[0] == [3.5, 3.5, 3.0]


@pytest.mark.parametrize("share", ["fair", "edf"])
def test_who_has_the_band_and_no_connection_waits_for_nobody(share):
    """No connection from 0.5 to 1.5 s: 1 bit ends at 2 s, and the radio was on all the time."""
    losses = TracedLosses(np.array([0.0, 0.5, 1.5]), np.array([[0.0], [math.inf], [0.0]]), "hold")
    channel = VaryingChannel(losses, 1.0, bandwidth_hz=1.0, noise_w=1.0)
    ends, spans = send(SharedUplink(simpy.Environment(), channel, share), [(0.0, 1.0)])
    assert ends == [2.0] and spans[0].waited_s == 0.0


def test_who_is_interrupted_gives_its_part_back_and_has_sent_half():
    """Two share the band for 1 s; then device 1 has it: 0.5 + 1.5 bit by 2.5 s."""
    link = fair(2)
    env, span = link.env, Span(0, 0, "upload")

    def sender():
        try:
            yield from link.carry(2.0, Grant(0, 0.5, 0.0, 1e9, 1.0), span)
        except simpy.Interrupt:
            return env.now

    first = env.process(sender())
    second = env.process(link.carry(2.0, Grant(1, 0.5, 0.0, 1e9, 1.0)))
    env.run(until=1.0)
    first.interrupt("late")
    env.run(second)
    assert env.now == 2.5 and span.bits == pytest.approx(0.5)


uploads = st.lists(
    st.tuples(st.floats(0.0, 20.0), st.floats(0.01, 5.0), st.floats(0.1, 3.0), st.booleans()),
    min_size=1,
    max_size=8,
)


@pytest.mark.slow
def test_tags_end_uploads_when_a_plain_integration_does():
    """1,000 random cases to 1e-9; the last end of a busy period is its start + all that was sent,
    whatever the weights.
    """
    rng = np.random.default_rng(8)
    for _ in range(1000):
        count = rng.integers(1, 8)
        begin, bits, weight = 20 * rng.random(count), 5 * rng.random(count), 0.1 + rng.random(count)
        drawn = list(zip(begin, bits, weight, [True] * count, strict=True))
        ends = played(drawn, ProcessorSharing)
        assert ends == pytest.approx(integrated(begin, bits, weight), rel=1e-9, abs=1e-9)
        busy_s = 0.0
        for k in np.argsort(begin):
            busy_s = max(busy_s, begin[k]) + bits[k]
        assert max(ends) == pytest.approx(busy_s, rel=1e-9)


def integrated(begin, bits, weight):
    """Ends by going from change to change with the shares that hold in between."""
    left, ends, now_s = bits.copy(), np.full(len(bits), np.nan), 0.0
    while np.isnan(ends).any():
        here = (begin <= now_s) & np.isnan(ends)
        share = np.where(here, weight, 0.0) / max(weight[here].sum(), 1e-9)
        needed_s = np.divide(left, share, out=np.full(len(bits), np.inf), where=here)
        step_s = min(needed_s.min(), (begin[begin > now_s] - now_s).min(initial=np.inf))
        left -= share * step_s
        now_s += step_s
        ends[here & (needed_s <= step_s)] = now_s
    return ends


@pytest.mark.slow
@settings(max_examples=60)
@given(uploads)
def test_tags_are_the_shares_that_are_set_at_each_change_also_with_interruptions(drawn):
    ends = [played(drawn, make) for make in (ProcessorSharing, fluid)]
    assert ends[0] == pytest.approx(ends[1], rel=1e-9, abs=1e-9)


def fluid(channel):
    return FluidSharing(channel, weighted_shares)


def played(drawn, make):
    """When each upload ends, without SimPy; who does not stay leaves at half its time alone."""
    band, ends = make(air(len(drawn))), [math.nan] * len(drawn)
    moments = [(begin, k, True) for k, (begin, *_) in enumerate(drawn)]
    moments += [(b + c / 2, k, False) for k, (b, c, _, stays) in enumerate(drawn) if not stays]
    for time_s, k, begins in [*sorted(moments), (math.inf, -1, False)]:
        while (ring_s := band.since_s + band.wait_s()) <= time_s and ring_s < math.inf:
            for upload in band.ring(ring_s):
                ends[upload.device] = ring_s
        if begins:
            band.begin(time_s, Upload(k, drawn[k][1], drawn[k][2], 1.0, time_s))
        elif k >= 0 and math.isnan(ends[k]):
            band.leave(time_s, k)
            ends[k] = -1.0
    return ends


@settings(max_examples=50)
@given(uploads.filter(lambda jobs: len(jobs) > 1), st.floats(1.0, 3.0))
def test_one_more_upload_helps_nobody_and_more_band_harms_nobody(drawn, wider):
    drawn = [(begin, bits, weight, True) for begin, bits, weight, _ in drawn]
    every, fewer = played(drawn, ProcessorSharing), played(drawn[:-1], ProcessorSharing)
    assert (np.array(every[:-1]) >= np.array(fewer) - 1e-9).all()
    jobs, weights = [row[:2] for row in drawn], [row[2] for row in drawn]
    ends, _ = send(fair(len(jobs), bandwidth_hz=wider), jobs, weights)
    assert (np.array(ends) <= np.array(every) + 1e-9).all()


def test_rounding_is_cleared_while_somebody_always_sends():
    """One of ten tenths ends every second, however long it goes on."""
    band, count = ProcessorSharing(air(11)), REFRESH + 50
    for k in range(10):
        band.begin(0.0, Upload(k, 0.1 * (k + 1), 0.1, 1.0, 0.0))
    for _ in range(count):
        now_s = band.since_s + band.wait_s()
        (upload,) = band.ring(now_s)
        band.begin(now_s, Upload(upload.device, 1.0, 0.1, 1.0, now_s))
    assert band.virtual < REFRESH and band.weights == pytest.approx(1.0, abs=1e-12)


def test_the_earliest_deadline_has_the_whole_band_and_the_others_wait():
    """Released at 0, 1, 2, due at 4, 3, 6: the timetable of the solver, and who waits for what."""
    link = SharedUplink(simpy.Environment(), air(3), "edf")
    link._due_s = {0: 4.0, 1: 3.0, 2: 6.0}
    ends, spans = send(link, [(0.0, 2.0), (1.0, 1.5), (2.0, 1.0)])
    assert ends == [3.5, 2.5, 4.5]
    assert [span.waited_s for span in spans] == [1.5, 0.0, 1.5]


@settings(max_examples=60)
@given(st.lists(st.tuples(*[st.integers(0, 40)] * 2, st.integers(1, 20)), min_size=1, max_size=7))
def test_the_link_keeps_the_timetable_of_the_solver(drawn):
    release, length, band = (np.array(column) / 4 for column in zip(*drawn, strict=True))
    link = SharedUplink(simpy.Environment(), air(len(band)), "edf")
    link._due_s = dict(enumerate((release + length).tolist()))
    ends, _ = send(link, list(zip(release, band, strict=True)))
    expected = earliest_deadline(release, release + length, band).finish_s
    assert ends == pytest.approx(expected.tolist(), abs=1e-9)


def test_without_deadline_who_comes_first_sends_first():
    link = SharedUplink(simpy.Environment(), air(3), "edf")
    assert send(link, [(0.2, 1.0), (0.1, 1.0), (0.0, 1.0)])[0] == pytest.approx([3.0, 2.0, 1.0])


def test_in_fading_shares_are_set_again_at_each_block():
    link = SharedUplink(simpy.Environment(), air(2, coherence_s=0.1), "fair")
    assert isinstance(link.band, FluidSharing)
    (end_s, later_s), _ = send(link, [(0.0, 3.0), (0.0, 8.0)])
    channel, sent, now_s = link.channel, [0.0, 0.0], 0.0
    while now_s < later_s:
        share = 0.5 if now_s < end_s else 1.0
        edge_s = min(channel.next_change_s(now_s), end_s if now_s < end_s else later_s, later_s)
        for k in (0, 1) if now_s < end_s else (1,):
            rate = channel.rate_bps(share, 1.0, channel.gains(now_s)[k])
            sent[k] += rate * (edge_s - now_s)
        now_s = edge_s
    assert sent == pytest.approx([3.0, 8.0])


@pytest.mark.parametrize("share", ["fair", "edf"])
def test_bits_that_will_never_arrive_are_an_error(share):
    channel = Channel(1.0, np.zeros(1), noise_w=1.0)
    with pytest.raises(StalledLinkError, match="device 0 has 1 bit"):
        send(SharedUplink(simpy.Environment(), channel, share), [(0.0, 1.0)])


@pytest.mark.parametrize("coherence_s", [math.inf, 0.5])
def test_who_sends_without_any_share_is_named(coherence_s):
    """As an allocator of the user's own may have it."""
    link = fair(2, coherence_s=coherence_s)
    with pytest.raises(StalledLinkError, match="device 1 has 2 bit to carry but no share of the"):
        send(link, [(0.0, 1.0), (0.5, 2.0)], weights=[1.0, 0.0])
