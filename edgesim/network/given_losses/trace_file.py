"""A measured trace: rates or path losses of every device over time, from a CSV file.

The first line names the columns, each with its unit in brackets: the time, then one column per
device in the order of their numbers. A value holds until the time of the next line.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edgesim.errors import RELATIVE, RunError, counted
from edgesim.network.given_losses.varying_channel import seem_linear_gains
from edgesim.scenario.units import UnitError, parse
from fl.contracts import Array
from fl.regular_files import read_regular

MAX_BYTES, MAX_VALUES = 400 * 2**20, 20_000_000
COLUMN = re.compile(r"(.*)\[(.+)\]\s*")
RATE, LOSS = "rate", "loss"
EXAMPLE = "time [s],device 0 [Mbit/s],device 1 [Mbit/s]"


class TraceFileError(RunError):
    """The file of a trace cannot be used."""


@dataclass(frozen=True, eq=False)
class Trace:
    """What a file of a trace holds.

    Args:
        times_s: when the lines begin [N], s, from 0 on.
        values: of the devices, [N, columns]: bit/s or dB.
        kind: rate or loss.
    """

    times_s: Array
    values: Array
    kind: str


def read_trace(path: Path, devices: int) -> Trace:
    """Read and check a file.

    Args:
        path: of the CSV file.
        devices: K; of further columns the file may have any number, which are not used.

    Raises:
        TraceFileError: the first thing that is wrong, without the file's name.
    """
    try:
        file = io.StringIO(read_regular(path, MAX_BYTES).decode("utf-8-sig"), newline="")
        scales, kind, head = read_head(file.readline(), devices)
        text = file.read()
        numbers = read_numbers(text, len(head), devices + 1)
    except OSError as error:
        raise TraceFileError(f"cannot be read ({error.strerror}); {RELATIVE}") from error
    except UnicodeDecodeError as error:
        raise TraceFileError("is not UTF-8 text") from error
    except csv.Error as error:
        raise TraceFileError(f"is no table ({error})") from error
    written = WrittenNumbers(numbers, head, text)
    times_s, values = numbers[:, 0] * scales[0], numbers[:, 1:] * scales[1:]
    check_times(times_s, written)
    check_values(values, kind, written)
    return Trace(times_s, values, kind)


@dataclass(frozen=True, eq=False)
class WrittenNumbers:
    """The numbers of a file as they stand there, for errors.

    Args:
        numbers: [N, columns].
        head: names of the columns, with their units.
        text: the lines behind the first one.
    """

    numbers: Array
    head: list[str]
    text: str

    def shown(self, row: int, column: int) -> str:
        """A number with its unit."""
        found = COLUMN.fullmatch(self.head[column])
        return f"{self.numbers[row, column]:g} {found[2].strip() if found else ''}".rstrip()

    def line(self, row: int) -> int:
        """Number of a row's line in the file, blank ones counted."""
        lines = enumerate(self.text.splitlines(), 2)
        return [number for number, line in lines if line.strip()][row]


def read_head(line: str, devices: int) -> tuple[Array, str, list[str]]:
    """(factors to SI of the columns that are used, rate or loss, all columns) of the first line."""
    head = next(csv.reader([line]), [])
    if len(head) < 2:
        problem = "has no head with units, divided by commas, in its first line"
        raise TraceFileError(f"{problem}; write such as {EXAMPLE}")
    if len(head) - 1 < devices:
        count = len(head) - 1
        there = "a column for 1 device" if count == 1 else f"columns for {count} devices"
        raise TraceFileError(f"has {there}; the cell has {devices}")
    scales, kinds = [], set()
    for place, column in enumerate(head[: devices + 1]):
        found = COLUMN.fullmatch(column)
        wanted = ("s",) if place == 0 else ("bit/s", "dB")
        scale, unit = unit_of(found[2].strip(), wanted) if found else (None, "")
        if scale is None:
            kinds_allowed = "a time" if place == 0 else "a data rate or dB"
            example = "time [s]" if place == 0 else "device 0 [Mbit/s]"
            raise TraceFileError(
                f'has in its first line "{column.strip()[:40]}" as column {place + 1}, without the '
                f"unit of {kinds_allowed} in brackets; write such as {example}"
            )
        scales.append(scale)
        kinds.add(unit)
    kinds.discard("s")
    if len(kinds) > 1:
        raise TraceFileError("holds data rates and losses in dB; write one of the two")
    return np.array(scales), LOSS if kinds == {"dB"} else RATE, head


def unit_of(text: str, wanted: tuple[str, ...]) -> tuple[float | None, str]:
    """(factor to SI, SI unit) of a unit that is one of a few kinds; None: it is not."""
    for unit in wanted:
        try:
            return parse(f"1 {text}", unit), unit
        except UnitError:
            continue
    return None, ""


def read_numbers(text: str, columns: int, used: int) -> Array:
    """The lines behind the first one as numbers [N, used]."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise TraceFileError("holds no line of values")
    if len(lines) * used > MAX_VALUES:
        raise TraceFileError(f"holds {len(lines) * used} values; allowed are {MAX_VALUES}")
    if any(line.count(",") != columns - 1 for line in lines):
        raise TraceFileError(first_odd_line(text, columns))
    try:
        return np.loadtxt(lines, delimiter=",", usecols=range(used), ndmin=2, comments=None)
    except ValueError:
        raise TraceFileError(first_odd_line(text, columns)) from None


def first_odd_line(text: str, columns: int) -> str:
    """What is wrong with the first line that is not all numbers."""
    for number, line in enumerate(text.splitlines(), 2):
        cells = line.split(",") if line.strip() else []
        if cells and len(cells) != columns:
            found = f"has {counted(len(cells), 'value')} in line {number}"
            return f"{found}; its first line has {counted(columns, 'column')}"
        for place, cell in enumerate(cells, 1):
            try:
                float(cell)
            except ValueError:
                shown = cell.strip()[:40]
                return f'has "{shown}" in line {number}, column {place}, which is no number'
    return "holds what is no number"


def check_times(times_s: Array, written: WrittenNumbers) -> None:
    """From 0 on, each later than the one before."""
    odd = np.flatnonzero(~np.isfinite(times_s))
    if odd.size:
        raise TraceFileError(f"has a time that is no number in line {written.line(odd[0])}")
    if times_s[0] != 0.0:
        begins = f"{written.shown(0, 0)} in line {written.line(0)}"
        raise TraceFileError(f"begins at {begins}; its first time must be 0")
    late = np.flatnonzero(np.diff(times_s) <= 0.0)
    if late.size:
        before, after = (written.shown(row, 0) for row in (late[0], late[0] + 1))
        line = written.line(late[0] + 1)
        raise TraceFileError(f"goes from {before} to {after} in line {line}; times must rise")


def check_values(values: Array, kind: str, written: WrittenNumbers) -> None:
    """Rates are finite and not negative, losses not negative; inf dB is no connection.

    Losses that all seem to be linear gains are refused, as those of a channel of the user's own.
    """
    least = "a rate" if kind == RATE else "a path loss"
    bad = np.isnan(values) | (values < 0.0) | (np.isposinf(values) & (kind == RATE))
    if bad.any():
        row, k = (int(axis[0]) for axis in np.nonzero(bad))
        hint = "; it seems to hold gains, whose sign is the other one" if kind == LOSS else ""
        raise TraceFileError(
            f"has {written.shown(row, k + 1)} for device {k} in line {written.line(row)}; "
            f"{least} is a number of at least 0{hint}"
        )
    if kind == LOSS and (gains := seem_linear_gains(values)):
        raise TraceFileError(f"has {gains}")
