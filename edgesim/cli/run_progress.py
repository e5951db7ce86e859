"""What ``edgesim run`` shows: the progress of each scheme, and a summary of all."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from edgesim.cli.console import (
    add_number_columns,
    bits,
    console,
    is_known,
    learning_figures,
    number,
    print_line,
    print_table,
    table_of,
)
from edgesim.cli.options import print_error
from edgesim.errors import visible

if TYPE_CHECKING:
    from edgesim.runs.simulated_run import Run

PLAIN_LINES = 10  # progress lines of a scheme where the output is no terminal
MEASURES = "accuracy", "loss"


class RunProgress:
    """Shows a scheme's rounds as they end: a bar on a terminal, a few plain lines elsewhere.

    Called with the events of `edgesim.runs.run.simulate`: kind (start, round, warning, trained,
    end), round, rounds, time_s, accuracy, text (of a warning), detours (of the training, with
    trained).

    Args:
        label: of the scheme.
        quiet: show nothing.
    """

    def __init__(self, label: str, quiet: bool = False):
        self.label, self.quiet = label, quiet
        self._console = console()
        self._bar: Progress | None = None
        self.warned: set[str] = set()  # what has been printed already

    def __enter__(self) -> RunProgress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: dict[str, Any]) -> None:
        if event["kind"] == "warning":
            self.warned.add(event["text"])
            print_error(f"{self.label}: warning: {event['text']}")
        elif self.quiet:
            return
        elif event["kind"] == "trained":
            for detour in event["detours"]:
                print_line(f"{self.label}: {detour}", self._console)
        elif self._console.is_terminal:
            self._show_bar(event)
        elif event["kind"] == "round":
            self._print_round(event)

    def _show_bar(self, event: dict[str, Any]) -> None:
        done, total = _rounds_ended(event), event.get("rounds")
        if self._bar is None:
            self._bar = _round_bar(self._console)
            self._bar.start()
            self._bar.add_task(escape(self.label), total=total, completed=done, facts="")
        task = self._bar.task_ids[0]
        if event["kind"] == "round":
            self._bar.update(task, completed=done, total=total, facts=_facts(event))
        else:  # the facts of the last round stay to the end
            self._bar.update(task, completed=done, total=total)

    def _print_round(self, event: dict[str, Any]) -> None:
        done, total = _rounds_ended(event), event["rounds"]
        if done == total or done % max(1, total // PLAIN_LINES) == 0:
            print_line(f"{self.label}: round {done}/{total}, {_facts(event)}", self._console)


def _rounds_ended(event: dict[str, Any]) -> int:
    """Rounds are numbered from 0."""
    return (event.get("round") or 0) + (event["kind"] != "start")


def _round_bar(target: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:20}"),
        BarColumn(),
        TextColumn("round"),
        MofNCompleteColumn(),
        TextColumn("{task.fields[facts]}"),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=target,
    )


def _facts(event: dict[str, Any]) -> str:
    """Such as ``12.5 s simulated, accuracy 0.83``; with real targets the loss."""
    facts = [f"{event['time_s']:.4g} s simulated"] if is_known(event.get("time_s")) else []
    return ", ".join([*facts, *map(" ".join, learning_figures(event).items())])


def print_runs(
    runs: Sequence[tuple[str | None, Run]], quiet: bool = False, warned: Collection[str] = ()
) -> None:
    """The summary table over schemes, the folder of each, and warnings not yet ``warned`` of."""
    if runs and not quiet:
        print_table(_summary_table([run.summary for _, run in runs]), console())
    for label, run in runs:
        print_line(f"{label}: {run.folder}" if label else run.folder)
    warnings = (text for _, run in runs for text in run.summary.get("warnings", ()))
    for warning in dict.fromkeys(text for text in warnings if text not in warned):
        print_line(f"warning: {warning}")


def _summary_table(summaries: Sequence[dict[str, Any]]) -> Table:
    measured = measure_of(summaries)
    targets = list(dict.fromkeys(name for each in summaries for name in each.get("targets", {})))
    targets = targets if measured == "accuracy" else []
    limits = [number(each.get("latency_threshold_s"), ".4g", 1e3) for each in summaries]
    limit = " / ".join(dict.fromkeys(limits))
    title = visible(summaries[0].get("scenario", ""))
    table = table_of(f"{title}, threshold {limit} ms" if limit != "-" else title)
    table.add_column("scheme")
    if seeded := len({each.get("seed") for each in summaries}) > 1:
        table.add_column("seed", justify="right")
    own = list(dict.fromkeys(name for each in summaries for name in each.get("final_metric", {})))
    columns = [measured, *own, "latency ms", "late %", "sent", "energy J"]
    add_number_columns(table, [*columns, *(f"s to {target}" for target in targets)])
    for each in summaries:
        cells = _summary_cells(each, measured, own, targets, seeded)
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table


def measure_of(summaries: Sequence[dict[str, Any]]) -> str:
    """What tells how well they learnt: the loss where there are real targets and no accuracy."""
    accuracies, losses = ([s.get(f"final_{name}") for s in summaries] for name in MEASURES)
    return MEASURES[set(accuracies) == {None} and set(losses) != {None}]


def _summary_cells(
    each: dict[str, Any], measured: str, own: Sequence[str], targets: Sequence[str], seeded: bool
) -> list[str]:
    reached = [(each["targets"].get(target) or {}).get("time_s") for target in targets]
    return [
        str(each.get("scheme") or each.get("method") or ""),
        *([str(each["seed"])] if seeded else []),
        number(each.get(f"final_{measured}"), ".3f" if measured == "accuracy" else ".4g"),
        *(number(each.get("final_metric", {}).get(name), ".4g") for name in own),
        number(each.get("mean_latency_s"), ".2f", 1e3),
        number(each.get("late_share"), ".1f", 100),
        bits(each.get("bits_up")),
        number(each.get("energy_j"), ".4g"),
        *(number(seconds, ".3g") for seconds in reached),
    ]
