"""How a pass of waiting jobs is trained: one by one (`resident`), in several processes (`pool`), stacked (`batched`).

The result of a job depends on the job alone: not on its neighbours, their number, or the number of processes. Only
stacked arithmetic sums in another order than one by one, which moves the last bits; so `arithmetic` belongs to the
fingerprint of a run, and the name of the executor does not.
"""

from __future__ import annotations

from fl.executors.choice import NAMES, arithmetic, choose
from fl.executors.fallbacks import Notes

__all__ = ["NAMES", "Notes", "arithmetic", "choose"]
