"""Training of one job after the other, on one thread or several: the reference for `Batched`."""

from __future__ import annotations

from collections.abc import Sequence

from fl.contracts import Job, Trained
from fl.out_of_memory import is_out_of_memory
from fl.task import LearningTask
from fl.training import local_sgd
from fl.training.fallback_counts import Fallbacks
from fl.worker_threads import map_in_threads


class OneByOne:
    """Trains each job by itself. The hooks of a method may be called on several threads at once.

    Args:
        threads: how many jobs are under way at a time.
    """

    def __init__(self, task: LearningTask, threads: int = 1) -> None:
        self.task, self.threads, self.fallbacks = task, threads, Fallbacks()
        self.name = "resident" if threads == 1 else f"resident, {threads} threads"

    def run(self, jobs: Sequence[Job]) -> list[Trained]:
        """Results in the order of the jobs, whatever the number of threads.

        Raises:
            MemoryError: the memory does not hold the training of one job.
        """
        # The longest first: no thread begins it when the others are done.
        order = sorted(
            range(len(jobs)), key=lambda i: -sum(phase.steps for phase in jobs[i].phases)
        )
        found = map_in_threads(lambda i: self._train(jobs[i]), order, self.threads)
        results = dict(zip(order, found, strict=True))
        undone = [i for i in order if results[i] is None]
        if undone:
            sentence = f"one job at a time instead of {self.threads}: too large for the memory"
            self.fallbacks.add(sentence, len(undone))
        return [results[i] or local_sgd.run(self.task, jobs[i]) for i in range(len(jobs))]

    def _train(self, job: Job) -> Trained | None:
        """The result of a job; None where jobs beside it leave no memory."""
        try:
            return local_sgd.run(self.task, job)
        except (RuntimeError, MemoryError) as error:
            if self.threads == 1 or not is_out_of_memory(error):
                raise
        return None
