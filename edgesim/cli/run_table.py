"""The table of ``edgesim list runs``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from edgesim.cli.console import console, number, table_of
from edgesim.results.run_listing import ListedRun
from edgesim.runs.folder_names import short_names

MOST_KEYS = 4  # of a run


def print_listed(place: Path, runs: Sequence[ListedRun]) -> None:
    """One line a run or sweep; folders are relative to the place.

    Args:
        place: where they were looked for.
        runs: of `edgesim.results.run_listing.list_runs`.
    """
    out, table = console(), table_of("")
    table.title = None
    for name in ("folder", "scheme", "seed", "keys that differ", "rounds"):
        table.add_column(name, justify="right" if name == "rounds" else "left", overflow="fold")
    table.add_column("accuracy", justify="right")
    table.add_column("state", overflow="fold")
    table.add_column("written")
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
        table.add_row(*map(Text, cells))
    out.print(table)


def _keys(keys: dict[str, str]) -> str:
    names = short_names(keys)
    texts = [f"{names[key]}={text}" for key, text in keys.items()]
    more = f", {len(texts) - MOST_KEYS} more" if len(texts) > MOST_KEYS else ""
    return ", ".join(texts[:MOST_KEYS]) + more
