"""Measured presence: a CSV file with the columns device, start_s and end_s.

A device is there from start_s on, and no longer at end_s. The intervals of a device do not overlap;
those that touch are one. Behind the last one it is away for ever, or all start again.
"""

from __future__ import annotations

import csv
import io
import math
from collections import defaultdict
from pathlib import Path

import numpy as np

from edgesim.errors import RELATIVE, RunError, counted
from edgesim.presence.timeline import Timeline
from fl.contracts import Array
from fl.regular_files import read_regular

COLUMNS = ["device", "start_s", "end_s"]
SHORTEST_S = 1e-9  # shorter ones are lost when times are added
LATEST_S = 1e50  # as of the times of a scenario
MAX_BYTES, MAX_LINES = 400 * 2**20, 5_000_000
Intervals = list[list[tuple[float, float]]]  # of every device (start_s, end_s), in order


class PresenceFileError(RunError):
    """The file of a presence trace cannot be used."""


def read_intervals(path: Path, devices: int, period_s: float = math.inf) -> Intervals:
    """Read and check a file.

    Args:
        path: of the CSV file.
        devices: whose numbers are 0 .. devices - 1.
        period_s: after which all start again, s; inf: never.

    Raises:
        PresenceFileError: the first thing that is wrong, without the file's name.
    """
    try:
        text = read_regular(path, MAX_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise PresenceFileError(f"cannot be read ({error.strerror}); {RELATIVE}") from error
    except UnicodeDecodeError as error:
        raise PresenceFileError("is not UTF-8 text") from error
    try:
        return intervals_in(text, devices, period_s)
    except csv.Error as error:
        raise PresenceFileError(f"is no table ({error})") from error


def intervals_in(text: str, devices: int, period_s: float) -> Intervals:
    """The intervals of `read_intervals`, from the text of the file."""
    rows = csv.reader(io.StringIO(text, newline=""))
    if [cell.strip() for cell in next(rows, [])] != COLUMNS:
        raise PresenceFileError(f"does not begin with the line {','.join(COLUMNS)}")
    found: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for line, row in enumerate(rows, 2):
        if line > MAX_LINES:
            raise PresenceFileError(f"has more than {MAX_LINES} lines")
        if row:
            device, start_s, end_s = read_row(row, line, devices, period_s)
            before = found[device]
            if before and start_s < before[-1][1]:
                raise PresenceFileError(
                    f"has in line {line} {start_s:g} s, before the interval of device {device} in "
                    f"an earlier line ends at {before[-1][1]:g} s; sort them, without overlap"
                )
            if before and start_s == before[-1][1]:
                start_s = before.pop()[0]
            before.append((start_s, end_s))
    if not found:
        raise PresenceFileError("holds no interval")
    return [found[device] for device in range(devices)]


def read_row(row: list[str], line: int, devices: int, period_s: float) -> tuple[int, float, float]:
    """(device, start, end) of a line."""
    if len(row) != len(COLUMNS):
        found = f"has {counted(len(row), 'value')} in line {line}"
        raise PresenceFileError(f"{found}; write {','.join(COLUMNS)}")
    try:
        device, start_s, end_s = int(row[0]), float(row[1]), float(row[2])
    except ValueError:
        shown = ",".join(row)[:60]
        raise PresenceFileError(
            f'has "{shown}" in line {line}, not a whole number and two times'
        ) from None
    if not 0 <= device < devices:
        problem = f"device {device} in line {line}; there are devices 0 to {devices - 1}"
        raise PresenceFileError(f"names {problem}")
    if not 0.0 <= start_s < end_s:  # also where one is nan
        problem = f"goes from {row[1].strip()[:20]} to {row[2].strip()[:20]} s in line {line}"
        raise PresenceFileError(f"{problem}; the end lies behind the start, and neither before 0")
    if max(t for t in (start_s, end_s) if math.isfinite(t)) > LATEST_S:
        problem = f"goes from {start_s:g} to {end_s:g} s in line {line}"
        raise PresenceFileError(f"{problem}; times are at most {LATEST_S:g} s, or inf at the end")
    if end_s - start_s < SHORTEST_S:
        problem = f"goes from {start_s:g} to {end_s:g} s in line {line}"
        raise PresenceFileError(f"{problem}; an interval lasts at least {SHORTEST_S:g} s")
    if not end_s <= period_s:
        raise PresenceFileError(f"ends at {end_s:g} s in line {line}, behind period {period_s:g} s")
    return device, start_s, end_s


def traced(intervals: Intervals, period_s: float = math.inf) -> Timeline:
    """Members that are there in given intervals.

    Args:
        intervals: of every member, disjoint and in order.
        period_s: after which all start again, s, no less than any end; inf: never.
    """
    starts_on = np.array([bool(own) and own[0][0] == 0.0 for own in intervals])
    own_edges = [edges_in_period(own, period_s) for own in intervals]
    count = np.array([len(edges) for edges in own_edges])
    first = np.concatenate([[0], np.cumsum(count)])[:-1]
    flat = np.array([edge for edges in own_edges for edge in edges] + [math.inf])

    def edges_after(n: int, before_s: Array) -> Array:
        if math.isinf(period_s):
            return np.where(n < count, flat[np.where(n < count, first + n, -1)], math.inf)
        passes, place = np.divmod(n, np.maximum(count, 1))
        # One product and one sum: the same instant whichever edge came before it.
        return np.where(count > 0, flat[np.where(count > 0, first + place, -1)], math.inf) + (
            np.where(count > 0, passes, 0) * period_s
        )

    return Timeline(starts_on, edges_after)


def edges_in_period(intervals: list[tuple[float, float]], period_s: float) -> list[float]:
    """Where the state changes, after 0 and up to the period; an even number if that is finite."""
    edges = [edge for interval in intervals for edge in interval if edge != math.inf]
    starts_on = bool(edges) and edges[0] == 0.0
    if starts_on:
        edges = edges[1:]
        if math.isfinite(period_s):  # on again at the period, or still
            return edges[:-1] if edges[-1] == period_s else [*edges, period_s]
    return edges
