"""Workers of dask.distributed: of a scheduler that runs already, or of this machine.

The sweep's folder must be one that all workers see. A worker that dies is replaced by dask, which
gives its point to another one; the point resumes. Workers have one thread, so that a point has a
process to itself.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from importlib.util import find_spec
from queue import Empty, Queue
from typing import Any

from edgesim.errors import RunError
from edgesim.sweep.workers.point_task import (
    DIED,
    ENDED,
    ROUND,
    PointOutcome,
    PointTask,
    WorkerEvent,
    carry_out,
)
from fl.dask_client import dask_client
from fl.errors import LearningError

TOPIC = "edgesim"  # of the messages from workers
SAY_AFTER_S, SAY_AGAIN_S = 5.0, 60.0  # without any worker, until that is reported
LOST = "the dask scheduler is gone; start it again, and the same command goes on"


def check_distributed() -> None:
    """Refuse --backend dask where the package that it needs is not installed.

    Raises:
        RunError: with the command that installs it.
    """
    if find_spec("distributed") is None:
        raise RunError('--backend dask needs dask.distributed: pip install "edgesim[cluster]"')


class DaskWorkers:
    """Workers of a scheduler.

    Args:
        count: how many workers this command starts; unused with a scheduler.
        scheduler: its address; None: one of this command.
        report: called with a sentence where there is no worker to carry out a point.
        longest_wait_s: how long to wait for a first worker, s; inf: for ever.

    Raises:
        RunError: the scheduler cannot be reached, or a worker has several threads; also from
            `capacity`, `start` and `events`, and where the scheduler is lost or no worker comes.
    """

    def __init__(
        self,
        count: int,
        scheduler: str | None = None,
        report: Callable[[str], None] = lambda sentence: None,
        longest_wait_s: float = math.inf,
    ) -> None:
        self._scheduler, self._report = scheduler, report
        self._longest_wait_s = longest_wait_s
        try:
            self._client = dask_client(scheduler, count)
        except LearningError as error:
            raise RunError(str(error)) from error
        self._workers()  # of which none may have several threads
        self._deserted_s: float | None = None  # since when nobody is there, as far as was seen
        self._said_s = 0.0
        self._queue: Queue[tuple[str, str, Any]] = Queue()
        self._run_id = uuid.uuid4().hex
        self._futures: dict[str, Any] = {}
        self._client.subscribe_topic(TOPIC, self._receive)

    def _workers(self) -> dict[str, Any]:
        """What the scheduler knows of each, also of those that came while points ran."""
        self._refuse_loss()
        try:
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
        except (OSError, KeyError, TimeoutError, CancelledError) as error:
            raise RunError(LOST) from error
        for address, info in workers.items():
            if info["nthreads"] > 1:
                self._client.close()
                problem = f"has {info['nthreads']} threads; start it with --nthreads 1"
                raise RunError(f"worker {address} of {self._scheduler} {problem}")
        return workers

    def _refuse_loss(self) -> None:
        if self._client.status != "running":
            raise RunError(LOST)

    def capacity(self) -> int:
        """One point per worker; one where no worker has come yet, which asks for the first."""
        return max(1, len(self._workers()))

    def start(self, task: PointTask) -> None:
        self._refuse_loss()
        key = f"edgesim-{task.id}-{uuid.uuid4().hex}"
        future = self._client.submit(work, task, self._run_id, key=key, pure=False)
        self._futures[task.id] = future
        future.add_done_callback(lambda future: self._queue.put((ENDED, task.id, future)))

    def events(self, timeout_s: float) -> Iterator[WorkerEvent]:
        self._refuse_loss()
        self._report_desertion()
        with suppress(Empty):
            yield from self._event(*self._queue.get(timeout=timeout_s))
            while True:
                yield from self._event(*self._queue.get_nowait())

    def _report_desertion(self) -> None:
        """Report every minute that there is no worker at all.

        Raises:
            RunError: for longer than the user wants to wait.
        """
        now_s = time.monotonic()
        if self._workers():
            self._deserted_s = None
            return
        if self._deserted_s is None:
            self._deserted_s, self._said_s = now_s, now_s - SAY_AGAIN_S + SAY_AFTER_S
        place = self._scheduler or "of this machine"
        if now_s - self._deserted_s >= self._longest_wait_s:
            self._client.close()
            raise RunError(
                f"no worker came to the dask scheduler {place} within {self._longest_wait_s:g} s; "
                "start some, and the same command goes on"
            )
        if now_s - self._said_s >= SAY_AGAIN_S:
            self._said_s = now_s
            self._report(
                f"the dask scheduler {place} has no worker: waiting for one (dask worker "
                f"{self._scheduler or 'ADDRESS'} --nthreads 1); Ctrl-C ends this, "
                "--wait-for-workers limits it"
            )

    def _event(self, kind: str, point_id: str, content: Any) -> Iterator[WorkerEvent]:
        """Nothing, where the point has ended before."""
        if point_id not in self._futures:
            return
        if kind == ROUND:
            yield WorkerEvent(ROUND, point_id, content)
            return
        future = self._futures.pop(point_id)
        if future.status == "finished":
            yield WorkerEvent(ENDED, point_id, future.result())
        else:
            self._refuse_loss()  # it ends all points, of which none is to blame
            error = future.status == "error"
            reason = type(future.exception()).__name__ if error else future.status
            yield WorkerEvent(DIED, point_id, f"dask gave it up ({reason})")

    def _receive(self, event: tuple[Any, Any]) -> None:
        _, message = event
        if message["run"] == self._run_id:
            self._queue.put((ROUND, message["id"], message["event"]))

    def close(self) -> None:
        """Disconnect; workers of a scheduler that runs on finish the points that they have."""
        with suppress(Exception):  # the scheduler may be gone, and the futures with it
            for future in self._futures.values():
                future.cancel()
        self._client.close()
        if self._client.cluster is not None:
            self._client.cluster.close()


def work(task: PointTask, run_id: str) -> PointOutcome:
    """What a worker does with a point."""
    from distributed import get_worker

    worker = get_worker()

    def send(event: dict[str, Any]) -> None:
        worker.log_event(TOPIC, {"run": run_id, "id": task.id, "event": event})

    return carry_out(task, send)
