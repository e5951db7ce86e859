"""The table of ``edgesim check``: what each device can reach in a round, and what binds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from edgesim.cli.console import (
    NARROW,
    add_number_columns,
    console,
    is_known,
    number,
    print_entry,
    print_line,
    print_table,
    table_of,
)
from edgesim.errors import counted

if TYPE_CHECKING:
    from edgesim.runs.feasibility.round_0 import Feasibility

GAIN = "gain dB"
LEGEND = {
    GAIN: "of the channel to the base station, as the plan of round 0 counts with it: path loss, "
    "shadowing, the receiver's implementation loss and, where there are, the fade of that round "
    "and what interference of other sectors adds to the noise",
    "Mbit/s": "uplink rate over the whole band",
    "stages, upload": "of the unpruned round; the upload at an equal share of the band, with as "
    "many devices as a round asks",
    "least": "the whole round of the device alone on the band, pruned as far as allowed",
    "binds": "the longest part of the unpruned round; where it cannot, that of the least round",
    "share, rho, plan": "band, pruning ratio and duration that the allocator plans for round 0; "
    "- where another round asks the device",
}


def print_feasibility(label: str, answer: Feasibility, most: int | None = None) -> None:
    """Print the table.

    Args:
        label: of the scheme.
        answer: of `edgesim.runs.run.feasibility`.
        most: devices that are listed; None: all.
    """
    out, rows = console(), answer.rows[:most]
    least, longest = (number(each, ".4g") for each in answer.thresholds_ms)
    limit = f", threshold {least} ms"
    if least != longest:
        limit = f", thresholds of the edges {least} to {longest} ms"
    stages = list(dict.fromkeys(name for row in rows for name in row["stages"]))
    gain = out.width > NARROW
    table = table_of(f"{label}{limit if is_known(answer.thresholds_ms[0]) else ''}")
    times = [*(f"{name} ms" for name in stages), "upload ms", "least ms", "binds"]
    names = ["Mbit/s", *times, "share", "rho", "plan ms"]
    add_number_columns(table, ["device", *([GAIN] if gain else []), *names])
    for row in rows:
        table.add_row(*map(Text, _cells(row, stages, gain)))
    print_table(table, out)
    if len(answer.rows) > len(rows):
        out.print(f"and {counted(len(answer.rows) - len(rows), 'device')} more (--all shows them)")
    if answer.note and answer.note not in answer.warnings:
        print_line(answer.note)
    for warning in answer.warnings:
        print_line(f"warning: {warning}")


def print_legend() -> None:
    """Print what the columns of the tables mean."""
    width = max(map(len, LEGEND))
    for column, meaning in LEGEND.items():
        if column != GAIN or console().width > NARROW:
            print_entry(column, meaning, width)


def _cells(row: dict[str, Any], stages: Sequence[str], gain: bool) -> list[str]:
    """The plan is "cannot" where even the work that nothing can shorten takes too long."""
    return [
        str(row["device"]),
        *([number(row["gain_db"], ".1f")] if gain else []),
        number(row["rate_mbps"], ".4g"),
        *(number(row["stages"].get(name), ".3g") for name in stages),
        number(row["upload_ms"], ".4g"),
        number(row["least_ms"], ".4g"),
        str(row["binds"]),
        number(row["share"], ".4f"),
        number(row["rho"], ".3f"),
        number(row["planned_ms"], ".4g") if row["feasible"] else "cannot",
    ]
