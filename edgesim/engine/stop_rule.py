"""When a run ends before its last round: by simulated time, or by jobs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from edgesim.records.simulated_times import ROUNDING


@dataclass
class StopRule:
    """Ends a run with the first round, or version, at whose end enough is done.

    Args:
        time_s: simulated time, s.
        jobs: that were handed out.
        reached: the round in progress is the last one.
    """

    time_s: float = math.inf
    jobs: float = math.inf
    reached: bool = False

    def look(self, time_s: float, jobs: int) -> bool:
        """Is the round that ends now the last one?"""
        has_passed = time_s >= self.time_s * (1.0 - ROUNDING)
        self.reached = self.reached or has_passed or jobs >= self.jobs
        return self.reached
