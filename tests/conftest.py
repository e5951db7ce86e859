"""Hypothesis for all rooms: a busy machine is no failure; CI tries the same examples each time, developers new ones."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

patient = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("search", **patient)
settings.register_profile("ci", derandomize=True, **patient)
settings.load_profile("ci" if os.environ.get("CI") else "search")
