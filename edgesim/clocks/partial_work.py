"""Steps that a device leaves out so that its upload is in time.

FedProx, FedNova and FLASH let a slow device do as many steps as it can:
tau_k = floor((T_th - t_down - t_up) / t_step). They are planned when it starts, or cut off: a
device that still computes when its upload must begin sends the steps that it has made. Both count
with the upload at the rate of its grant, at the gain of its start.
"""

from __future__ import annotations

import math

import numpy as np

from edgesim.network.cell import Cell
from fl.contracts import Grant, Job
from fl.training.partial_work import steps_in_time, with_steps


def planned_part(cell: Cell, job: Job, grant: Grant) -> Job:
    """The job with as many steps as end in time; as it is where not even one does: it is late."""
    if job.stages is None or job.payload.bits_up is None or math.isinf(cell.budget_s):
        return job
    device, k = cell.fleet.device(grant.device), grant.device
    *before_s, last_s = (device.seconds(stage.work, grant.cpu_hz) for stage in job.stages)
    up_s = _upload_s(cell, job.payload.bits_up, grant)
    bits_down = np.array([job.payload.bits_down])
    down_s = float(cell.downlink.seconds(bits_down, np.array([k]), cell.planner.gains)[0])
    steps = job.phases[-1].steps
    fitting = steps_in_time(cell.budget_s - down_s - up_s - sum(before_s), last_s / steps)
    return with_steps(job, fitting) if 0 < fitting < steps else job


def start_of_upload_s(cell: Cell, job: Job, grant: Grant) -> float:
    """When the upload of a job that starts now must begin to end at the threshold, s.

    It is at least now, and inf where the work or the bits are known only after training.
    """
    if job.stages is None or job.payload.bits_up is None:
        return math.inf
    left_s = cell.budget_s - _upload_s(cell, job.payload.bits_up, grant)
    return cell.env.now + max(left_s, 0.0)


def _upload_s(cell: Cell, bits_up: float, grant: Grant) -> float:
    """Time of an upload at the gain of this instant, s; inf: without a rate."""
    gain = cell.channel.gains(cell.env.now)[grant.device]
    rate_bps = float(cell.channel.rate_bps(grant.share, grant.power_w, gain))
    return bits_up / rate_bps if rate_bps > 0.0 else math.inf
