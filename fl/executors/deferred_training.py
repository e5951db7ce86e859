"""Deferred training: jobs wait until a result is needed, and are then trained in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Protocol

from fl.contracts import Job, Sent, Stage, Trained
from fl.errors import LearningError
from fl.executors.one_by_one import OneByOne
from fl.method_base.hook_answers import bits_of
from fl.task import LearningTask
from fl.training.fallback_counts import Fallbacks
from fl.training.partial_work import steps_in_time, with_steps
from fl.worker_threads import one_torch_thread


class AbortedError(LearningError):
    """The result of a job was asked for that had been aborted."""


class UnknownWorkError(LearningError):
    """The work or the bits of a job are known neither before nor after its training."""


class Executor(Protocol):
    """Trains jobs. The result of a job must not depend on its neighbours."""

    name: str
    threads: int
    fallbacks: Fallbacks

    def run(self, jobs: Sequence[Job]) -> list[Trained]: ...


class Promise:
    """The training of one job, now or later (`fl.contracts.Update`)."""

    weight = 1.0

    @property
    def is_trained(self) -> bool:
        return self.trained is not None

    def __init__(self, job: Job, trainer: Trainer) -> None:
        self.job = job
        self._trainer = trainer
        self.trained: Trained | None = None
        self._aborted = False

    def result(self) -> Trained:
        """The trained model; trains everything that waits if this job still does.

        Raises:
            AbortedError: the job was aborted.
        """
        if self._aborted:
            raise AbortedError(
                f"the job of device {self.job.device} in round {self.job.g} was aborted"
            )
        if self.trained is None:
            self._trainer.flush()
        assert self.trained is not None  # `flush` trains every job that waits
        return self.trained

    def stages(self) -> tuple[Stage, ...]:
        """The work that is charged; trains where only the training determines it."""
        if self.job.stages is not None:
            return self.job.stages
        return self._trainer.charged_stages(self.job, self.result())

    def bits_up(self) -> float:
        """Bits of the upload; trains where only the training determines them."""
        if self.job.payload.bits_up is not None:
            return self.job.payload.bits_up
        return self._trainer.encoded_bits(self.job, self.result())

    def truncate(self, fraction: float) -> int:
        """Leave the whole steps in the first part of the last phase; returns their number.

        They are those of the whole job, bit for bit. What was trained already is trained again,
        from the start. With 0 steps nothing changes.

        Args:
            fraction: x in [0, 1]; floor(x steps) remain, up to rounding.
        """
        whole = self.job.phases[-1].steps
        steps = min(steps_in_time(fraction * whole, 1.0), whole)
        if 0 < steps < whole:
            self.job = with_steps(self.job, steps)
            if self.is_trained:
                self.trained = None
                self._trainer.waiting.append(self)
        return steps

    def abort(self) -> None:
        """Takes the job back: it is not trained if it still waits, and its result is gone."""
        self._aborted, self.trained = True, None
        if self in self._trainer.waiting:
            self._trainer.waiting.remove(self)


class Trainer:
    """Queues jobs and trains them at the first need.

    Args:
        executor: how a pass is run (`fl.executors.executor_choice.choose`); one by one by default.
        encode: `Method.encode`, needed only for methods whose bits are known after training.
        charged: `Method.charged`, needed only for methods whose work is known after training.
    """

    def __init__(
        self,
        task: LearningTask,
        executor: Executor | None = None,
        encode: Callable[[Job, Trained], Sent] | None = None,
        charged: Callable[[Job, Trained], tuple[Stage, ...]] | None = None,
    ) -> None:
        self.seconds = 0.0  # wall time spent in training
        self._executor = executor or OneByOne(task)
        self._encode, self._charged = encode, charged
        self.waiting: list[Promise] = []  # to be trained at the first need

    @property
    def executor_name(self) -> str:
        return self._executor.name

    @property
    def fallbacks(self) -> Fallbacks:
        """What was computed otherwise than chosen, and for how many jobs."""
        return self._executor.fallbacks

    def restore_fallbacks(self, counts: Sequence[tuple[str, int]]) -> None:
        """Adds what the same run had reported before it was interrupted."""
        self.fallbacks.merge(dict(counts))

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """What is trained meanwhile was trained before: it is not reported once more."""
        before = self.fallbacks.take()
        yield
        self.fallbacks.take()
        self.fallbacks.merge(before)

    def submit(self, jobs: Sequence[Job]) -> list[Promise]:
        """One promise per job; nothing is trained yet."""
        promises = [Promise(job, self) for job in jobs]
        self.waiting += promises
        return promises

    def flush(self) -> None:
        """Trains everything that waits."""
        start = perf_counter()
        waiting = list(self.waiting)
        with one_torch_thread():
            results = self._executor.run([promise.job for promise in waiting])
        for promise, trained in zip(waiting, results, strict=True):
            promise.trained = trained
        self.waiting.clear()
        self.seconds += perf_counter() - start

    def charged_stages(self, job: Job, trained: Trained) -> tuple[Stage, ...]:
        if self._charged is None:
            raise UnknownWorkError(
                f"the work of device {job.device} is not known: give stages in the method's job, "
                "or give its charged to the trainer"
            )
        return self._charged(job, trained)

    def encoded_bits(self, job: Job, trained: Trained) -> float:
        bits = None if self._encode is None else bits_of(self._encode(job, trained))
        if bits is None:
            raise UnknownWorkError(
                f"the upload of device {job.device} has no bits: give them in the method's "
                "payload, or in what its encode returns, and give encode to the trainer"
            )
        return bits
