"""Training of jobs by the workers of a dask cluster, with the results of one process.

The task, data included, is sent to the workers once. The jobs of a pass are divided into one part
per worker; what several of them share, such as the model that they start from, travels once per
part. A part whose worker is lost is trained again by another one.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from functools import cached_property, lru_cache
from importlib.util import find_spec
from typing import Any

from fl.contracts import Job, Trained
from fl.dask_client import dask_client
from fl.errors import LearningError
from fl.executors.deferred_training import Executor
from fl.executors.task_pickling import packed, shared_objects, unpacked, without_caches
from fl.task import LearningTask
from fl.training.fallback_counts import Fallbacks
from fl.worker_threads import one_torch_thread

ATTEMPTS = 4  # of a pass whose workers, with all copies of the task, were lost


class ClusterTraining:
    """Trains the jobs of a pass on the workers of a cluster.

    The scheduler is that of dask's key ``scheduler-address``, as DASK_SCHEDULER_ADDRESS sets it;
    without one, as many processes are started here as there may be threads.

    Args:
        task: Of all jobs.
        threads: Of the evaluation, and number of processes that are started here.
        make: Of a task what trains its jobs on a worker; a function with a name in a module.
        client: Of a cluster; None: as above, when the first pass is trained.

    Raises:
        LearningError: dask.distributed is not installed, or the task is on an accelerator.
    """

    def __init__(
        self,
        task: LearningTask,
        threads: int,
        make: Callable[[LearningTask], Executor],
        client: Any = None,
    ) -> None:
        if find_spec("distributed") is None:
            problem = 'needs dask.distributed: pip install "edgesim[cluster]"'
            raise LearningError(f"learning.executor is dask, which {problem}")
        if task.device != "cpu":
            problem = "trains on processors only; write device: cpu, or another executor"
            raise LearningError(f"learning.executor is dask, which {problem}")
        self.task, self.threads, self.fallbacks = task, threads, Fallbacks()
        self._make = make
        self._given, self._sent = client, None  # the task, once workers have it
        self.name = "dask"

    @cached_property
    def client(self) -> Any:
        """The connection to the cluster.

        Raises:
            LearningError: the scheduler cannot be reached.
        """
        if self._given is not None:
            return self._given
        import dask

        return connected(dask.config.get("scheduler-address", None), self.threads)

    def run(self, jobs: Sequence[Job]) -> list[Trained]:
        """Results in the order of the jobs, whoever trains them.

        Raises:
            LearningError: the cluster is gone, a job cannot be sent, or ends every worker.
            Exception: what the training of a job raises.
        """
        results: dict[int, Trained] = {}
        undone = list(range(len(jobs)))
        for _ in range(ATTEMPTS):
            if undone:
                results |= self._pass(jobs, undone)
                undone = [i for i in undone if i not in results]
        if undone:
            lost = jobs[undone[0]]
            raise LearningError(
                f"the job of device {lost.device} in round {lost.g} was lost with its "
                f"worker {ATTEMPTS} times; the workers may have too little memory"
            )
        return [results[i] for i in range(len(jobs))]

    def _pass(self, jobs: Sequence[Job], undone: Sequence[int]) -> dict[int, Trained]:
        """The results of the parts that the workers have trained; others were lost."""
        from distributed.scheduler import KilledWorker

        lost = KilledWorker, CancelledError, OSError
        parts = divided(jobs, undone, self._workers())
        try:
            if self._sent is None:  # to every worker: one that is lost takes no last copy with it
                # by a key of the contents, the late release of an equal task would take this one
                content = packed(without_caches(self.task), {})
                self._sent = self.client.scatter(content, broadcast=True, hash=False)
            futures = [
                self.client.submit(
                    train_part, self._make, self._sent, self._packed(jobs, part), pure=False
                )
                for part in parts
            ]
        except lost:
            self._forget_sent()
            return {}
        results: dict[int, Trained] = {}
        for part, future in zip(parts, futures, strict=True):
            try:
                trained, counts = unpacked(future.result(), shared_objects(self.task))
            except lost:
                self._forget_sent()
                continue
            self.fallbacks.merge(counts)
            results |= zip(part, trained, strict=True)
        return results

    def _packed(self, jobs: Sequence[Job], part: Sequence[int]) -> bytes:
        try:
            return packed([jobs[i] for i in part], shared_objects(self.task))
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise LearningError(
                f"learning.executor is dask, and a job cannot be sent to a worker ({error}); use "
                "another executor"
            ) from error

    def _workers(self) -> int:
        self._refuse_loss()
        return max(1, len(self.client.scheduler_info(n_workers=-1)["workers"]))

    def _forget_sent(self) -> None:
        """Send the task again with the next pass, if there is still a scheduler."""
        self._sent = None
        self._refuse_loss()

    def _refuse_loss(self) -> None:
        if self.client.status != "running":
            raise LearningError(
                "the dask scheduler is gone; start it again, and the same command goes on"
            )


# one per process, which all tasks share and dask closes at its end
kept_client = lru_cache(dask_client)


def connected(address: str | None, threads: int) -> Any:
    """The client of this process, made anew where its scheduler is gone."""
    client = kept_client(address, threads)
    if client.status == "running":
        return client
    kept_client.cache_clear()
    return kept_client(address, threads)


def divided(jobs: Sequence[Job], undone: Sequence[int], workers: int) -> list[list[int]]:
    """The jobs as at most one part per worker with about as many steps, the longest jobs first."""
    steps = {i: 1 + sum(phase.steps for phase in jobs[i].phases) for i in undone}
    parts: list[list[int]] = [[] for _ in range(min(workers, len(undone)))]
    loads = [0] * len(parts)
    for i in sorted(undone, key=lambda i: -steps[i]):
        least = loads.index(min(loads))
        parts[least].append(i)
        loads[least] += steps[i]
    return parts


# --- what workers do ----------------------------------------------------------------------------


def train_part(make: Callable[[LearningTask], Executor], packed_task: bytes, jobs: bytes) -> bytes:
    """Results of some jobs, and what was computed otherwise than chosen, packed."""
    task, executor = made_once(make, packed_task)
    executor.fallbacks.take()
    with one_torch_thread():
        trained = executor.run(unpacked(jobs, shared_objects(task)))
    return packed((trained, executor.fallbacks.take()), shared_objects(task))


# The worker gives the same bytes to every call, and bytes keep their hash.
@lru_cache(maxsize=2)
def made_once(
    make: Callable[[LearningTask], Executor], packed_task: bytes
) -> tuple[LearningTask, Executor]:
    """The task, and what trains it on a worker."""
    task = unpacked(packed_task, {})
    return task, make(task)
