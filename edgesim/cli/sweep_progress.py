"""What a sweep shows: a live table on a terminal, a line per point elsewhere, and at the end who failed and why."""

from __future__ import annotations

import math
import time
from collections import Counter
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from edgesim.cli.console import console
from edgesim.sweep.local_workers import ROUND
from edgesim.sweep.point_task import Ended
from edgesim.sweep.points import Plan, Point
from edgesim.sweep.sweep_folder import DONE, FAILED, INFEASIBLE, MISSING, SweepFolder
from edgesim.sweep.time_estimate import estimate, groups, in_words

REFRESH_S = 0.2
LISTED = 40  # points that a dry run lists where it was not asked for all


class View:
    """Told by `Control` what happens."""

    def __init__(self, folder: SweepFolder, quiet: bool = False) -> None:
        self.folder, self.quiet = folder, quiet
        self.console = console()
        self.left = {
            point.id: point.scenario.rounds for point in folder.to_run()
        }  # rounds, until a point has ended
        self.todo, self.rounds_here = len(self.left), 0
        self.running: dict[str, tuple[Point, dict[str, Any]]] = {}
        self.start_s, self.first_s, self._shown_s = time.monotonic(), math.nan, 0.0
        self._live: Live | None = None

    def __enter__(self) -> View:
        if self.console.is_terminal and not self.quiet:
            self._live = Live(
                self._table(), console=self.console, refresh_per_second=4, transient=True
            )
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def started(self, point: Point) -> None:
        self.running[point.id] = point, {}

    def heard(self, point: Point, kind: str, told: Any) -> None:
        if kind != ROUND or point.id not in self.running:
            return
        facts = self.running[point.id][1]
        if told["kind"] == "start":
            facts["done"] = told["round"]
        elif told["kind"] == "round":
            facts["done"] = told["round"] + 1
            facts["accuracy"] = (
                told["accuracy"] if _known(told["accuracy"]) else facts.get("accuracy")
            )
            self.rounds_here += 1
            self.first_s = time.monotonic() if self.rounds_here == 1 else self.first_s
        self.left[point.id] = point.scenario.rounds - facts.get("done", 0)

    def died(self, point: Point, reason: str) -> None:
        self.running.pop(point.id, None)
        self.say(f"{point.name}: {reason}; another one goes on with it")

    def ended(self, point: Point, ended: Ended) -> None:
        self.running.pop(point.id, None)
        self.left.pop(point.id, None)
        accuracy = f", accuracy {ended.accuracy:.3f}" if _known(ended.accuracy) else ""
        told = (
            f"{DONE}{accuracy}, {ended.wall_s:.1f} s"
            if ended.status == DONE
            else f"{ended.status}: {ended.error}"
        )
        self.say(f"[{self.todo - len(self.left)}/{self.todo}] {point.name}: {told}")

    def refresh(self) -> None:
        """A few times a second are enough, however fast the rounds end."""
        if self._live is not None and time.monotonic() - self._shown_s > REFRESH_S:
            self._live.update(self._table())
            self._shown_s = time.monotonic()

    def say(self, line: str) -> None:
        if not self.quiet:
            self.console.print(line, markup=False, soft_wrap=True)

    def _table(self) -> Group:
        """Counts and the time that is left; then what is running."""
        table = Table(
            box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=bool(self.running)
        )
        for name, width in (("running", None), ("round", 9), ("accuracy", 8)):
            table.add_column(name, overflow="ellipsis", no_wrap=True, min_width=width)
        for point, facts in self.running.values():
            done = f"{facts['done']}/{point.scenario.rounds}" if facts.get("done") else "starts"
            accuracy = "" if facts.get("accuracy") is None else f"{facts['accuracy']:.3f}"
            table.add_row(Text(point.name), Text(done), Text(accuracy))
        return Group(Text(f"{counts(self.folder, len(self.running))}{self._left()}"), table)

    def _left(self) -> str:
        """From the rounds that have ended since the first one did: the others take as long."""
        now_s = time.monotonic()
        spent = f", {now_s - self.start_s:.0f} s"
        if self.rounds_here < 2:
            return spent
        left_s = (now_s - self.first_s) / (self.rounds_here - 1) * sum(self.left.values())
        return f"{spent}, about {in_words(left_s)} left"


def counts(folder: SweepFolder, running: int = 0) -> str:
    """``12 of 40 points done, 2 running, 1 failed``"""
    found = Counter(folder.status[point.id][0] for point in folder.plan.points)
    parts = [f"{found[DONE]} of {len(folder.plan.points)} points done"]
    parts += [f"{running} running"] if running else []
    parts += [f"{found[kind]} {kind}" for kind in (FAILED, INFEASIBLE) if found[kind]]
    missing = found[MISSING] - running
    return ", ".join([*parts, *([f"{missing} missing"] if missing else [])])


def print_end(folder: SweepFolder, seconds: float, quiet: bool) -> None:
    """How it went, and what to do next."""
    out = console()
    for status in (FAILED, INFEASIBLE):
        for point in folder.with_status(status):
            _errors().print(
                f"{status}: {point.name}: {folder.status[point.id][1]}",
                markup=False,
                soft_wrap=True,
            )
    if not quiet:
        out.print(f"{counts(folder)}, in {in_words(seconds)}", markup=False, soft_wrap=True)
        if folder.leftovers():
            line = f"{folder.leftovers()} runs of earlier sweeps lie in {folder.path}/points too; a report shows them"
            out.print(line, markup=False, soft_wrap=True)
    out.print(str(folder.path), markup=False, soft_wrap=True)


def print_plan(plan: Plan, folder: SweepFolder, workers: int, every: bool) -> None:
    """What would be run, and how long that takes."""
    out, todo = console(), folder.to_run()
    for note in plan.notes:
        out.print(note, markup=False, soft_wrap=True)
    for key, texts in plan.axes.items():
        out.print(f"{key}: {', '.join(texts)}", markup=False, soft_wrap=True)
    seeds = list(dict.fromkeys(point.seed for point in plan.points))
    labels = list(dict.fromkeys(point.label for point in plan.points))
    out.print(
        f"schemes or methods: {', '.join(labels)}; seeds: {_ranged(seeds)}",
        markup=False,
        soft_wrap=True,
    )
    for i, point in enumerate(plan.points if every else plan.points[:LISTED]):
        status, error = folder.status[point.id]
        line = f"{i + 1:>4}  {point.id}  {status:10} {point.name}{f': {error}' if error else ''}"
        out.print(line, markup=False, soft_wrap=True)
    if not every and len(plan.points) > LISTED:
        out.print(f"and {len(plan.points) - LISTED} points more (--all shows them)")
    seconds, source = estimate(folder, workers)
    out.print(
        f"{len(plan.points)} points in {folder.path}, {len(todo)} to run",
        markup=False,
        soft_wrap=True,
    )
    if todo:
        shares = groups(todo)
        told = (
            "; points that train the same train it once, which is not counted"
            if 0 < shares < len(todo)
            else ""
        )
        line = f"about {in_words(seconds)} with {workers} worker{'s' * (workers > 1)}, estimated from {source}{told}"
        out.print(line, markup=False, soft_wrap=True)


def _ranged(seeds: list[int]) -> str:
    whole = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]}-{seeds[-1]}" if whole else ", ".join(map(str, seeds))


def _errors() -> Console:
    return Console(stderr=True, highlight=False, width=None)


def _known(value: Any) -> bool:
    return value is not None and math.isfinite(value)
