"""What ``edgesim sweep --select`` prints and writes: the chosen values of every scheme."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from edgesim.cli.console import console, print_line, table_of
from edgesim.results.best_validation import RULE, Choice, choose, overlay
from edgesim.scenario.base_file import base_of
from edgesim.sweep.sweep_folder import SweepFolder
from edgesim.sweep.sweep_point import short_names

FILE = "best-validation.yaml"


def select_and_print(folder: SweepFolder) -> None:
    """Choose among the finished points, print the table, write the scenario with the choice."""
    choices = choose(folder.path)
    out = console()
    out.print(_table(choices))
    for choice in choices:
        for key in choice.edges:
            value = choice.best.values[key]
            print_line(f"{choice.label}: {key}={value} is at the edge of its values; widen them")
    path = folder.path / FILE
    base = os.path.relpath(base_of(folder.plan.source), folder.path)
    of_schemes = any(point.scenario.scheme is not None for point in folder.plan.points)
    head = f"# Chosen by edgesim sweep {folder.plan.source} --select best-validation:\n# {RULE}\n"
    path.write_text(head + overlay(choices, Path(base).as_posix(), of_schemes), encoding="utf-8")
    print_line(f"{path}: the scenario with these values")


def _table(choices: Sequence[Choice]) -> Table:
    table = table_of("best validation accuracy")
    for name in ("scheme", "chosen", "tried"):
        table.add_column(name, overflow="fold")
    for name in ("accuracy %", "seeds"):
        table.add_column(name, justify="right")
    table.add_column("of each value tried, %", overflow="fold")
    for choice in choices:
        best = choice.best
        shown = [f"{100 * each.score:.1f}" for each in choice.candidates]
        cells = [
            str(choice.label),
            values_in_words(best.values),
            grid_in_words(choice),
            f"{100 * best.score:.1f}",
            str(best.seeds),
            " ".join(shown),
        ]
        table.add_row(*map(Text, cells))
    return table


def values_in_words(values: dict[str, str]) -> str:
    """Such as ``personal_lr=global_lr=0.02, rounds=10``: keys with the same value together."""
    names = short_names(values)
    by_value: dict[str, list[str]] = {}
    for key, text in values.items():
        by_value.setdefault(text, []).append(names[key])
    return ", ".join("=".join([*keys, text]) for text, keys in by_value.items()) or "-"


def grid_in_words(choice: Choice) -> str:
    """Such as ``0.01 to 0.64 (7)`` of every key, in the order of the sweep."""
    grids = {
        key: list(dict.fromkeys(each.values[key] for each in choice.candidates))
        for key in choice.best.values
    }
    words = [f"{texts[0]} to {texts[-1]} ({len(texts)})" for texts in grids.values()]
    return ", ".join(dict.fromkeys(words)) or "-"
