"""Mappings, lists and scalars from the events of a YAML parser, with the line of each."""

from __future__ import annotations

import re
from typing import Any

from edgesim.errors import ScenarioError, one_line
from edgesim.scenario.documents.document import KeyPath
from edgesim.scenario.documents.scalars import scalar

MAX_DEPTH = 20
TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels; a scenario needs far fewer"
NO_CHARACTER = "an escape that is no character; write the character itself"
_SURROGATE = re.compile("[\ud800-\udfff]")  # half a character of UTF-16


class DocumentBuilder:
    """Builds mappings, lists and scalars from the events of the parser.

    Without recursion, so that no nesting is too deep to be refused; aliases are refused at their
    event, so that a file of aliases of aliases costs nothing.
    """

    def __init__(self, source: str, numbered: bool):
        self.source, self.numbered = source, numbered
        self.documents = 0
        self.root: Any = None
        self.places: dict[KeyPath, str] = {}
        self._open: list[Any] = []  # the containers around the next node
        self._path: list[Any] = []  # and the key in each; None: a key comes next
        self._braces: list[bool] = []  # whether each stands between braces or brackets

    def line_place(self, line: int) -> str:
        return f"{self.source}:{line + 1}" if self.numbered else self.source

    def add(self, event: Any) -> None:
        """The next event of the parser."""
        kind, line = type(event).__name__, event.start_mark.line
        if getattr(event, "anchor", None) is not None:
            shown = f'anchors and aliases ("{str(event.anchor)[:20]}")'
            raise self._error(line, f"{shown} are not allowed; write the value out")
        if getattr(event, "tag", None) is not None and kind != "DocumentStartEvent":
            shown = f'the tag "{str(event.tag)[:30]}"'
            raise self._error(line, f"{shown} is not allowed; write the plain value")
        if kind == "DocumentStartEvent":
            self.documents += 1
            if self.documents > 1:
                raise self._error(line, "a second document starts; one file holds one scenario")
        elif kind == "ScalarEvent" and _SURROGATE.search(event.value):
            raise self._error(line, NO_CHARACTER)
        elif kind == "ScalarEvent" and self._expects_key():
            self._add_key(event.value, line)
        elif kind == "ScalarEvent":
            value = scalar(event.value) if event.implicit[0] else event.value
            if not event.value and event.implicit[0]:
                self._refuse_decimal_comma(line)
            self._add_node(value, line)
            self._end_value()
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._open_container({} if kind == "MappingStartEvent" else [], line)
            self._braces.append(event.flow_style)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._open.pop()
            self._path.pop()
            self._braces.pop()
            self._end_value()

    def _expects_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1], dict) and self._path[-1] is None

    def _add_key(self, key: str, line: int) -> None:
        if key in self._open[-1]:
            raise self._error(line, f'the key "{shown_line(key)[:40]}" stands twice; keep one')
        self._path[-1] = key
        self.places[tuple(self._path)] = self.line_place(line)

    def _add_node(self, node: Any, line: int) -> None:
        """Put a node into the container around it and note its line."""
        if not self._open:
            self.root = node
        elif isinstance(self._open[-1], list):
            self._path[-1] = len(self._open[-1])
            self._open[-1].append(node)
        else:
            self._open[-1][self._path[-1]] = node
        self.places.setdefault(tuple(self._path), self.line_place(line))

    def _refuse_decimal_comma(self, line: int) -> None:
        """Refuse ``{bandwidth: 1,5 MHz}``, which is a bandwidth of 1 and the key 5 MHz."""
        around, key = (self._open or [None])[-1], str((self._path or [""])[-1])
        if not isinstance(around, dict) or not around or not key[:1].isdigit():
            return
        if not self._braces[-1]:
            return
        name, number = next(reversed(around.items()))
        if type(number) is int:
            problem = f"{name}: {number},{key} has a comma, which ends an entry between braces"
            cure = f"write {name}: {number}.{key}"
            if key.split()[0].isdigit() and len(key.split()[0]) == 3:
                cure = "write a number without it, with a point before decimals"
            raise self._error(line, f"{problem}; {cure}")

    def _open_container(self, container: dict | list, line: int) -> None:
        if self._expects_key():
            raise self._error(line, "a key is a list or a mapping; keys are words")
        if len(self._open) >= MAX_DEPTH:
            raise self._error(line, TOO_DEEP)
        self._add_node(container, line)
        self._open.append(container)
        self._path.append(None)

    def _end_value(self) -> None:
        """A value has ended; inside a mapping, a key comes next."""
        if self._open and isinstance(self._open[-1], dict):
            self._path[-1] = None

    def _error(self, line: int, problem: str) -> ScenarioError:
        return ScenarioError(f"{self.line_place(line)}: {problem}.")


def shown_line(text: str) -> str:
    return one_line(text.replace("\t", "\\t"))
