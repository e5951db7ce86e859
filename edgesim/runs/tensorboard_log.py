"""TensorBoard scalars of every round in the run's folder; an optional package."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from edgesim.errors import RunError
from edgesim.runs.round_observer import PROGRESS_COLUMNS, Progress

FOLDER = "tensorboard"


def check_tensorboard() -> None:
    """Raise RunError where the package is missing."""
    if find_spec("tensorboard") is None:
        raise RunError(
            "--tensorboard needs the package tensorboard, which is not installed: "
            'pip install "edgesim[tensorboard]"'
        )


@contextmanager
def with_tensorboard(folder: Path, wanted: bool, progress: Progress) -> Iterator[Progress]:
    """``progress``, and if wanted beside it a TensorBoard log of the run in ``folder``."""
    if not wanted:
        yield progress
        return
    check_tensorboard()
    log = TensorBoard(folder / FOLDER)

    def both(event: dict[str, Any]) -> None:
        log(event)
        progress(event)

    try:
        yield both
    finally:
        log.close()


class TensorBoard:
    """Writes the progress events of `edgesim.runs.run.simulate` as scalars.

    The step of a point is its round, and its wall time the simulated time: TensorBoard's axis
    "Relative" then shows simulated time, from the end of the first round on.

    A resumed run goes on where it was; a fresh one replaces the old. The writer starts with the
    run's first event: only then is the folder known to be the run's.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writer: Any = None

    def __call__(self, event: dict[str, Any]) -> None:
        if event["kind"] == "start":
            self._open(event["round"])
        elif event["kind"] == "round":
            known = {
                name: event[name]
                for name in PROGRESS_COLUMNS
                if event[name] is not None and math.isfinite(event[name])
            }
            self._add(event["round"], event["time_s"], known)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _open(self, first: int) -> None:
        """Points of rounds from ``first`` on, which an interrupted run may have left, are void."""
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._writer = EventFileWriter(str(self.folder), filename_suffix=f".from-round-{first}")
        start = SessionLog(status=SessionLog.START)
        self._writer.add_event(Event(wall_time=time.time(), step=first, session_log=start))

    def _add(self, g: int, time_s: float, numbers: dict[str, float]) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=name, simple_value=value) for name, value in numbers.items()]
        self._writer.add_event(Event(wall_time=time_s, step=g, summary=Summary(value=values)))
