"""Modules of other packages that appear as attributes of edgesim, such as ``edgesim.plot``."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
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
    found = sorted(entry_points(group=GROUP, name=name), key=lambda each: not _is_own(each))
    if found and _is_own(found[0]):
        refuse_hidden(found[0].module.partition(".")[0])
    return found[0].load() if found else None


def _is_own(entry: EntryPoint) -> bool:
    """Is an entry point this project's, whose names nobody else can take?"""
    return entry.dist is not None and entry.dist.name == "edgesim"
