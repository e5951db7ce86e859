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
    found = [*entry_points(group=GROUP, name=name)]
    own = [each for each in found if each.dist and each.dist.name == "edgesim"]
    for entry in own:
        refuse_hidden(entry.module.partition(".")[0])
    return next((entry.load() for entry in own or found), None)
