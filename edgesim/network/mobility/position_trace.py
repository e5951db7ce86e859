"""Positions of devices over time from a CSV file: device, time_s, x_m, y_m.

Between two lines of a device it goes straight, at a constant speed.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from edgesim.errors import RELATIVE, RunError
from fl.contracts import Array
from fl.regular_files import read_regular

MAX_BYTES, MAX_LINES = 400 * 2**20, 5_000_000
COLUMNS = ("device", "time_s", "x_m", "y_m")
FARTHEST_M = 1e7
STOP, HOLD = "stop", "hold"


class PositionTraceError(RunError):
    """The file of a trace cannot be used, or has ended; without the file's name."""


@dataclass(frozen=True, eq=False)
class PositionTrace:
    """Where some devices are over time.

    Args:
        times_s: of all lines, device by device, rising within each [N], s.
        points_m: [N, 2], m.
        first: position of each device's first line [K].
        end: hold: a device stays at its last point; stop: asking beyond it is an error.
    """

    times_s: Array
    points_m: Array
    first: Array
    end: str = STOP

    @property
    def last(self) -> Array:
        """Position of each device's last line [K]."""
        return np.append(self.first[1:], len(self.times_s)) - 1

    @property
    def top_speed_m_per_s(self) -> float:
        """The largest speed between two lines."""
        within = np.ones(max(len(self.times_s) - 1, 0), dtype=bool)
        within[self.first[1:] - 1] = False
        moved_m = np.hypot(*np.diff(self.points_m, axis=0).T)[within]
        return float((moved_m / np.diff(self.times_s)[within]).max(initial=0.0))

    def at(self, time_s: float) -> Array:
        """Positions [K, 2] at an instant, m.

        Raises:
            PositionTraceError: the trace has ended.
        """
        ends_s = self.times_s[self.last]
        if self.end == STOP and time_s > ends_s.min():
            k = int(ends_s.argmin())
            raise PositionTraceError(
                f"ends at {ends_s[k]:g} s for device {k}, before the run does; give a longer "
                "trace, or write end: hold"
            )
        # lines of a device that begin by now: all before the first later one, counted by sums
        begun = np.add.reduceat(self.times_s <= time_s, self.first)
        line = self.first + np.maximum(begun, 1) - 1
        after = np.minimum(line + 1, self.last)
        length_s = self.times_s[after] - self.times_s[line]
        passed = np.clip(time_s - self.times_s[line], 0.0, length_s)
        done = np.divide(passed, length_s, out=np.zeros(len(line)), where=length_s > 0.0)
        here = self.points_m[line]
        return here + done[:, None] * (self.points_m[after] - here)


def read_positions(path: Path, devices: int, end: str = STOP) -> PositionTrace:
    """Read and check a file; lines of devices from ``devices`` on are not used.

    Raises:
        PositionTraceError: the first thing that is wrong, without the file's name.
    """
    try:
        file = io.StringIO(read_regular(path, MAX_BYTES).decode("utf-8-sig"), newline=None)
    except OSError as error:
        raise PositionTraceError(f"cannot be read ({error.strerror}); {RELATIVE}") from error
    except UnicodeDecodeError as error:
        raise PositionTraceError("is not UTF-8 text") from error
    head = [name.strip() for name in file.readline().rstrip("\n").split(",")]
    if tuple(head) != COLUMNS:
        raise PositionTraceError(f"must have the first line {','.join(COLUMNS)}")
    lines = file.readlines()
    if not any(map(str.strip, lines)):
        raise PositionTraceError("holds no line of positions")
    if len(lines) > MAX_LINES:
        raise PositionTraceError(f"has {len(lines)} lines; allowed are {MAX_LINES}")
    try:
        rows = np.loadtxt(filter(str.strip, lines), delimiter=",", ndmin=2, comments=None)
        if rows.shape[1] != len(COLUMNS):
            raise ValueError
    except ValueError:
        raise PositionTraceError(f"has in line {odd_line(lines)} not four numbers") from None
    refuse_odd_values(rows, lines)
    return checked(rows, devices, end)


def odd_line(lines: list[str]) -> int:
    """Number of the first line that is not four numbers, the head being line 1."""
    for number, line in enumerate(lines, 2):
        try:
            if line.strip() and len(list(map(float, line.split(",")))) != len(COLUMNS):
                return number
        except ValueError:
            return number
    return len(lines) + 1


def refuse_odd_values(rows: Array, lines: list[str]) -> None:
    """Check each number of the rows [N, 4], which are the lines that are not empty, by itself."""
    device, time_s, points_m = rows[:, 0], rows[:, 1], rows[:, 2:]
    whole = np.isfinite(device) & (device == np.floor(device))
    for wanted, fine in (
        ("a device that is a whole number from 0 on", whole & (device >= 0)),
        ("a time in s, a finite number", np.isfinite(time_s)),
        (f"a place within {FARTHEST_M:g} m of the origin", np.abs(points_m) <= FARTHEST_M),
    ):
        odd = np.flatnonzero(~fine.reshape(len(rows), -1).all(axis=1))
        if odd.size:
            filled = (number for number, line in enumerate(lines, 2) if line.strip())
            number = next(islice(filled, odd[0], None))
            given = lines[number - 2].strip()
            raise PositionTraceError(f"has in line {number} {given}; wanted is {wanted}")


def checked(rows: Array, devices: int, end: str) -> PositionTrace:
    """The trace of the rows [N, 4] of a file; every device has lines, from time 0 on, rising."""
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    rows = rows[rows[:, 0] < devices]
    found, first = np.unique(rows[:, 0], return_index=True)
    missing = np.setdiff1d(np.arange(devices), found)
    if missing.size:
        raise PositionTraceError(f"has no line of device {missing[0]}; {devices} devices need one")
    times_s = rows[:, 1]
    late = np.flatnonzero(times_s[first] != 0.0)
    if late.size:
        begins_s = times_s[first[late[0]]]
        raise PositionTraceError(
            f"begins at {begins_s:g} s for device {late[0]}; its first time must be 0"
        )
    back = np.flatnonzero((np.diff(times_s) <= 0.0) & (np.diff(rows[:, 0]) == 0.0))
    if back.size:
        device, before_s, after_s = rows[back[0], 0], times_s[back[0]], times_s[back[0] + 1]
        raise PositionTraceError(
            f"goes from {before_s:g} s to {after_s:g} s for device {device:g}; times must rise"
        )
    return PositionTrace(times_s, rows[:, 2:], first, end)
