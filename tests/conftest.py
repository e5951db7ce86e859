"""Hypothesis for all rooms: a busy machine is no failure; CI tries the same examples each time, developers new ones."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("search", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "search")
