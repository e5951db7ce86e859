"""What ``edgesim sweep`` shows while it runs: a live table, or a line per point."""

from __future__ import annotations

import math
import time
from collections import Counter
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from edgesim.cli.console import console, learning_figures, print_line
from edgesim.errors import counted
from edgesim.results.sweep_file import DONE, FAILED, INFEASIBLE, MISSING
from edgesim.sweep.sweep_folder import SweepFolder
from edgesim.sweep.sweep_point import SweepPoint
from edgesim.sweep.time_estimate import in_words
from edgesim.sweep.workers.point_task import PointOutcome

REFRESH_S = 0.2


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
        self.rounds_left = {point.id: folder.rounds_left(point) for point in todo}
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
            facts["learning"] = learning_figures(event) or facts.get("learning", {})
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
            figures = map(" ".join, learning_figures(outcome.learning).items())
            shown = ", ".join([DONE, *figures, f"{outcome.wall_s:.1f} s"])
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
        learning = [facts.get("learning", {}) for _, facts in self.running.values()]
        names = list(dict.fromkeys(name for figures in learning for name in figures))
        for name, width in (("running", None), ("round", 9), *((name, 8) for name in names)):
            table.add_column(name, overflow="ellipsis", no_wrap=True, min_width=width)
        for (point, facts), figures in zip(self.running.values(), learning, strict=True):
            done = f"{facts['done']}/{point.scenario.rounds}" if facts.get("done") else "starts"
            table.add_row(*map(Text, [point.name, done, *(figures.get(n, "") for n in names)]))
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
