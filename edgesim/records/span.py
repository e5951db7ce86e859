"""A span: one activity of a device in a round, such as download, training, upload or idle."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Span:
    """One activity of one device, in simulated time.

    Args:
        g: number of the round.
        device: k.
        phase: download, upload, idle, or the name of a stage of the computation.
        cycles: CPU cycles of the whole activity.
        flops: floating point operations of the whole activity.
        planned_s: how long the whole activity takes, s.
        start_s: simulated time of its beginning, s.
        end_s: simulated time of its end, s; nan while it is open.
        bits: what a link has carried, bit.
        energy_j: what it costs, J.
        job: number of the job that it belongs to; -1: none, or jobs are not numbered.
        sector: that a link of a network carried it to or from; -1: none.
        sinr_db: mean ratio of signal to interference and noise of that link, dB.
        served_s: time over which that is the mean, s.
        done: part of its cycles that was done, where the device counts them; None: by time.
        transmissions: of a block of an upload on average, where blocks are lost; nan: not known.
        waited_s: part of an upload in which others had the whole band, s.
        waited_air_s: part of that in the uplink's slots, s; None: its mean over the pattern.
    """

    g: int
    device: int
    phase: str
    cycles: float = 0.0
    flops: float = 0.0
    planned_s: float = 0.0
    start_s: float = math.nan
    end_s: float = math.nan
    bits: float = 0.0
    energy_j: float = 0.0
    job: int = -1
    sector: int = -1
    sinr_db: float = math.nan
    served_s: float = 0.0
    done: float | None = None
    waited_s: float = 0.0
    waited_air_s: float | None = None
    transmissions: float = math.nan

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s

    def charge_done_part(self) -> None:
        """Reduce cycles and FLOPs to the part that was done until the interruption."""
        done = min(self.seconds / self.planned_s, 1.0) if self.planned_s > 0.0 else 0.0
        done = done if self.done is None else self.done
        self.cycles, self.flops = self.cycles * done, self.flops * done
