"""What ``edgesim sweep --select`` chose: a table, and the scenario with the values."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from edgesim.cli.console import console, print_line, table_of
from edgesim.records.atomic_files import write_atomic
from edgesim.results.best_validation import RULE, SELECTED, Choice, choose, chosen_scenario
from edgesim.sweep.sweep_folder import SweepFolder
from edgesim.sweep.sweep_point import short_names


def select_and_print(folder: SweepFolder) -> None:
    """Choose among the finished points, print the table, write the scenario with the choice."""
    choices = choose(folder.path)
    out = console()
    out.print(_choice_table(choices))
    for choice in choices:
        for key in choice.edges:
            value = choice.best.values[key]
            print_line(f"{choice.label}: {key}={value} is at the edge of its values; widen them")
    path = folder.path / SELECTED
    of_schemes = any(point.scenario.scheme is not None for point in folder.plan.points)
    head = f"# Chosen by edgesim sweep {folder.plan.source} --select best-validation:\n# {RULE}\n"
    changes = {key: text for key, text in folder.plan.changes.items() if text is not None}
    text = chosen_scenario(choices, folder.plan.source, folder.path, of_schemes, changes)
    removed = " ".join(f"'~{key}'" for key in folder.plan.changes if key not in changes)
    if removed:
        head += f"# run it with {removed} too, as no file over another one removes a key\n"
    write_atomic(path, head + text)
    hint = f"; run it with {removed}" if removed else ""
    print_line(f"{path}: the scenario with these values{hint}")


def _choice_table(choices: Sequence[Choice]) -> Table:
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
    """Such as ``0.01 to 0.64 (7)`` of every key, in the order of the sweep; one value alone."""
    grids = {
        key: list(dict.fromkeys(each.values[key] for each in choice.candidates))
        for key in choice.best.values
    }
    words = [
        f"{texts[0]} to {texts[-1]} ({len(texts)})" if len(texts) > 1 else texts[0]
        for texts in grids.values()
    ]
    return ", ".join(dict.fromkeys(words)) or "-"
