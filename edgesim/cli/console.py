"""Output of the command line: the console, tables, numbers, scenario keys and catalogs.

What users have written is printed as plain text, never as markup.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, JustifyMethod
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from edgesim.errors import visible

if TYPE_CHECKING:
    from edgesim.results.run_listing import ListedRun
    from edgesim.scenario.documented_keys import KeyInfo

WIDE = 160  # columns of a table where the output is no terminal
LONGEST = 10_000  # columns of a table that no terminal has
MOST_KEYS = 4  # of a run in a list
NARROW = 100  # columns of a terminal where the least important ones are left out


def console() -> Console:
    """Of stdout."""
    plain = Console(highlight=False)
    return plain if plain.is_terminal else Console(highlight=False, width=WIDE)


def print_line(line: object, target: Console | None = None) -> None:
    """One line without markup, however long."""
    (target or console()).print(visible(str(line)), markup=False, soft_wrap=True)


def print_keys(infos: Sequence[KeyInfo], brief: bool) -> None:
    """Scenario keys: one line each, or all that is known of each."""
    width = max(len(info.key) for info in infos)
    for info in infos:
        if brief:
            shown = info.default not in ("see its keys", "required")
            default = f"  [{info.default}]" if shown else ""
            print_entry(info.key, f"{info.meaning}{default}", width)
            continue
        print_line(f"{info.key}: {info.meaning}")
        facts = {
            "unit inside": info.unit,
            "allowed": info.allowed,
            "only with": info.only_with,
            "default": info.default,
            "source": info.source,
            "example": f"{info.key.rpartition('.')[2]}: {info.example}",
        }
        for name, value in facts.items():
            if value:
                print_line(f"    {name}: {value}")


def print_catalog(rows: Sequence[tuple[str, str, str]]) -> None:
    """Names with one line each and the source."""
    width = max((len(name) for name, _, _ in rows), default=0)
    for name, line, source in rows:
        print_entry(name, f"{line}{f' ({source})' if source else ''}", width)


def print_entry(name: str, text: str, width: int) -> None:
    """A name in a column of that width and a text beside it.

    On a terminal the text is wrapped between words; elsewhere it is one line, for grep.
    """
    out, indent = console(), " " * (width + 2)
    line = f"{name:{width}}  {text}"
    if out.is_terminal and out.width > 2 * len(indent):
        line = textwrap.fill(line, out.width - 1, subsequent_indent=indent, break_on_hyphens=False)
    print_line(line, out)


def table_of(title: str) -> Table:
    """A table without lines, so that it fits into 80 columns."""
    return Table(title=Text(title), box=None, pad_edge=False, padding=(0, 1, 0, 0))


def print_table(table: Table, out: Console) -> None:
    """A table with every number and word as a whole: lines are as long as these need."""
    widths = (_whole_width(column, out) for column in table.columns)
    out.width = max(out.width, sum(widths) + len(table.columns))
    out.print(table)


def _whole_width(column: Column, out: Console) -> int:
    """Of the longest cell, or of the longest word where cells may be wrapped."""
    options = out.options.update(max_width=LONGEST)
    measured = [Measurement.get(out, options, cell) for cell in (column.header, *column.cells)]
    return max(each.maximum if column.no_wrap else each.minimum for each in measured)


def add_number_columns(table: Table, names: Sequence[str]) -> None:
    """Columns of numbers, with the unit in a second line of the head."""
    for name in names:
        head = Text("\n".join(name.rsplit(" ", 1)))
        table.add_column(head, justify="right", no_wrap=True)


def number(value: float | None, shape: str, scale: float = 1.0) -> str:
    """A number times a scale in a format; - where there is none."""
    return format(value * scale, shape) if value is not None and math.isfinite(value) else "-"


def bits(value: float | None) -> str:
    """Such as ``1.29 Gbit``."""
    if value is None or not math.isfinite(value):
        return "-"
    for size, unit in ((1e12, "Tbit"), (1e9, "Gbit"), (1e6, "Mbit"), (1e3, "kbit")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} bit"


def is_known(value: float | None) -> bool:
    """Is it a finite number?"""
    return value is not None and math.isfinite(value)


def learning_figures(event: Mapping[str, Any]) -> dict[str, str]:
    """Accuracy, or with real targets the loss, and metrics of the user's own: name -> as text.

    Args:
        event: accuracy, loss and metrics, each where it is known; - for a loss that is infinite
            and a metric without a finite value, as in the table at the end of a run.
    """
    figures, loss = {}, event.get("loss")
    if is_known(event.get("accuracy")):
        figures["accuracy"] = f"{event['accuracy']:.3f}"
    elif loss is not None and not math.isnan(loss):
        figures["loss"] = number(loss, ".4g")
    return figures | {name: number(x, ".4g") for name, x in event.get("metrics", {}).items()}


def print_listed(place: Path, runs: Sequence[ListedRun]) -> None:
    """One line a run or sweep; folders are relative to the place.

    Args:
        place: where they were looked for.
        runs: of `edgesim.results.run_listing.list_runs`.
    """
    out, table = console(), table_of("")
    table.title = None
    for name in ("folder", "scheme", "seed", "keys that differ", "rounds", "accuracy", "state"):
        justify: JustifyMethod = "right" if name in ("rounds", "accuracy") else "left"
        table.add_column(name, justify=justify, overflow="fold", no_wrap=not out.is_terminal)
    table.add_column("written", no_wrap=not out.is_terminal)
    for run in runs:
        folder = run.folder.relative_to(place) if run.folder != place else Path(".")
        cells = [
            folder.as_posix(),
            run.scheme,
            run.seed,
            _keys(run.keys),
            "" if run.rounds is None else str(run.rounds),
            number(run.accuracy, ".3f"),
            run.state,
            run.changed_at.strftime("%Y-%m-%d %H:%M"),
        ]
        table.add_row(*(Text(visible(cell)) for cell in cells))
    # a terminal folds what is long; a pipe gets one line each, for grep
    if out.is_terminal:
        out.print(table)
    else:
        print_table(table, out)


def _keys(keys: dict[str, str]) -> str:
    from edgesim.records.folder_names import short_names

    names = short_names(keys)
    texts = [f"{names[key]}={text}" for key, text in keys.items()]
    more = f", {len(texts) - MOST_KEYS} more" if len(texts) > MOST_KEYS else ""
    return ", ".join(texts[:MOST_KEYS]) + more
