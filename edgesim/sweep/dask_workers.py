"""The same points on workers of dask.distributed: of a scheduler that runs already, or of this machine.

The sweep's folder must be one that all workers see. A worker that dies is replaced by dask, which gives its point to
another one; the point resumes. Workers have one thread, so that a point has a process to itself.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from importlib.util import find_spec
from queue import Empty, Queue
from typing import Any

from edgesim.errors import RunError
from edgesim.sweep.local_workers import DIED, ENDED, ROUND, STARTED, Event, one_thread_each
from edgesim.sweep.point_task import Task, carry_out

TOPIC = "edgesim"
GONE = "the dask scheduler is gone; start it again, and the same command goes on"


def check_distributed() -> None:
    """Refuse --backend dask where the package that it needs is not installed.

    Raises:
        RunError: with the command that installs it.
    """
    if find_spec("distributed") is None:
        raise RunError('--backend dask needs dask.distributed: pip install "edgesim[cluster]"')


class Dask:
    """Workers of a scheduler.

    Args:
        workers: how many this command starts; unused with a scheduler.     scheduler: its address, or None.
    Raises:
        RunError: the scheduler cannot be reached, or its workers have several threads.
    """

    name = "dask"

    def __init__(self, workers: int, scheduler: str | None = None) -> None:
        from distributed import Client, LocalCluster

        for logger in [
            name for name in logging.root.manager.loggerDict if name.split(".")[0] == "distributed"
        ]:
            logging.getLogger(logger).setLevel(logging.CRITICAL)  # this command tells what matters
        self._cluster: Any = None
        try:
            if scheduler is None:
                with one_thread_each():
                    self._cluster = LocalCluster(
                        n_workers=workers,
                        threads_per_worker=1,
                        memory_limit=0,  # none: a point may take what the machine has, as with local workers
                        dashboard_address=None,
                        silence_logs=logging.CRITICAL,
                    )
            self._client = Client(self._cluster or scheduler, timeout="20s")
        except (OSError, TimeoutError, ValueError) as error:
            raise RunError(
                f"the dask scheduler {scheduler or 'of this machine'} cannot be reached ({error})"
            ) from error
        self._refuse_threads(scheduler)
        self._queue: Queue[Event] = Queue()
        self._run, self._futures = uuid.uuid4().hex, {}
        self._client.subscribe_topic(TOPIC, self._heard)

    def _refuse_threads(self, scheduler: str | None) -> None:
        threads = {address: info["nthreads"] for address, info in self._workers().items()}
        several = next((address for address, count in threads.items() if count > 1), None)
        if several:
            self._client.close()
            raise RunError(
                f"worker {several} of {scheduler} has {threads[several]} threads; start it with --nthreads 1"
            )

    def _workers(self) -> dict[str, Any]:
        self._refuse_loss()
        try:
            return self._client.scheduler_info(n_workers=-1)["workers"]
        except (OSError, KeyError, TimeoutError, CancelledError) as error:
            raise RunError(GONE) from error

    def _refuse_loss(self) -> None:
        if self._client.status != "running":
            raise RunError(GONE)

    def capacity(self) -> int:
        """One point per worker; one where no worker has come yet, so that the scheduler sees that some are needed.

        Raises:
            RunError: the scheduler is gone, here and in `start` and `events`.
        """
        return max(1, len(self._workers()))

    def start(self, task: Task) -> None:
        """Hand a point to the scheduler."""
        self._refuse_loss()
        future = self._client.submit(
            remote, task, self._run, key=f"edgesim-{task.id}-{uuid.uuid4().hex}", pure=False
        )
        self._futures[task.id] = future
        future.add_done_callback(lambda future: self._queue.put((ENDED, task.id, future)))

    def events(self, timeout_s: float) -> Iterator[Event]:
        """What workers and scheduler say, after waiting so long at most for the first word."""
        self._refuse_loss()
        with suppress(Empty):
            yield from self._told(*self._queue.get(timeout=timeout_s))
            while True:
                yield from self._told(*self._queue.get_nowait())

    def _told(self, kind: str, name: str, told: Any) -> Iterator[Event]:
        """Nothing, where the point has ended before."""
        if name not in self._futures:
            return
        if kind != ENDED:
            yield kind, name, told
            return
        self._futures.pop(name)
        if told.status == "finished":
            yield ENDED, name, told.result()
        else:
            self._refuse_loss()  # who loses the scheduler loses all points, which are not to blame
            reason = type(told.exception()).__name__ if told.status == "error" else told.status
            yield DIED, name, f"dask gave it up ({reason})"

    def _heard(self, event: tuple[Any, Any]) -> None:
        _, message = event
        if message["run"] == self._run:
            self._queue.put((message["kind"], message["id"], message["told"]))

    def close(self) -> None:
        """Let go of everything; workers of a scheduler that runs on finish the points that they have begun."""
        with suppress(
            Exception
        ):  # the scheduler may be gone, and with it everything that could be let go of
            for future in self._futures.values():
                future.cancel()
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()

    def pids(self) -> list[int]:
        """Processes of the workers."""
        return list(self._client.run(_pid).values())


def remote(task: Task, run: str) -> Any:
    """What a worker does with a point."""
    from distributed import get_worker

    worker = get_worker()

    def say(kind: str, told: Any) -> None:
        worker.log_event(TOPIC, {"run": run, "id": task.id, "kind": kind, "told": told})

    say(STARTED, None)
    return carry_out(task, lambda event: say(ROUND, event))


def _pid() -> int:
    import os

    return os.getpid()
