"""Builds what a scenario names: devices, channel, task, method, allocator. The only folder that knows every room."""

from edgesim.build.catalog import catalog, method_keys
from edgesim.build.parts import NO_DEADLINE
from edgesim.build.setup import Setup, set_up
from fl.memory import is_full as memory_is_full
from fl.method import MethodError

__all__ = ["NO_DEADLINE", "MethodError", "Setup", "catalog", "memory_is_full", "method_keys", "set_up"]
