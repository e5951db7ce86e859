"""Modules of other packages that appear as attributes of edgesim, such as ``edgesim.plot``."""

from __future__ import annotations

from importlib.metadata import entry_points
from types import ModuleType

GROUP = "edgesim.modules"  # of entry points


def plugin_module(name: str) -> ModuleType | None:
    """The module that an entry point of the group registers under this name; None: there is none.

    Args:
        name: of the entry point.
    """
    for entry in entry_points(group=GROUP, name=name):
        return entry.load()
    return None
