"""Deferred training: nothing trains before it is needed, and all that waits trains at once."""

import math
from dataclasses import replace

import pytest
import torch

from fl.contracts import Payload, Sent
from fl.errors import LearningError, MethodError
from fl.executors.deferred_training import AbortedError, Trainer
from fl.executors.one_by_one import OneByOne
from fl.training.partial_work import with_steps


class Counting:
    """The real executor, and how many jobs each pass had."""

    def __init__(self, task):
        self.inner, self.passes = OneByOne(task), []
        self.name, self.threads, self.fallbacks = "counting", 1, self.inner.fallbacks

    def run(self, jobs):
        self.passes.append([job.device for job in jobs])
        return self.inner.run(jobs)


@pytest.fixture
def setup(bench):
    method = bench.method("liu")
    executor = Counting(bench.task)
    return bench.jobs(method, method.start(), rho=0.4), executor, Trainer(bench.task, executor)


def test_the_first_result_trains_everything_that_waits(setup):
    jobs, executor, trainer = setup
    updates = trainer.submit(jobs[:2]) + trainer.submit(jobs[2:3])
    assert executor.passes == []
    assert updates[0].bits_up() == jobs[0].payload.bits_up
    assert executor.passes == []
    assert trainer.seconds == 0
    updates[1].result()
    updates[0].result()
    assert executor.passes == [[0, 1, 2]]
    assert trainer.seconds > 0
    trainer.submit(jobs[3:])[0].result()
    assert executor.passes == [[0, 1, 2], [3]]


def test_what_is_called_off_is_not_trained(setup):
    jobs, executor, trainer = setup
    updates = trainer.submit(jobs)
    updates[1].abort()
    updates[0].result()
    assert executor.passes == [[0, 2, 3]]
    updates[2].abort()
    for k in (1, 2):
        with pytest.raises(AbortedError, match=f"device {k} in round 0 was aborted"):
            updates[k].result()


def test_a_result_does_not_depend_on_who_else_waits(setup, bench):
    jobs, _, trainer = setup
    together = [update.result() for update in trainer.submit(jobs)]
    for job, one in reversed(list(zip(jobs, together, strict=True))):
        alone = Trainer(bench.task).submit([job])[0].result()
        assert torch.equal(alone.w, one.w)
        assert torch.equal(alone.mask, one.mask)
        assert alone.loss == one.loss


def test_bits_that_only_the_training_tells(setup, bench):
    jobs, executor, _ = setup
    job = replace(jobs[0], payload=Payload(0.0, None))
    trainer = Trainer(
        bench.task,
        executor,
        lambda job, done: Sent(done.w, done.mask, bits=8.0 * int(done.mask.sum())),
    )
    (update,) = trainer.submit([job])
    assert update.bits_up() == 8 * round(0.6 * 4810)
    assert executor.passes == [[0]]
    nan = Trainer(bench.task, executor, lambda job, done: Sent(done.w, done.mask, bits=math.nan))
    with pytest.raises(MethodError, match="bits of Sent are nan"):
        nan.submit([job])[0].bits_up()
    with pytest.raises(LearningError, match="device 0 has no bits"):
        Trainer(bench.task).submit([job])[0].bits_up()


def test_the_trainer_tells_who_trains_and_what_went_otherwise(setup):
    jobs, executor, trainer = setup
    trainer.submit(jobs[:1])[0].result()
    assert (trainer.executor_name, trainer.fallbacks.lines()) == ("counting", [])
    executor.fallbacks.add("the fan was broken", 2)
    executor.fallbacks.add("the fan was broken", 1)
    executor.fallbacks.add("a fly flew in", 1)
    assert trainer.fallbacks.lines() == ["the fan was broken (3 jobs)", "a fly flew in (1 job)"]


@pytest.mark.parametrize(
    ("fraction", "steps"), [(0.0, 0), (0.3, 0), (0.35, 1), (0.99, 2), (1.0, 3)]
)
@pytest.mark.parametrize("before", [False, True])
def test_a_truncated_job_ends_after_the_whole_steps_of_a_fraction(bench, before, fraction, steps):
    """Of 3 steps; the result is that of a job with so few, also if all were trained before."""
    method = bench.method("fedavg", local_steps=3)
    (job, other), executor = bench.jobs(method, method.start())[:2], Counting(bench.task)
    trainer = Trainer(bench.task, executor)
    update, neighbour = trainer.submit([job, other])
    if before:
        update.result()
    assert update.truncate(fraction) == steps
    assert len(executor.passes) == before  # nothing trains yet
    few = with_steps(job, steps) if steps else job
    assert update.stages() == few.stages
    assert torch.equal(update.result().w, OneByOne(bench.task).run([few])[0].w)
    assert torch.equal(neighbour.result().w, OneByOne(bench.task).run([other])[0].w)
