"""Executors: how waiting jobs are trained, one by one on several threads or as stacks of models.

The result of a job depends on the job alone: not on its neighbours, their number, or the number of
threads. Stacked models sum in another order than single ones, which decides the last bits.
"""

from __future__ import annotations

from fl.executors.choice import NAMES, arithmetic, choose
from fl.executors.fallbacks import Fallbacks

__all__ = ["NAMES", "Fallbacks", "arithmetic", "choose"]
