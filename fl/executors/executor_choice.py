"""The executor that a scenario names."""

from __future__ import annotations

from fl.executors.accelerator_settings import repeat_on_accelerators
from fl.executors.arithmetic import arithmetic
from fl.executors.batched import Batched
from fl.executors.deferred_training import Executor
from fl.executors.malloc_settings import keep_freed_memory
from fl.executors.one_by_one import OneByOne
from fl.task import LearningTask
from fl.worker_threads import available_cores

NAMES = ("auto", "resident", "pool", "batched", "dask")


def choose(task: LearningTask, name: str = "auto", threads: int | None = None) -> Executor:
    """The executor of that name.

    Args:
        name: resident: one job after the other. pool: so on several threads. batched: models
            stacked. auto: as docs/performance.md says. dask: so by the workers of a cluster.
        threads: how many may compute at once; None: one per core that this process may use.

    Raises:
        ValueError: there is no executor of that name.
    """
    if name not in NAMES:
        raise ValueError(f'there is no executor "{name}"; there are {", ".join(NAMES)}')
    keep_freed_memory()
    if task.device != "cpu":
        repeat_on_accelerators()
    if name in ("resident", "batched") or task.device != "cpu":
        threads = 1
    elif threads is None:
        threads = available_cores()
    if name == "dask":
        from fl.executors.cluster_training import ClusterTraining

        return ClusterTraining(task, threads, on_a_worker)
    # Batched also where it can stack nothing: it says so.
    stacked = name == "batched" or arithmetic(task, name) == "stacked"
    return Batched(task, threads) if stacked else OneByOne(task, threads)


def on_a_worker(task: LearningTask) -> Executor:
    """What trains on a worker of a cluster: as this process would with one thread."""
    return choose(task, "auto", 1)
