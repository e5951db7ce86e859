"""Measured presence: intervals half open, repeated to the last bit, and one sentence a mistake."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edgesim.presence.presence import Part, Presence
from edgesim.presence.trace_file import PresenceFileError, read_intervals, traced

HEAD = "device,start_s,end_s\n"


def presence_of(intervals, period_s=math.inf):
    return Presence(1, [Part(traced([intervals], period_s), np.array([0]))])


def test_edges_are_exact():
    """[0, 10), [20, 25) with period 30: on at 9.999, off at 10, on at 50, off at 55."""
    presence = presence_of([(0.0, 10.0), (20.0, 25.0)], 30.0)
    assert [bool(presence.at(t)[0]) for t in (9.999, 10.0, 50.0, 55.0)] == [
        True,
        False,
        True,
        False,
    ]
    assert presence.until_s(0, 27.0, there=True) == 30.0 == presence.returns_s(27.0)[0]
    there_s = math.fsum(end - start for start, end in presence.intervals(0, 0.0, 300.0))
    assert there_s == 15.0 / 30.0 * 300.0


def test_edges_of_later_periods_are_one_product_and_one_sum():
    presence = presence_of([(0.1, 0.3)], 0.7)
    for n in (1, 100, 1000):
        edge_s = 0.1 + n * 0.7
        assert presence.until_s(0, math.nextafter(edge_s, 0.0) - 0.05, there=True) == edge_s
        if n == 100:
            assert presence.at(edge_s)[0] and not presence.at(math.nextafter(edge_s, 0.0))[0]


def test_an_interval_over_the_end_of_the_period_is_one():
    presence = presence_of([(0.0, 2.0), (8.0, 10.0)], 10.0)
    assert presence.intervals(0, 5.0, 25.0) == [(8.0, 12.0), (18.0, 22.0)]
    assert presence_of([(0.0, 10.0)], 10.0).intervals(0, 0.0, 95.0) == [(0.0, 95.0)]
    assert presence_of([(2.0, 10.0)], 10.0).intervals(0, 0.0, 20.0) == [(2.0, 10.0), (12.0, 20.0)]


def test_without_period_the_last_state_holds():
    presence = presence_of([(0.0, 4.0), (6.0, 7.0)])
    assert presence.until_s(0, 7.0, there=True) == math.inf == presence.returns_s(8.0).min()
    assert presence_of([(3.0, math.inf)]).until_s(0, 3.0, there=False) == math.inf
    assert presence_of([]).until_s(0, 0.0, there=True) == math.inf


def test_lines_in_any_order_of_devices_and_touching_intervals(tmp_path):
    path = tmp_path / "there.csv"
    path.write_text(HEAD + "1,0,5\n0,2,3\n1,5,6\n\n1,8,inf\n")
    assert read_intervals(path, 3) == [[(2.0, 3.0)], [(0.0, 6.0), (8.0, math.inf)], []]


@pytest.mark.parametrize(
    ("lines", "part"),
    [
        ("0,0,5\n0,4,6\n", "has in line 3 4 s, before the interval of device 0"),
        ("0,5,6\n0,1,2\n", "sort them, without overlap"),
        ("0,-1,6\n", "goes from -1 to 6 s in line 2"),
        ("0,3,3\n", "the end lies behind the start"),
        ("0,nan,3\n", "goes from nan"),
        ("7,0,3\n", "names device 7 in line 2; there are devices 0 to 1"),
        ("0,0\n", "has 2 values in line 2"),
        ("0,zero,3\n", 'has "0,zero,3" in line 2, not a whole number and two times'),
        ("0.5,0,3\n", 'has "0.5,0,3" in line 2, not a whole number and two times'),
        ("0,0,1e-300\n", "goes from 0 to 1e-300 s in line 2; an interval lasts at least 1e-09 s"),
        ("0,0,31\n", "ends at 31 s in line 2, behind period 30 s"),
        ("", "holds no interval"),
        ("0,0," + "9" * 140_000 + "\n", "is no table (field larger than field limit"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_line(tmp_path, lines, part):
    path = tmp_path / "there.csv"
    path.write_text(HEAD + lines)
    with pytest.raises(PresenceFileError, match=part.replace("(", r"\(")):
        read_intervals(path, 2, 30.0)


@pytest.mark.parametrize("times", ["1e300,2e300", "0,1e51", "1e51,inf"])
def test_times_that_no_table_of_a_run_may_hold_are_refused(tmp_path, times):
    """A server that waits for 1e300 s wrote rounds.csv with a time that no reader takes."""
    path = tmp_path / "there.csv"
    path.write_text(f"{HEAD}0,0,1\n1,{times}\n")
    with pytest.raises(PresenceFileError, match=r"s in line 3; times are at most 1e\+50 s"):
        read_intervals(path, 2)


def test_other_heads_and_files_that_are_none(tmp_path):
    path = tmp_path / "there.csv"
    path.write_text("start,end\n")
    with pytest.raises(PresenceFileError, match="does not begin with the line device,start_s"):
        read_intervals(path, 2)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PresenceFileError, match="UTF-8"):
        read_intervals(path, 2)
    with pytest.raises(PresenceFileError, match="cannot be read"):
        read_intervals(tmp_path / "none.csv", 2)
