"""Phases of stacks that train nothing."""

from dataclasses import replace
from math import isnan

import pytest

from fl.executors.batched import Batched
from fl.executors.one_by_one import OneByOne
from tests.fl.random_jobs import CNN, MLP, job, job_of, task_of


@pytest.mark.parametrize("model", [MLP, CNN])
def test_a_last_phase_that_trains_nothing_has_no_loss(model):
    """Liu at rho = 1 keeps no weight for its last phase: the loss is not that of the warm-up."""
    task = task_of(model)
    (phase,) = job(task).phases
    nothing = replace(phase, start=lambda done: done[-1], mask=~phase.mask)
    jobs = [job_of(task, phase, nothing), job_of(task, phase, replace(phase, steps=0))]
    for executor in (OneByOne(task), Batched(task)):
        found = executor.run(jobs)
        assert all(isnan(each.loss) and isnan(each.accuracy) for each in found)
        assert not found[0].mask.any()
