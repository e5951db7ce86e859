"""Who runs which point when. The same for every backend; no result depends on it."""

from __future__ import annotations

from collections import Counter
from typing import Any, Protocol

from edgesim.sweep.local_workers import DIED, ENDED, Event
from edgesim.sweep.point_task import Ended, Task
from edgesim.sweep.points import Point
from edgesim.sweep.sweep_folder import FAILED, SweepFolder

TRIES = 3  # of a point whose processes die
WAIT_S = 0.5  # longest time between two looks of the view


class Backend(Protocol):
    """Where points are carried out."""

    name: str

    def capacity(self) -> int: ...  # points at a time
    def start(self, task: Task) -> None: ...
    def events(self, timeout_s: float) -> Any: ...  # of Event
    def close(self) -> None: ...


class Control:
    """Runs the points that are missing.

    Points of one group may share their training (`fl.training_cache.cache`). One of them runs at a time as long as there is other
    work, so that the next ones find what it has trained; the group's results are forgotten when it is through.

    Args:
        options: of `edgesim.runs.run.simulate`, for every point.     reuse: may points share?
        fail_fast: start no further point once one has failed.
    """

    def __init__(
        self,
        folder: SweepFolder,
        backend: Backend,
        view: Any,
        options: dict[str, Any],
        reuse: bool = True,
        fail_fast: bool = False,
        tensorboard: bool = False,
    ) -> None:
        self.folder, self.backend, self.view, self.options = folder, backend, view, options
        self.fail_fast, self.tensorboard = fail_fast, tensorboard
        self.pending = grouped(folder.to_run())
        self.running: dict[str, Point] = {}
        sizes = Counter(point.group for point in self.pending)
        self.sharing = {
            group for group, size in sizes.items() if reuse and group is not None and size > 1
        }
        self.deaths: Counter[str] = Counter()

    def run(self) -> None:
        """Until every point has ended, or one has failed and that is enough."""
        while self.pending or self.running:
            while self.pending and len(self.running) < self.backend.capacity():
                self._start(self._next())
            for event in self.backend.events(WAIT_S):
                self._take(event)
            self.view.refresh()

    def _next(self) -> Point:
        """The first point whose group nobody else is busy with, or else the first."""
        busy = {point.group for point in self.running.values()} & self.sharing
        chosen = next((point for point in self.pending if point.group not in busy), self.pending[0])
        self.pending.remove(chosen)
        return chosen

    def _start(self, point: Point) -> None:
        shared = self.folder.shared.resolve() if point.group in self.sharing else None
        place = self.folder.of(point).resolve()
        self.running[point.id] = point
        options = {**self.options, "shared": shared}
        self.backend.start(Task(point.id, point.scenario, place, options, self.tensorboard))
        self.view.started(point)

    def _take(self, event: Event) -> None:
        kind, name, told = event
        point = self.running.get(name)
        if point is None:
            return
        if kind == ENDED:
            self._end(point, told)
        elif kind == DIED:
            self._died(point, told)
        else:
            self.view.heard(point, kind, told)

    def _died(self, point: Point, reason: str) -> None:
        """Somebody else goes on with the point, but not for ever."""
        self.deaths[point.id] += 1
        if self.deaths[point.id] >= TRIES:
            self._end(point, Ended(FAILED, f"tried {TRIES} times: {reason}"))
            return
        self.view.died(point, reason)
        del self.running[point.id]
        self.pending.insert(0, point)

    def _end(self, point: Point, ended: Ended) -> None:
        del self.running[point.id]
        self.folder.set(point, ended.status, ended.error)
        self.view.ended(point, ended)
        if ended.status == FAILED and self.fail_fast:
            self.pending = []
        left = {each.group for each in (*self.pending, *self.running.values())}
        if point.group in self.sharing - left:
            self.folder.forget(point.group)


def grouped(points: list[Point]) -> list[Point]:
    """Points of one group behind one another, groups in the order in which they first come."""
    place: dict[str, int] = {}
    for i, point in enumerate(points):
        place.setdefault(point.group or point.id, i)
    return sorted(points, key=lambda point: place[point.group or point.id])
