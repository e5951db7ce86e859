"""A scenario file that changes another one: the key ``base``."""

from __future__ import annotations

from os.path import isfile
from pathlib import Path

from edgesim.errors import ScenarioError, shorten_path
from edgesim.scenario.documents.document import Document
from edgesim.scenario.documents.layers import lay_over
from edgesim.scenario.documents.yaml_text import read_file

MAX_LAYERS = 10


def base_of(path: Path) -> Path:
    """The file that a scenario file changes; the file itself where it changes none."""
    name = read_file(path).tree.get("base")
    return path.parent / name if name else path


def read_with_base(path: Path) -> tuple[Document, Path]:
    """A scenario file, laid over the one that its key ``base`` names.

    Args:
        path: YAML file; ``base`` is relative to its folder.

    Returns:
        The keys of all files together, and the folder of the lowest file, to which paths in the
        scenario are relative.

    Raises:
        ScenarioError: a file cannot be read, or its base is no path.
    """
    document, above = read_file(path), []
    while "base" in document.tree:
        name = document.tree["base"]
        if not isinstance(name, str) or not name.strip():
            raise document.wrong_value(("base",), "; write the path of a scenario file")
        above.append(document)
        if len(above) == MAX_LAYERS:
            problem = f"{MAX_LAYERS} files lie over one another; does one name itself as its base?"
            raise ScenarioError(f"{document.place_of(('base',))}: {problem}")
        path = path.parent / name
        if not isfile(path):  # `Path.is_file` raises where a name is too long
            shown, said = shorten_path(name), str(path)
            said = said if shown == name else shorten_path(said)
            problem = f"is {shown}, but there is no file {said}"
            raise document.error(("base",), f"{problem}; a base is relative to its file")
        document = read_file(path)
    for each in reversed(above):
        del each.tree["base"]
        lay_over(document, each)
    return document, path.parent
