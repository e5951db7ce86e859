"""Promises: jobs wait until somebody needs a result; then everything that waits is trained in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Protocol

from fl.contracts import Job, Sent, Stage, Trained
from fl.executors.fallbacks import Notes
from fl.executors.processes import one_thread
from fl.executors.resident import Resident
from fl.task import LearningTask


class Aborted(RuntimeError):
    """Somebody asked for the result of a job that was called off."""


class Executor(Protocol):
    """Trains jobs. The result of a job must not depend on its neighbours."""

    name: str
    notes: Notes  # what did not go as chosen

    def run(self, jobs: Sequence[Job]) -> list[Trained]: ...

    def end(self) -> None:
        """Gives back what it holds between passes; it may run again."""


class Promise:
    """The training of one job, now or later (`fl.contracts.Update`)."""

    def __init__(self, job: Job, trainer: Trainer) -> None:
        self.job = job
        self._trainer = trainer
        self._trained: Trained | None = None
        self._aborted = False

    def result(self) -> Trained:
        """What the training gave; trains everything that waits if this job still does."""
        if self._aborted:
            raise Aborted(
                f"the job of device {self.job.device} in round {self.job.g} was called off"
            )
        if self._trained is None:
            self._trainer.flush()
        return self._trained

    def stages(self) -> tuple[Stage, ...]:
        """The work that is charged: as ordered, or, where only the training tells, as the method says."""
        if self.job.stages is not None:
            return self.job.stages
        return self._trainer.charged_stages(self.job, self.result())

    def bits_up(self) -> float:
        """Bits of the upload: as planned, or, where only the training tells, as encoded."""
        if self.job.payload.bits_up is not None:
            return self.job.payload.bits_up
        return self._trainer.encoded_bits(self.job, self.result())

    def abort(self) -> None:
        """Calls the job off: it is not trained if it was not yet, and its result is gone."""
        self._aborted, self._trained = True, None
        self._trainer.forget(self)

    def fulfil(self, trained: Trained) -> None:
        self._trained = trained


class Trainer:
    """Queues jobs and trains them at the first need.

    Args:
        executor: how a pass is run (`fl.executors.choose`); one by one by default.
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
        self._executor = executor or Resident(task)
        self._encode, self._charged = encode, charged
        self._waiting: list[Promise] = []

    @property
    def executor_name(self) -> str:
        return self._executor.name

    @property
    def notes(self) -> list[str]:
        """What did not go as chosen, and for how many jobs: repeated, trained one by one, in one process."""
        return self._executor.notes.lines()

    def detours(self) -> list[tuple[str, int]]:
        """What ``notes`` says, as a checkpoint holds it: sentences and numbers of jobs, in order."""
        notes = self._executor.notes
        taken = notes.take()
        notes.merge(taken)
        return list(taken.items())

    def go_on_after(self, detours: Sequence[tuple[str, int]]) -> None:
        """The same run has said so much before it was interrupted."""
        self._executor.notes.merge(dict(detours))

    def submit(self, jobs: Sequence[Job]) -> list[Promise]:
        """One promise per job; nothing is trained yet."""
        promises = [Promise(job, self) for job in jobs]
        self._waiting += promises
        return promises

    def flush(self) -> None:
        """Trains everything that waits, whoever asks, with one torch thread: more would change the last bits."""
        start = perf_counter()
        waiting = list(self._waiting)
        with one_thread():
            done = self._executor.run([p.job for p in waiting])
        for promise, trained in zip(waiting, done, strict=True):
            promise.fulfil(trained)
        self._waiting.clear()
        self.seconds += perf_counter() - start

    def end(self) -> None:
        """Nothing more will be trained: ends what the executor keeps for later passes."""
        self._executor.end()

    def forget(self, promise: Promise) -> None:
        self._waiting = [one for one in self._waiting if one is not promise]

    def charged_stages(self, job: Job, trained: Trained) -> tuple[Stage, ...]:
        if self._charged is None:
            raise RuntimeError(
                f"the work of device {job.device} is not known: give stages in the method's job, or give its charged "
                "to the trainer"
            )
        return self._charged(job, trained)

    def encoded_bits(self, job: Job, trained: Trained) -> float:
        bits = None if self._encode is None else self._encode(job, trained).bits
        if bits is None:
            raise RuntimeError(
                f"the upload of device {job.device} has no bits: give them in the method's payload, or in what its "
                "encode returns, and give encode to the trainer"
            )
        return bits
