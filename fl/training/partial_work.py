"""A job with fewer steps of its last phase: what a slow device does in time."""

from __future__ import annotations

import math
from dataclasses import replace

from fl.contracts import Job, Stage, Work


def with_steps(job: Job, steps: int) -> Job:
    """The same job, whose last phase ends after its first ``steps`` steps.

    Mini-batches are drawn in order, so that these steps are those of the whole job. The work of the
    last stage shrinks in proportion.

    Args:
        job: whose work is known, the last stage being that of the last phase.
        steps: at least 1, and at most those of the last phase.
    """
    *before, last = job.phases
    if steps == last.steps or job.stages is None:
        return job
    part, stage = steps / last.steps, job.stages[-1]
    work = Work(stage.work.weight_steps * part, stage.work.flops * part)
    submodel = last.submodel[:steps] if isinstance(last.submodel, tuple) else last.submodel
    phases = (*before, replace(last, steps=steps, submodel=submodel))
    return replace(job, phases=phases, stages=(*job.stages[:-1], Stage(stage.name, work)))


def steps_in_time(left_s: float, step_s: float) -> int:
    """How many steps of ``step_s`` fit into ``left_s``, up to rounding; 0: none."""
    return math.floor(max(left_s, 0.0) / step_s * (1.0 + 1e-12))
