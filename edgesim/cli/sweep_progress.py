"""What ``edgesim sweep`` shows: a live table or a line per point, the end, what --select chose."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from edgesim.cli.console import console, is_known, print_line, table_of
from edgesim.errors import counted
from edgesim.results.best_validation import RULE, SELECTED, Choice, choose, chosen_scenario
from edgesim.results.summary_file import read_summary
from edgesim.sweep.point_task import PointOutcome
from edgesim.sweep.sweep_folder import DONE, FAILED, INFEASIBLE, MISSING, SweepFolder
from edgesim.sweep.sweep_point import SweepPoint, short_names
from edgesim.sweep.time_estimate import estimate, groups, in_words

REFRESH_S = 0.2
LISTED = 40  # points that a dry run lists where it was not asked for all
MOST_WARNINGS = 5  # at the end of a sweep; summary.json of each point has all


class SweepProgress:
    """The observer of a `PointScheduler`: prints the plan's notes, then what happens.

    Args:
        folder: of the sweep.
        quiet: show nothing.
    """

    def __init__(self, folder: SweepFolder, quiet: bool = False) -> None:
        self.folder, self.quiet = folder, quiet
        self.console = console()
        todo = folder.to_run()
        self.todo, self.rounds_ended = len(todo), 0
        self.rounds_left = {point.id: point.scenario.rounds for point in todo}
        self.running: dict[str, tuple[SweepPoint, dict[str, Any]]] = {}
        self.start_s, self.first_s, self._shown_s = time.monotonic(), math.nan, 0.0
        self._live: Live | None = None

    def __enter__(self) -> SweepProgress:
        if self.console.is_terminal and not self.quiet:
            self._live = Live(
                self._table(), console=self.console, refresh_per_second=4, transient=True
            )
            self._live.start()
        for note in self.folder.plan.notes:
            self.print(note)
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def point_started(self, point: SweepPoint) -> None:
        self.running[point.id] = point, {}

    def round_ended(self, point: SweepPoint, event: dict[str, Any]) -> None:
        """An event of a run; its start holds how many rounds had ended before."""
        facts = self.running[point.id][1]
        if event["kind"] == "start":
            facts["done"] = event["round"]
        elif event["kind"] == "round":
            facts["done"] = event["round"] + 1
            if is_known(event["accuracy"]):
                facts["accuracy"] = event["accuracy"]
            self.rounds_ended += 1
            self.first_s = time.monotonic() if self.rounds_ended == 1 else self.first_s
        self.rounds_left[point.id] = point.scenario.rounds - facts.get("done", 0)

    def worker_died(self, point: SweepPoint, reason: str) -> None:
        del self.running[point.id]
        self.print(f"{point.name}: {reason}; another one goes on with it")

    def point_ended(self, point: SweepPoint, outcome: PointOutcome) -> None:
        del self.running[point.id], self.rounds_left[point.id]
        shown = f"{outcome.status}: {outcome.error}"
        if outcome.status == DONE:
            known = is_known(outcome.accuracy)
            accuracy = f", accuracy {outcome.accuracy:.3f}" if known else ""
            shown = f"{DONE}{accuracy}, {outcome.wall_s:.1f} s"
        self.print(f"[{self.todo - len(self.rounds_left)}/{self.todo}] {point.name}: {shown}")

    def refresh(self) -> None:
        """A few times a second are enough, however fast the rounds end."""
        if self._live is not None and time.monotonic() - self._shown_s > REFRESH_S:
            self._live.update(self._table())
            self._shown_s = time.monotonic()

    def print(self, line: str) -> None:
        if not self.quiet:
            print_line(line, self.console)

    def _table(self) -> Group:
        """Counts and the time that is left; then what is running."""
        head = bool(self.running)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=head)
        for name, width in (("running", None), ("round", 9), ("accuracy", 8)):
            table.add_column(name, overflow="ellipsis", no_wrap=True, min_width=width)
        for point, facts in self.running.values():
            done = f"{facts['done']}/{point.scenario.rounds}" if facts.get("done") else "starts"
            accuracy = f"{facts['accuracy']:.3f}" if "accuracy" in facts else ""
            table.add_row(Text(point.name), Text(done), Text(accuracy))
        return Group(Text(f"{counts(self.folder, len(self.running))}{self._time_left()}"), table)

    def _time_left(self) -> str:
        """From the rounds that have ended since the first one did: the others take as long."""
        now_s = time.monotonic()
        spent = f", {now_s - self.start_s:.0f} s"
        if self.rounds_ended < 2:
            return spent
        round_s = (now_s - self.first_s) / (self.rounds_ended - 1)
        return f"{spent}, about {in_words(round_s * sum(self.rounds_left.values()))} left"


def counts(folder: SweepFolder, running: int = 0) -> str:
    """Such as ``12 of 40 points done, 2 running, 1 failed``."""
    found = Counter(folder.status[point.id][0] for point in folder.plan.points)
    others = {
        "running": running,
        FAILED: found[FAILED],
        INFEASIBLE: found[INFEASIBLE],
        MISSING: found[MISSING] - running,
    }
    done = f"{found[DONE]} of {counted(len(folder.plan.points), 'point')} done"
    return ", ".join([done, *(f"{count} {kind}" for kind, count in others.items() if count)])


def print_start(folder: SweepFolder) -> None:
    """What an earlier start of the sweep has left to do; nothing at the first one."""
    todo, every = len(folder.to_run()), len(folder.plan.points)
    if todo < every:
        are = "is" if every == 1 else "are"
        done = f"{every - todo} of {counted(every, 'point')} {are} finished already"
        print_line(f"{done}, {todo} to run")


def print_end(folder: SweepFolder, seconds: float, quiet: bool) -> None:
    """How the sweep went, on stderr which points failed and why, and its folder."""
    errors = Console(stderr=True, highlight=False, width=None)
    for status in (FAILED, INFEASIBLE):
        for point in folder.with_status(status):
            print_line(f"{status}: {point.name}: {folder.status[point.id][1]}", errors)
    if not quiet:
        print_line(f"{counts(folder)}, in {in_words(seconds)}")
        if left := folder.leftovers():
            place = f"{folder.path}/points"
            what = (
                "1 run of an earlier sweep lies"
                if left == 1
                else f"{left} runs of earlier sweeps lie"
            )
            print_line(f"{what} in {place} too; a report shows {'it' if left == 1 else 'them'}")
    print_line(folder.path)
    print_warnings(folder)


def print_warnings(folder: SweepFolder) -> None:
    """What the finished points warn of, each sentence once."""
    done = folder.with_status(DONE)
    summaries = (read_summary(folder.of(point) / "summary.json") for point in done)
    found = Counter(text for each in summaries for text in each.get("warnings", ()))
    for text, count in found.most_common(MOST_WARNINGS):
        of_some = "" if count == len(done) else f" ({count} of {len(done)} points)"
        print_line(f"warning: {text}{of_some}")
    if len(found) > MOST_WARNINGS:
        print_line(
            f"and {counted(len(found) - MOST_WARNINGS, 'warning')} more in the points' summary.json"
        )


def print_plan(
    folder: SweepFolder,
    workers: int,
    every: bool,
    data: str | None = None,
    allow_code: bool = False,
) -> None:
    """What would be run, and how long that takes.

    Args:
        folder: of the sweep.
        workers: points at a time.
        every: list every point?
        data: folder of the data files; None: EDGESIM_DATA.
        allow_code: code of the user's own may run.
    """
    plan, todo = folder.plan, folder.to_run()
    for note in plan.notes:
        print_line(note)
    for key, texts in plan.axes.items():
        print_line(f"{key}: {', '.join(texts)}")
    seeds = list(dict.fromkeys(point.seed for point in plan.points))
    labels = ", ".join(dict.fromkeys(point.label for point in plan.points))
    print_line(f"schemes or methods: {labels}; seeds: {_as_range(seeds)}")
    for i, point in enumerate(plan.points if every else plan.points[:LISTED], 1):
        status, error = folder.status[point.id]
        name = f"{point.name}: {error}" if error else point.name
        print_line(f"{i:>4}  {point.id}  {status:10} {name}")
    if not every and len(plan.points) > LISTED:
        print_line(f"and {counted(len(plan.points) - LISTED, 'point')} more (--all shows them)")
    print_line(f"{counted(len(plan.points), 'point')} in {folder.path}, {len(todo)} to run")
    if todo:
        print_line("estimating the time, which may take seconds for each kind of point ...")
        seconds, source = estimate(folder, workers, data, allow_code)
        line = f"about {in_words(seconds)} with {counted(workers, 'worker')}"
        shares = 0 < groups(todo) < len(todo)
        note = "; points that train the same train it once, which is not counted" if shares else ""
        print_line(f"{line}, estimated from {source}{note}")


def _as_range(seeds: list[int]) -> str:
    whole = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]}-{seeds[-1]}" if whole else ", ".join(map(str, seeds))


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
    path.write_text(head + text, encoding="utf-8")
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
