"""Builds what a scenario names: devices, channel, task, method, allocator. The only folder that knows every room."""

from edgesim.build.catalog import catalog, method_keys
from edgesim.build.parts import NO_DEADLINE
from edgesim.build.setup import Setup, set_up
from fl.method import MethodError

__all__ = ["NO_DEADLINE", "MethodError", "Setup", "catalog", "method_keys", "set_up"]
