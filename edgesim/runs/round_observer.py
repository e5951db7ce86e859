"""The observer of a run: evaluates, writes the checkpoint, reports progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from edgesim.records.event_log import EventLog
from edgesim.records.run_checkpoint import RunFolder
from edgesim.scenario.loader import Scenario
from fl.contracts import AtWork, Observer, Scores, State

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
        warnings: on damage that was found when the run was resumed, for the checkpoint.
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
    ) -> None:
        self.scenario, self.log, self.evaluate, self.folder = scenario, log, evaluate, folder
        self.progress, self.detours = progress or (lambda event: None), detours
        self.warnings = list(warnings)
        self.evaluate_s = 0.0
        self._accuracy: float | None = None  # the last that is known, for listings
        self.started_s = time.perf_counter()

    @property
    def wall_s(self) -> float:
        return time.perf_counter() - self.started_s

    def scores(self, g: int, state: State) -> Scores | None:
        """Loss and accuracy every `evaluate.every` rounds and in the last one."""
        if not is_evaluated(self.scenario, g):
            return None
        start_s = time.perf_counter()
        scores = self.evaluate(state)
        self.evaluate_s += time.perf_counter() - start_s
        return scores

    def finished(self, g: int, state: State, at_work: AtWork | None = None) -> None:
        """Write the checkpoint of round g, with the jobs at work, and report its figures."""
        rows = self.log.drain()
        row = {name: values[-1] for name, values in rows["rounds"].items()}
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
            if at_work is not None:
                more, facts["at_work"] = at_work()
                arrays = arrays | more
            self.folder.save(g, row["time_s"], arrays, facts, rows)
        self.report("round", round=g, **{name: row[name] for name in PROGRESS_COLUMNS})

    def report(self, kind: str, **facts: Any) -> None:
        """Call ``progress`` with an event: start, round, trained or end."""
        about = {
            "scheme": self.scenario.label,
            "rounds": self.scenario.rounds,
            "wall_s": self.wall_s,
        }
        self.progress({"kind": kind, **about, **facts})


def is_evaluated(scenario: Scenario, g: int) -> bool:
    """Is round g followed by an evaluation: every `evaluate.every` rounds, and after the last?"""
    return (g + 1) % scenario.evaluate.every == 0 or g == scenario.rounds - 1
