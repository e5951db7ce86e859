"""Builds what a scenario names: devices, channel, task, method, allocator. The only folder that knows every room."""

from edgesim.runs.builders import NO_DEADLINE
from edgesim.runs.catalog import catalog, method_keys
from edgesim.runs.setup import Setup, set_up
from fl.out_of_memory import is_out_of_memory

__all__ = [
    "NO_DEADLINE",
    "Setup",
    "catalog",
    "is_out_of_memory",
    "method_keys",
    "set_up",
]
