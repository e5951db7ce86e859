"""How much work a job is, for choices that change no result: who trains it, and where."""

from __future__ import annotations

from collections.abc import Sequence

from edgesim.contracts import Job
from fl.task import Task


def step_flops(task: Task) -> float:
    """FLOPs of a step that trains all of the model on a full batch."""
    return 6.0 * sum(task.architecture.macs.values()) * task.batch_size


def most_flops(task: Task, jobs: Sequence[Job]) -> float:
    """FLOPs of some jobs as if they trained all of the model in every step: quickly said of very many."""
    return step_flops(task) * sum(phase.steps for job in jobs for phase in job.phases)


def flops_of(task: Task, job: Job) -> float:
    """FLOPs of a job: as it is charged where that is known."""
    charged = sum(float(stage.work.flops) for stage in job.stages or ())
    return charged or most_flops(task, [job])
