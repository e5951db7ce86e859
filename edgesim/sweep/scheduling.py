"""Which point runs when, on any kind of workers; no result depends on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, Protocol

from edgesim.results.sweep_file import FAILED
from edgesim.sweep.sweep_folder import SweepFolder
from edgesim.sweep.sweep_point import SweepPoint
from edgesim.sweep.workers.point_task import (
    DIED,
    ENDED,
    ROUND,
    PointOutcome,
    PointTask,
    SimulateOptions,
    WorkerEvent,
)

MAX_TRIES = 3  # of a point whose processes die
WAIT_S = 0.5  # longest time between two refreshes of what is shown


class Workers(Protocol):
    """Where points are carried out."""

    def capacity(self) -> int:
        """How many points at a time."""

    def start(self, task: PointTask) -> None:
        """Hand a point to a worker that has none."""

    def events(self, timeout_s: float) -> Iterator[WorkerEvent]:
        """What workers report, after waiting so long at most for the first event."""

    def close(self) -> None:
        """End all work."""


class SweepObserver(Protocol):
    """What is shown of a sweep."""

    def point_started(self, point: SweepPoint) -> None: ...
    def round_ended(self, point: SweepPoint, event: dict[str, Any]) -> None: ...
    def worker_died(self, point: SweepPoint, reason: str) -> None: ...
    def point_ended(self, point: SweepPoint, outcome: PointOutcome) -> None: ...
    def refresh(self) -> None: ...


class PointScheduler:
    """Runs the points that are missing.

    Points of one group may share their training (`fl.training_cache.cache`). One of them runs at a
    time as long as there is other work, so that the next ones find what it has trained; what a
    group shared is removed when its last point has ended.

    Args:
        folder: of the sweep, open.
        workers: where the points run.
        observer: is called with what happens.
        options: for every point.
        reuse: may points share?
        fail_fast: start no further point once one has failed.
        tensorboard: write TensorBoard scalars as well?
    """

    def __init__(
        self,
        folder: SweepFolder,
        workers: Workers,
        observer: SweepObserver,
        options: SimulateOptions,
        reuse: bool = True,
        fail_fast: bool = False,
        tensorboard: bool = False,
    ) -> None:
        self.folder, self.workers, self.observer, self.options = folder, workers, observer, options
        self.fail_fast, self.tensorboard = fail_fast, tensorboard
        self.pending = grouped(folder.to_run())
        self.running: dict[str, SweepPoint] = {}
        sizes = Counter(point.group for point in self.pending if point.group is not None)
        self.sharing = {group for group, size in sizes.items() if reuse and size > 1}
        self.deaths: Counter[str] = Counter()

    def run(self) -> None:
        """Until every point has ended, or one has failed and no more are wanted."""
        while self.pending or self.running:
            while self.pending and len(self.running) < self.workers.capacity():
                self._start(self._next())
            for event in self.workers.events(WAIT_S):
                self._take(event)
            self.observer.refresh()

    def _next(self) -> SweepPoint:
        """The first point no other of whose group runs, or else the first."""
        busy = {point.group for point in self.running.values()} & self.sharing
        chosen = next((point for point in self.pending if point.group not in busy), self.pending[0])
        self.pending.remove(chosen)
        return chosen

    def _start(self, point: SweepPoint) -> None:
        place, shared = self.folder.of(point).resolve(), self.folder.shared.resolve()
        used = shared if point.group in self.sharing else None
        options: SimulateOptions = {**self.options, "shared": used}
        shorter = self.folder.shorter.get(point.id)
        begin = partial(shorter.copy_state, place, shared, self.tensorboard) if shorter else None
        self.running[point.id] = point
        task = PointTask(point.id, point.scenario, place, options, self.tensorboard, begin)
        self.workers.start(task)
        self.observer.point_started(point)

    def _take(self, event: WorkerEvent) -> None:
        point = self.running.get(event.point_id)
        if point is None:
            return
        if event.kind == ROUND:
            self.observer.round_ended(point, event.content)
        elif event.kind == ENDED:
            self._end(point, event.content)
        elif event.kind == DIED:
            self._retry(point, event.content)

    def _retry(self, point: SweepPoint, reason: str) -> None:
        """Requeue a point whose process has died, a few times at most."""
        self.deaths[point.id] += 1
        if self.deaths[point.id] >= MAX_TRIES:
            self._end(point, PointOutcome(FAILED, f"tried {MAX_TRIES} times: {reason}"))
            return
        self.observer.worker_died(point, reason)
        del self.running[point.id]
        self.pending.insert(0, point)

    def _end(self, point: SweepPoint, outcome: PointOutcome) -> None:
        del self.running[point.id]
        self.folder.set_status(point, outcome.status, outcome.error)
        self.observer.point_ended(point, outcome)
        if outcome.status == FAILED and self.fail_fast:
            self.pending = []
        left = {each.group for each in (*self.pending, *self.running.values())}
        if point.group in self.sharing - left:
            self.folder.remove_shared(point.group)


def grouped(points: list[SweepPoint]) -> list[SweepPoint]:
    """Points of one group behind one another, groups in the order in which they first come."""
    place: dict[str, int] = {}
    for i, point in enumerate(points):
        place.setdefault(point.group or point.id, i)
    return sorted(points, key=lambda point: place[point.group or point.id])
