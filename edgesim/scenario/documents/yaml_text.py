"""YAML files and texts as documents; refuses what no scenario needs.

Anchors, aliases, tags, several documents, duplicate keys, deep nesting and large files are errors:
a scenario is read by people.
"""

from __future__ import annotations

import re
from os.path import isdir
from pathlib import Path

import yaml

from edgesim.errors import ScenarioError, shorten
from edgesim.scenario.documents.document import Document
from edgesim.scenario.documents.document_builder import (
    NO_CHARACTER,
    TOO_DEEP,
    DocumentBuilder,
    shown_line,
)
from fl.regular_files import FileTooLargeError, read_regular

MAX_BYTES = 256 * 1024
MAX_RESOLVED_BYTES = 4 << 20  # of scenario.yaml in a run's folder, where traces are written out
LARGE = "put long lists into a file and name it by {trace: file.csv}"
CLOSE = "close it, or quote a text that holds a bracket or a colon"
COLON = (
    "a key has a colon and a blank, also in the line before, and begins in the column of the keys "
    "beside it; quote a text that holds a colon"
)
_PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's, 13 times faster, where it is
_UNREADABLE: dict[type, str] = {
    FileNotFoundError: "there is no such file",
    IsADirectoryError: "this is a folder",
}


class EmptyFileError(ScenarioError):
    """A file without a document: nothing, or comments alone."""


def read_file(path: Path, what: str = "scenario") -> Document:
    """Parse one YAML file, which holds a mapping.

    Args:
        path: of the file.
        what: it is, in errors.

    Raises:
        ScenarioError: the file cannot be read, is too large, or is no YAML; with file and line.
    """
    try:
        raw = read_regular(path, MAX_RESOLVED_BYTES if is_of_run(path) else MAX_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the path is not valid"
        hint = f"; {LARGE}" if isinstance(error, FileTooLargeError) else ""
        problem = f"the file cannot be read ({reason}){hint}"
        if found := _UNREADABLE.get(type(error)):
            problem = f"{found}; give the path of a {what} in YAML"
        raise ScenarioError(f"{path}: {problem}.") from None
    return document_of(raw, path, what)


def is_of_run(path: Path) -> bool:
    """Is this file the resolved scenario of a run, in the run's folder?"""
    return path.name == "scenario.yaml" and isdir(path.with_name("checkpoint"))


def document_of(raw: bytes, path: Path, what: str = "scenario") -> Document:
    """`read_file` where the bytes have been read already."""
    try:
        document = read_text(raw.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        problem = "a byte that is not UTF-8 text; save the file as UTF-8"
        raise ScenarioError(f"{path}:{line}: {problem}.") from None
    if not isinstance(document.tree, dict):
        shown, first = shorten(document.tree), ", name: ... first" * (what == "scenario")
        problem = f"the {what} is {shown}; write a mapping of keys{first}"
        raise ScenarioError(f"{document.place_of(())}: {problem}.")
    return document


def read_text(text: str, source: str, numbered: bool = True) -> Document:
    """Parse YAML text.

    Args:
        text: one document.
        source: its name in errors and places.
        numbered: do they name the line as well?

    Raises:
        ScenarioError: the text is no YAML, or holds what a scenario may not.
    """
    builder = DocumentBuilder(source, numbered)
    if unprintable := yaml.reader.Reader.NON_PRINTABLE.search(text):
        place = builder.line_place(text.count("\n", 0, unprintable.start()))
        problem = "not valid YAML (a control character); write plain text"
        raise ScenarioError(f"{place}: {problem}.")
    try:
        for event in yaml.parse(text, Loader=_PARSER):
            builder.add(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = builder.line_place(mark.line) if mark else source
        problem = _syntax_problem(error, text.split("\n"))
        raise ScenarioError(f"{place}: {problem}.") from None
    except (ValueError, OverflowError):  # from chr() of an escape beyond Unicode
        raise ScenarioError(f"{source}: {NO_CHARACTER}.") from None
    if not builder.documents:
        start = "edgesim init DIR makes one to start from"
        raise EmptyFileError(f"{source}: the file is empty; write a scenario: {start}.")
    return Document(builder.root, builder.places)


def _syntax_problem(error: yaml.MarkedYAMLError, lines: list[str]) -> str:
    """What is no YAML, with the bracket that is open: the parser stops at a later line."""
    problem, start, end = str(error.problem), error.context_mark, error.problem_mark
    if "character escape code" in problem:
        return NO_CHARACTER
    if "nesting depth" in problem:  # PyYAML from 6.0.4 on
        return TOO_DEEP
    stopped = "".join(lines[end.line : end.line + 1]) if end else ""
    if "any token" in problem and re.match(r"\s*\t", stopped):
        return "a tab before the text; indent with blanks"
    if start and end and str(error.context).endswith(("flow mapping", "flow sequence")):
        later = start.line < end.line
        rest = stopped.strip() if later else stopped[end.column :]
        bracket = "{" if error.context.endswith("mapping") else "["
        of_line, before = f" of line {start.line + 1}" * later, shorten(rest) if rest else "the end"
        return f"not valid YAML (the {bracket}{of_line} is not closed before {before}); {CLOSE}"
    hint = f"; {COLON}" if "mapping values" in problem or "expected ':'" in problem else ""
    return f"not valid YAML ({shown_line(problem)}){hint}"
