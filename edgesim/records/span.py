"""A stretch of one device's round: download, a stage of its computation, upload, waiting."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgesim.records.event_log import EventLog


class Span:
    """A stretch of one device's round while it is open; ``bits`` is set by a link, the rest by the log.

    ``cycles`` and ``flops`` are what the whole stretch takes in ``planned_s``; a stretch cut short did its share.
    """

    __slots__ = (
        "_energy",
        "_log",
        "bits",
        "cycles",
        "device",
        "end_s",
        "energy_j",
        "flops",
        "g",
        "phase",
        "planned_s",
        "start_s",
    )

    def __init__(
        self,
        log: EventLog,
        g: int,
        device: int,
        phase: str,
        energy: Callable[[Span], float] | None,
        cycles: float,
        flops: float,
        planned_s: float,
    ) -> None:
        self.g, self.device, self.phase = g, device, phase
        self.bits, self.cycles, self.flops, self.planned_s, self.energy_j = (
            0.0,
            cycles,
            flops,
            planned_s,
            0.0,
        )
        self.start_s = self.end_s = math.nan
        self._log, self._energy = log, energy

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s

    def __enter__(self) -> Span:
        self.start_s = self._log.now()
        self._log.open.add(self)
        return self

    def __exit__(self, interruption: type[BaseException] | None, *_: object) -> None:
        self.end_s = self._log.now()
        if interruption is not None:
            done = min(self.seconds / self.planned_s, 1.0) if self.planned_s > 0.0 else 0.0
            self.cycles, self.flops = self.cycles * done, self.flops * done
        self._log.close(self)
        if self._energy is not None:
            self.energy_j = self._energy(self)
