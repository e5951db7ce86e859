"""Positions from a file: straight between the lines, and one sentence per mistake."""

import numpy as np
import pytest

from edgesim.network.mobility.position_trace import PositionTraceError, read_positions

HEAD = "device,time_s,x_m,y_m\n"
GOOD = HEAD + "1,0,5,5\n0,0,0,0\n0,10,100,0\n0,30,100,-40\n"


@pytest.fixture
def trace(tmp_path):
    def read(text, devices=2, end="hold"):
        (tmp_path / "t.csv").write_text(text, encoding="utf-8")
        return read_positions(tmp_path / "t.csv", devices, end)

    return read


def test_devices_go_straight_and_stay_at_the_end(trace):
    walk = trace(GOOD)
    for time_s, place in ((0.0, (0, 0)), (2.5, (25, 0)), (20.0, (100, -20)), (99.0, (100, -40))):
        assert walk.at(time_s)[0] == pytest.approx(place)
        assert walk.at(time_s)[1].tolist() == [5.0, 5.0]
    assert walk.top_speed_m_per_s == pytest.approx(10.0)
    assert trace(GOOD + "7,0,1,1\n").at(0.0).shape == (2, 2)  # further devices are not used


def test_a_trace_that_ends_before_the_run_says_so(trace):
    walk = trace(HEAD + "0,0,1,2\n0,4,3,2\n", 1, "stop")
    assert walk.at(4.0)[0].tolist() == [3.0, 2.0]
    with pytest.raises(PositionTraceError, match="ends at 4 s for device 0, before the run does;"):
        walk.at(4.1)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "must have the first line device,time_s,x_m,y_m"),
        ("time_s,device,x_m,y_m\n0,0,1,1\n", "must have the first line device,time_s,x_m,y_m"),
        (HEAD, "holds no line of positions"),
        (HEAD + "2,0,1,1\n", "has no line of device 0; 2 devices need one"),
        (HEAD + "0,0,1,1\n", "has no line of device 1; 2 devices need one"),
        (HEAD + "0,0,1,1\n1,0,x,1\n", "has in line 3 not four numbers"),
        (HEAD + "0,0,1\n1,0,1\n", "has in line 2 not four numbers"),
        (HEAD + "\n  \n0,0,1,1\n\n1,0,x,1\n", "has in line 6 not four numbers"),
        (HEAD + "\n0,0,1\n1,0,1\n", "has in line 3 not four numbers"),
        (HEAD + "0,0,1,1\n1,0,1,1,1\n", "has in line 3 not four numbers"),
        (
            HEAD + "0,0,1,1\n\n0.5,0,1,1\n1,0,1,1\n",
            "has in line 4 0.5,0,1,1; wanted is a device that is a whole number from 0 on",
        ),
        (HEAD + "0,2,1,1\n1,0,1,1\n", "begins at 2 s for device 0; its first time must be 0"),
        (HEAD + "0,0,1,1\n0,0,1,2\n1,0,1,1\n", "goes from 0 s to 0 s for device 0; times must"),
        (
            HEAD + "0,0,1,1\n1,0,nan,1\n",
            "has in line 3 1,0,nan,1; wanted is a place within 1e+07 m of the origin",
        ),
        (HEAD + "0,0,1,1e9\n1,0,1,1\n", "has in line 2 0,0,1,1e9; wanted is a place within"),
        (HEAD + "0,0,1,1\n1,inf,1,1\n", "has in line 3 1,inf,1,1; wanted is a time in s, a fini"),
        (HEAD + "nan,0,1,1\n1,0,1,1\n", "has in line 2 nan,0,1,1; wanted is a device that is"),
        (HEAD + "0,0,1,1\ninf,0,1,1\n", "has in line 3 inf,0,1,1; wanted is a device that is"),
    ],
)
def test_mistakes(trace, text, sentence):
    with pytest.raises(PositionTraceError) as problem:
        trace(text)
    assert sentence in str(problem.value) and "\n" not in str(problem.value)


def test_a_file_that_is_none_and_one_with_other_letters(tmp_path):
    with pytest.raises(PositionTraceError, match="cannot be read"):
        read_positions(tmp_path / "none.csv", 1)
    (tmp_path / "t.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(PositionTraceError, match="is not UTF-8 text"):
        read_positions(tmp_path / "t.csv", 1)


def test_many_lines_are_read_in_any_order(trace):
    lines = [f"{k},{t},{k},{t * k}\n" for t in range(50) for k in (2, 0, 1)]
    walk = trace(HEAD + "".join(lines), 3)
    k = np.arange(3)
    assert walk.at(12.25) == pytest.approx(np.stack([k, 12.25 * k], axis=1))
