"""One job after the other, in this process: the reference."""

from __future__ import annotations

from collections.abc import Sequence

from fl.contracts import Job, Trained
from fl.executors.cost_model import Pace
from fl.executors.fallbacks import Notes
from fl.task import LearningTask
from fl.training import local_sgd as local


class Resident:
    name = "resident"
    pace = Pace(step_s=8e-4, flops_per_s=9e10)

    def __init__(self, task: LearningTask) -> None:
        self.task, self.notes = task, Notes()

    def run(self, jobs: Sequence[Job]) -> list[Trained]:
        return [local.run(self.task, job) for job in jobs]

    def end(self) -> None:
        """Nothing is held that would have to be given back."""
