"""YAML text to plain data, with the line of every value; refuses what a scenario never needs.

Anchors, aliases, tags, several documents, duplicate keys, deep nesting and large files are errors: a scenario is read
by people. Because aliases are refused at the parser's event, an alias bomb costs nothing. The tree is built from the
events, without recursion.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgesim.errors import COMMAND_LINE, ScenarioError

MAX_BYTES = 256 * 1024
MAX_DEPTH = 20
_INTEGER = re.compile(r"[-+]?[0-9]{1,400}")
_REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NOTHING = {"", "~", "null", "Null", "NULL"}

Keys = tuple[str | int, ...]  # of a value in the tree: keys and list positions


@dataclass
class Marked:
    """Plain data and where each part of it was written: ``places[("network", "bandwidth")] == "cell.yaml:14"``."""

    tree: Any
    places: dict[Keys, str] = field(default_factory=dict)

    def place(self, path: Keys) -> str:
        """Where the value at ``path`` was written, or its nearest surrounding part."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.places:
                return self.places[path[:end]]
        return COMMAND_LINE

    def under(self, path: Keys) -> Marked:
        """The part at ``path`` as a tree of its own."""
        tree = self.tree
        for key in path:
            tree = tree[key]
        return Marked(
            tree,
            {
                at[len(path) :]: place
                for at, place in self.places.items()
                if at[: len(path)] == path
            },
        )

    def put(self, path: Keys, part: Marked) -> None:
        """Replace or add the value at ``path``; the mapping that holds it must exist."""
        holder = self.tree
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = part.tree
        for at in [at for at in self.places if at[: len(path)] == path]:
            del self.places[at]
        self.places.update({path + at: place for at, place in part.places.items()})


def read_file(path: Path) -> Marked:
    """Parse one YAML file; every complaint names the file, and the line where there is one."""
    try:
        with open(path, "rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ScenarioError(
            f"{path}: there is no such file; give the path of a scenario in YAML."
        ) from None
    except IsADirectoryError:
        raise ScenarioError(
            f"{path}: this is a folder; give the path of a scenario file in YAML."
        ) from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or "the path is not valid"
        raise ScenarioError(f"{path}: the file cannot be read ({reason}).") from None
    if len(raw) > MAX_BYTES:
        raise ScenarioError(
            f"{path}: the file is larger than {MAX_BYTES // 1024} KiB; a scenario is small, "
            "put long lists into a file and name it by {trace: file.csv}."
        )
    return read_text(_decode(raw, path), str(path))


def read_text(text: str, source: str, numbered: bool = True) -> Marked:
    """Parse YAML text; ``source`` names it in complaints, with line numbers if ``numbered``."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    builder = _Builder(source, numbered)
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            builder.take(event)
    except MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        place = builder.place(mark.line) if mark else source
        raise ScenarioError(
            f"{place}: not valid YAML ({_one_line(problem.problem or 'unreadable')})."
        ) from None
    except YAMLError as problem:
        position = getattr(problem, "position", 0)
        place = builder.place(text.count("\n", 0, position))
        raise ScenarioError(
            f"{place}: not valid YAML (a control character); write plain text."
        ) from None
    if not builder.documents:
        raise ScenarioError(
            f"{source}: the file is empty; write a scenario, for a start copy scenarios/demo.yaml."
        )
    return Marked(builder.root, builder.places)


def scalar(text: str) -> str | int | float | bool | None:
    """What an unquoted YAML 1.2 word means: nothing, true or false, a number, or the text itself."""
    if text in _NOTHING:
        return None
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _REAL.fullmatch(text):
        return float(text)
    if _SPECIAL.fullmatch(text):
        return float(text.replace(".", ""))
    return text


class _Builder:
    """Collects parser events into dicts, lists and scalars."""

    def __init__(self, source: str, numbered: bool):
        self.source, self.numbered = source, numbered
        self.documents = 0
        self.root: Any = None
        self.places: dict[Keys, str] = {}
        self._open: list[Any] = []  # the containers around the next node
        self._path: list[str | int | None] = []  # and the key in each; None: a key comes next

    def place(self, line: int) -> str:
        return f"{self.source}:{line + 1}" if self.numbered else self.source

    def take(self, event: Any) -> None:
        kind = type(event).__name__
        line = event.start_mark.line
        if getattr(event, "anchor", None) is not None:
            raise self._error(
                line,
                f'anchors and aliases ("{str(event.anchor)[:20]}") are not allowed; write the value out',
            )
        if getattr(event, "tag", None) is not None and kind != "DocumentStartEvent":
            raise self._error(
                line, f'the tag "{str(event.tag)[:30]}" is not allowed; write the plain value'
            )
        if kind == "DocumentStartEvent":
            self._document(line)
        elif kind == "ScalarEvent":
            self._scalar(event, line)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._enter({} if kind[0] == "M" else [], line)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._open.pop()
            self._path.pop()
            self._done()

    def _document(self, line: int) -> None:
        self.documents += 1
        if self.documents > 1:
            raise self._error(line, "a second document starts; one file holds one scenario")

    def _scalar(self, event: Any, line: int) -> None:
        if self._expects_key():
            self._key(event.value, line)
        else:
            self._add(scalar(event.value) if event.implicit[0] else event.value, line)
            self._done()

    def _expects_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1], dict) and self._path[-1] is None

    def _key(self, key: str, line: int) -> None:
        if key in self._open[-1]:
            raise self._error(line, f'the key "{_one_line(key)[:40]}" stands twice; keep one')
        self._path[-1] = key
        self.places[tuple(self._path)] = self.place(line)

    def _add(self, node: Any, line: int) -> None:
        """Put a node into the container around it and note its line."""
        if not self._open:
            self.root = node
        elif isinstance(self._open[-1], list):
            self._path[-1] = len(self._open[-1])
            self._open[-1].append(node)
        else:
            self._open[-1][self._path[-1]] = node
        self.places.setdefault(tuple(self._path), self.place(line))

    def _enter(self, container: Any, line: int) -> None:
        if self._expects_key():
            raise self._error(line, "a key is a list or a mapping; keys are words")
        if len(self._open) >= MAX_DEPTH:
            raise self._error(
                line, f"nested deeper than {MAX_DEPTH} levels; a scenario needs far fewer"
            )
        self._add(container, line)
        self._open.append(container)
        self._path.append(None)

    def _done(self) -> None:
        """A value has ended; inside a mapping, a key comes next."""
        if self._open and isinstance(self._open[-1], dict):
            self._path[-1] = None

    def _error(self, line: int, problem: str) -> ScenarioError:
        return ScenarioError(f"{self.place(line)}: {problem}.")


def _decode(raw: bytes, path: Path) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        raise ScenarioError(
            f"{path}:{line}: a byte that is not UTF-8 text; save the file as UTF-8."
        ) from None


def _one_line(text: str) -> str:
    return " ".join(text.replace("\t", "\\t").split())
