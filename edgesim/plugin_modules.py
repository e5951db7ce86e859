"""Modules of other packages that appear as attributes of edgesim, such as ``edgesim.plot``."""

from __future__ import annotations

from importlib.metadata import entry_points
from types import ModuleType

from edgesim.shadowed_packages import refuse_hidden

GROUP = "edgesim.modules"  # of entry points


def plugin_module(name: str) -> ModuleType | None:
    """The module that an entry point of the group registers under this name; None: there is none.

    Args:
        name: of the entry point.

    Raises:
        HiddenPackageError: a file of the user is in the way of a package of this project.
    """
    for entry in entry_points(group=GROUP, name=name):
        if entry.dist and entry.dist.name == "edgesim":
            refuse_hidden(entry.module.partition(".")[0])
        return entry.load()
    return None
