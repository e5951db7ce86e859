"""A run before it starts: what a scenario names, resolved, drawn and divided."""

from __future__ import annotations

from edgesim.runs.setup.make_setup import set_up
from edgesim.runs.setup.setup import Setup

__all__ = ["Setup", "set_up"]
