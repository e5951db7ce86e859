"""Settings of hypothesis: no deadlines, and the same examples at each run.

HYPOTHESIS_SEARCH=1 in the environment tries new examples instead.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

patient = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("search", **patient)
settings.register_profile("repeatable", derandomize=True, **patient)
settings.load_profile("search" if os.environ.get("HYPOTHESIS_SEARCH") else "repeatable")
