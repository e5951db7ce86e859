"""The observer of a run: evaluates, writes the checkpoint, reports progress."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from edgesim.engine.stop_rule import StopRule
from edgesim.records.checkpoint.run_checkpoint import RunFolder
from edgesim.records.event_log import EventLog
from edgesim.records.simulated_times import multiples_passed
from edgesim.records.summary import divergence_warnings
from edgesim.scenario.loader import Scenario
from fl.contracts import METRIC, AtWork, Observer, Scores, State

Progress = Callable[[dict[str, Any]], None]
PROGRESS_COLUMNS = (
    "time_s",
    "latency_s",
    "late",
    "loss",
    "accuracy",
    "rho_mean",
    "bits_up",
    "bits_down",
    "energy_j",
)  # of the table rounds


class Recorder(Observer):
    """Evaluates, writes the checkpoint and reports progress; takes no simulated time.

    Args:
        scenario: what is run.
        log: the event log.
        evaluate: state -> Scores; None where nothing is learned.
        folder: where the checkpoint goes; None keeps all in memory.
        progress: called with a dict after each round; None: not at all.
        detours: what the training has done in another way than chosen, for the checkpoint.
        warnings: on what was found when the run was resumed, for the checkpoint.
        stop: says that the round in progress is the last one.
    """

    def __init__(
        self,
        scenario: Scenario,
        log: EventLog,
        evaluate: Callable[[State], Scores | None],
        folder: RunFolder | None,
        progress: Progress | None,
        detours: Callable[[], list] = list,
        warnings: Sequence[str] = (),
        stop: StopRule | None = None,
    ) -> None:
        self.stop = stop or StopRule()
        self.scenario, self.log, self.evaluate, self.folder = scenario, log, evaluate, folder
        self.progress, self.detours = progress or (lambda event: None), detours
        self.warnings = list(warnings)
        self.evaluate_s = 0.0
        known = [each for each in log.columns("rounds")["accuracy"] if not math.isnan(each)]
        # the last one, for listings
        self._accuracy: float | None = float(known[-1]) if known else None
        self._diverged = bool(self.divergence())  # in a resumed run perhaps before
        times_s = log.columns("rounds")["time_s"]
        self._before_s = float(times_s[-1]) if len(times_s) else 0.0  # end of the last round
        self.started_s = time.perf_counter()

    @property
    def wall_s(self) -> float:
        return time.perf_counter() - self.started_s

    def scores(self, g: int, state: State) -> Scores | None:
        """Loss and accuracy by `evaluate.every`, and in the last round."""
        due = is_evaluated(self.scenario, g, self._before_s, self.log.now())
        if not due and not self.stop.reached:
            return None
        start_s = time.perf_counter()
        scores = self.evaluate(state)
        self.evaluate_s += time.perf_counter() - start_s
        return scores

    def started(self, g: int) -> None:
        """Report that round g comes next, and the warnings that the run has by then."""
        self.report("start", round=g)
        for text in self.warnings:
            self.report("warning", text=text)

    def finished(self, g: int, state: State, at_work: AtWork | None = None) -> None:
        """Write the checkpoint of round g, with the jobs at work, and report its figures."""
        rows = self.log.drain()
        row = {name: values[-1] for name, values in rows["rounds"].items()}
        self._before_s = float(row["time_s"])
        if row["accuracy"] == row["accuracy"]:  # not nan
            self._accuracy = float(row["accuracy"])
        if self.folder is not None:
            arrays, facts = state.to_arrays()
            facts = {
                "state": facts,
                "rounds": self.scenario.rounds,
                "accuracy": self._accuracy,
                "detours": self.detours(),
                "warnings": self.warnings,
            }
            if self.stop.reached:
                facts["ended"] = True
            if at_work is not None:
                more, facts["at_work"] = at_work()
                arrays = arrays | more
            self.folder.save(g, row["time_s"], arrays, facts, rows)
        shown = {name: row[name] for name in PROGRESS_COLUMNS}
        measures = zip(rows["measures"]["name"], rows["measures"]["value"], strict=True)
        if own := {n.removeprefix(METRIC): v for n, v in measures if n.startswith(METRIC)}:
            shown["metrics"] = own
        self.report("round", round=g, **shown)
        if math.isinf(row["loss"]) and not self._diverged:
            self._diverged = True
            self.report("warning", text=self.divergence()[0])

    def divergence(self) -> list[str]:
        """A sentence if the training has diverged."""
        return divergence_warnings(self.log.columns("rounds"), self.scenario.learning.method.params)

    def report(self, kind: str, **facts: Any) -> None:
        """Call ``progress`` with an event: start, round, warning, trained or end."""
        about = {
            "scheme": self.scenario.label,
            "rounds": self.scenario.rounds,
            "wall_s": self.wall_s,
        }
        self.progress({"kind": kind, **about, **facts})


def is_evaluated(scenario: Scenario, g: int, before_s: float, now_s: float) -> bool:
    """Is round g followed by an evaluation?

    Args:
        scenario: what is run; `evaluate.every` is a number of rounds or a time.
        g: number of the round; the last one always is.
        before_s: end of the round before, s.
        now_s: end of the round, s.
    """
    every = scenario.evaluate.every
    if g == scenario.rounds - 1:
        return True
    if isinstance(every, int):
        return (g + 1) % every == 0
    return multiples_passed(now_s, every) > multiples_passed(before_s, every)
