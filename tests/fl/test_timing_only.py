"""What stands for training where nothing is trained."""

from __future__ import annotations

import pytest

from fl.contracts import Job, Payload
from fl.errors import LearningError
from fl.timing_only import NoTrainer

JOB = Job(3, 1, (), (), Payload(8.0, 8.0), 0.0)


def test_an_untrained_job_has_costs_and_no_result():
    (update,) = NoTrainer().submit([JOB])
    assert (update.bits_up(), update.stages()) == (8.0, ())
    for ask in (update.result, lambda: update.truncate(0.5)):
        with pytest.raises(LearningError, match="device 3 in round 1 takes no steps and has no"):
            ask()


def test_runs_share_no_fallbacks():
    one, other = NoTrainer(), NoTrainer()
    one.fallbacks.add("the fan was broken", 1)
    assert other.fallbacks.counts() == {}
