"""Steps that a device leaves out so that its upload is in time.

FedProx, FedNova and FLASH let a slow device do as many steps as it can:
tau_k = floor((T_th - t_down - t_up) / t_step). They are planned when it starts, or cut off: a
device that still computes when its upload must begin sends the steps that it has made. Both count
with the downloads and uploads of the round's plan.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from edgesim.network.cell import Cell
from fl.contracts import Array, Grant, Job, RoundPlan
from fl.training.partial_work import steps_in_time, with_steps


def planned_parts(cell: Cell, jobs: Sequence[Job], plan: RoundPlan) -> list[Job]:
    """The jobs of a plan's grants with as many steps as end in time; one is as it was where not
    even one does: it is late.
    """
    down_s, up_s = _link_s(cell, jobs, plan)
    left_s = (cell.budget_s - down_s - up_s).tolist()
    parts = zip(jobs, plan.grants, left_s, strict=True)
    return [_planned_part(cell, job, grant, each_s) for job, grant, each_s in parts]


def starts_of_uploads_s(cell: Cell, jobs: Sequence[Job], plan: RoundPlan) -> list[float]:
    """When uploads of jobs that start now must begin to end at the threshold, s.

    They are at least now, and inf where the work or the bits are known only after training.
    """
    _, up_s = _link_s(cell, jobs, plan)
    starts_s = cell.env.now + np.maximum(cell.budget_s - up_s, 0.0)
    return np.where([_is_known(job) for job in jobs], starts_s, math.inf).tolist()


def _planned_part(cell: Cell, job: Job, grant: Grant, left_s: float) -> Job:
    """The job with the steps that fit into what links leave of the threshold, s."""
    if not _is_known(job) or math.isinf(cell.budget_s):
        return job
    device = cell.fleet.device(grant.device)
    *before_s, last_s = (device.seconds(stage.work, grant.cpu_hz) for stage in job.stages or ())
    steps = job.phases[-1].steps
    fitting = steps_in_time(left_s - sum(before_s), last_s / steps)
    return with_steps(job, fitting) if 0 < fitting < steps else job


def _link_s(cell: Cell, jobs: Sequence[Job], plan: RoundPlan) -> tuple[Array, Array]:
    """Times that downloads and uploads of jobs take at most on the channel planned for [S], s."""
    if not jobs:
        return np.empty(0), np.empty(0)
    bits_down = np.array([job.payload.bits_down for job in jobs], dtype=float)
    bits_up = np.array([job.payload.bits_up or 0.0 for job in jobs], dtype=float)
    down_s, up_s = cell.planned_link_s(plan, bits_down, bits_up)
    return down_s, up_s + np.where(bits_up > 0.0, cell.channel.upload_lag_s, 0.0)


def _is_known(job: Job) -> bool:
    """Are its work and its bits known before it is trained?"""
    return job.stages is not None and job.payload.bits_up is not None
