"""How much work a job is: for choices that change no result, so that a rough answer will do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fl.contracts import Job
from fl.task import LearningTask


@dataclass(frozen=True)
class Pace:
    """About how fast a core computes: seconds of a step beside its arithmetic, and FLOPs per second of that."""

    step_s: float
    flops_per_s: float

    def seconds(self, task: LearningTask, jobs: Sequence[Job]) -> float:
        """About how long some jobs take, as if they trained all of the model in every step."""
        steps = sum(phase.steps for job in jobs for phase in job.phases)
        return self.of(steps, steps * step_flops(task))

    def of(self, steps: int, flops: float) -> float:
        """About how long steps of so many FLOPs in all take."""
        return steps * self.step_s + flops / self.flops_per_s


def step_flops(task: LearningTask) -> float:
    """FLOPs of a step that trains all of the model on a full batch."""
    return 6.0 * sum(task.architecture.macs.values()) * task.batch_size


def flops_of(task: LearningTask, job: Job) -> float:
    """FLOPs of a job: as it is charged where that is known, else as if it trained all of the model in every step."""
    charged = sum(float(stage.work.flops) for stage in job.stages or ())
    return charged or step_flops(task) * sum(phase.steps for phase in job.phases)
