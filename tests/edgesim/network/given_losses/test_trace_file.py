"""Traces: units, holding and repeating, rates as losses, and one sentence per mistake."""

import math
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.network.channel import Channel
from edgesim.network.given_losses.trace_file import MAX_BYTES, TraceFileError, read_trace
from edgesim.network.given_losses.traced_losses import TracedLosses, losses_of_rates
from edgesim.network.given_losses.varying_channel import VaryingChannel

GOOD = "time [ms],a [Mbit/s],b [kbit/s]\n0,1.5,2000\n20,0,500\n"


@pytest.fixture
def trace(tmp_path):
    def read(text, devices=2):
        (tmp_path / "t.csv").write_text(text, encoding="utf-8")
        return read_trace(tmp_path / "t.csv", devices)

    return read


def test_units_are_those_of_the_head(trace):
    found = trace(GOOD)
    assert found.kind == "rate" and found.times_s.tolist() == [0.0, 0.02]
    assert found.values.tolist() == [[1.5e6, 2e6], [0.0, 5e5]]
    assert trace(GOOD, devices=1).values.tolist() == [[1.5e6], [0.0]]  # further columns are unused
    assert trace("\ufefft [s],x [dB]\r\n0,inf\r\n", 1).kind == "loss"


@pytest.mark.parametrize("lines", ["0,0,0", "0,0,inf", "0,1e-9,2e-9\n1,0,1e-3", "0,1e-9,100"])
def test_losses_of_which_one_is_none_of_a_linear_gain(trace, lines):
    assert trace(f"t [s],a [dB],b [dB]\n{lines}\n").kind == "loss"


HEAD = "time [s],device 0 [Mbit/s]"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", f"has no head with units, divided by commas, in its first line; write such as {HEAD}"),
        ("t [s];a [dB];b [dB]\n", "no head with units, divided by commas, in its first line"),
        ("9" * 140_000 + "\n", "is no table (field larger than field limit"),
        ("0,1,2\n", 'has in its first line "0" as column 1, without the unit of a time'),
        ("t [s],a [MHz],b [dB]\n0,1,1\n", '"a [MHz]" as column 2, without the unit of a data rate'),
        ("t [s],a [bit/s],b [dB]\n0,1,1\n", "holds data rates and losses in dB"),
        ("t [s],a [dB]\n0,1\n", "has a column for 1 device; the cell has 2"),
        ("t [s],a [dB],b [dB]\n", "holds no line of values"),
        ("t [s],a [dB],b [dB]\n0,1,2\n1,x,2\n", 'has "x" in line 3, column 2, which is no number'),
        ("t [s],a [dB],b [dB]\n0,1,2\n1,2\n", "has 2 values in line 3; its first line has 3"),
        ("t [s],a [dB],b [dB]\n0,1,2\n\n1,2,3,4\n", "has 4 values in line 4; its first line has 3"),
        ("t [s],a [dB],b [dB]\n0,1,2,\n", "has 4 values in line 2; its first line has 3"),
        ("t [s],a [dB],b [dB],c\n0,1,2\n", "has 3 values in line 2; its first line has 4"),
        ("t [s],a [dB],b [dB]\n1,1,2\n", "begins at 1 s in line 2; its first time must be 0"),
        ("t [ms],a [dB],b [dB]\n5,1,2\n", "begins at 5 ms in line 2; its first time must be 0"),
        ("t [s],a [dB],b [dB]\n0,1,2\n0,1,2\n", "goes from 0 s to 0 s in line 3; times must"),
        ("t [ms],a [dB],b [dB]\n0,1,2\n\n9,1,2\n8,1,2\n", "goes from 9 ms to 8 ms in line 5;"),
        ("t [s],a [dB],b [dB]\n0,1,2\nnan,1,2\n", "has a time that is no number in line 3"),
        ("t [s],a [bit/s],b [Mbit/s]\n0,1,-10\n", "has -10 Mbit/s for device 1 in line 2; a rate"),
        (
            "t [s],a [dB],b [dB]\n0,1e-10,inf\n1,0,3e-9\n",
            "has 3e-09 dB at most; these seem to be linear gains, whose losses are -10 log10 of",
        ),
        ("t [s],a [dB],b [dB]\n0,-95,2\n", "it seems to hold gains, whose sign is the other one"),
        ("t [s],a [bit/s],b [bit/s]\n0,1,nan\n", "nan bit/s for device 1 in line 2; a rate is"),
        ("t [s],a [dB],b [dB]\n0,1,2\n#1,1,2\n", 'has "#1" in line 3, column 1'),
    ],
)
def test_mistakes(trace, text, sentence):
    with pytest.raises(TraceFileError) as problem:
        trace(text)
    assert sentence in str(problem.value) and "\n" not in str(problem.value)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_only_regular_files_are_read(tmp_path, kind):
    if kind == "pipe":
        os.mkfifo(tmp_path / "t.csv")
    else:
        (tmp_path / "t.csv").symlink_to("/dev/zero")
    with pytest.raises(TraceFileError, match=f"it is a {kind}, and only regular files are read"):
        read_trace(tmp_path / "t.csv", 2)


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    with open(tmp_path / "t.csv", "wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(TraceFileError, match="it has 400 MiB, more than the 400 MiB allowed"):
        read_trace(tmp_path / "t.csv", 2)


def losses(times_s, end="repeat"):
    return TracedLosses(np.array(times_s, float), 10.0 * np.arange(len(times_s))[:, None], end)


def test_a_line_holds_until_the_next_and_the_trace_starts_again():
    three = losses([0.0, 1.0, 3.0])  # the last line lasts 2 s, as long as the one before
    assert three.period_s == 5.0
    assert [three.loss_db(t)[0] for t in (0, 0.9, 1, 2.9, 3, 4.9, 5, 6, 13)] == [
        *(0, 0, 10, 10, 20, 20, 0, 10, 20)
    ]
    assert [three.next_change_s(t) for t in (0, 1, 3, 4.9, 5)] == [1, 3, 5, 5, 6]


def test_the_last_line_may_hold_for_ever():
    held = losses([0.0, 1.0], end="hold")
    assert held.loss_db(1e9)[0] == 10.0 and held.next_change_s(1.0) == math.inf
    assert losses([0.0]).next_change_s(0.0) == math.inf


@pytest.mark.slow
@given(
    steps=st.lists(st.floats(1e-3, 10.0), min_size=1, max_size=6),
    start_s=st.floats(0.0, 1e4),
)
def test_every_change_is_a_change_and_comes_later(steps, start_s):
    """Also where times do not add up exactly: each wake-up finds the next line."""
    trace, now_s = losses(np.cumsum([0.0, *steps])), start_s
    for _ in range(20):
        then_s = trace.next_change_s(now_s)
        assert then_s > now_s
        line = trace.loss_db(now_s)[0] // 10
        assert trace.loss_db(then_s)[0] // 10 == (line + 1) % len(trace.times_s)
        now_s = then_s


def test_a_rate_is_carried_by_its_loss():
    rates, power_w = np.array([[1e6, 0.0], [3e7, 5e5]]), np.array([0.2, 0.5])
    for noise in ({"noise_w": 1e-14}, {"noise_w_per_hz": 1e-20}):
        channel = Channel(1e6, np.ones(2), **noise)
        loss_db = losses_of_rates(rates, power_w, channel.band_noise_w, 1e6)
        back = channel.rate_bps(1.0, power_w, 10.0 ** (-loss_db / 10.0))
        assert back == pytest.approx(rates, rel=1e-12)


def test_a_rate_beyond_any_link_is_refused():
    with pytest.raises(TraceFileError, match="which is 200 bit/s/Hz over the band of 1 MHz"):
        losses_of_rates(np.array([[2e8]]), np.ones(1), 1e-14, 1e6)


def test_the_gain_without_fading_is_that_of_the_loss_at_the_time():
    process = TracedLosses(np.array([0.0, 1.0]), np.array([[127.0], [130.0]]), "hold")
    channel = VaryingChannel(process, [1.0], bandwidth_hz=1e6, noise_w=1e-14)
    for time_s, loss_db in ((0.0, 127.0), (1.0, 130.0), (5.0, 130.0), (0.5, 127.0)):
        assert channel.large_scale_at(time_s)[0] == pytest.approx([10 ** (-loss_db / 10)])
