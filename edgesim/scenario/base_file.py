"""A scenario file that changes another one: the key ``base``."""

from __future__ import annotations

from pathlib import Path

from edgesim.errors import ScenarioError
from edgesim.scenario.document import Document, lay_over
from edgesim.scenario.yaml_locations import read_file

MAX_LAYERS = 10


def base_of(path: Path) -> Path:
    """The file that a scenario file changes; the file itself where it changes none."""
    name = read_file(path).tree.get("base")
    return path.parent / name if name else path


def read_with_base(path: Path, layers: int = MAX_LAYERS) -> tuple[Document, Path]:
    """A scenario file, laid over the one that its key ``base`` names.

    Args:
        path: YAML file; ``base`` is relative to its folder.
        layers: how many files may lie over one another.

    Returns:
        The keys of all files together, and the folder of the lowest file, to which paths in the
        scenario are relative.

    Raises:
        ScenarioError: a file cannot be read, or its base is no path.
    """
    document = read_file(path)
    if "base" not in document.tree:
        return document, path.parent
    name = document.tree["base"]
    if not isinstance(name, str) or not name.strip():
        raise document.wrong_value(("base",), "; write the path of a scenario file")
    if layers == 1:
        problem = f"{MAX_LAYERS} files lie over one another; does one name itself as its base?"
        raise ScenarioError(f"{document.place_of(('base',))}: {problem}")
    below, folder = read_with_base(path.parent / name, layers - 1)
    del document.tree["base"]
    lay_over(below, document)
    return below, folder
