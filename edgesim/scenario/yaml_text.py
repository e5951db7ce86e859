"""YAML as plain data that knows the line of every value, and back; refuses what no scenario needs.

Anchors, aliases, tags, several documents, duplicate keys, deep nesting and large files are errors:
a scenario is read by people.
"""

from __future__ import annotations

import re
from os.path import isdir
from pathlib import Path
from typing import Any

import yaml

from edgesim.errors import ScenarioError, one_line, shorten
from edgesim.scenario.document import Document, KeyPath
from fl.regular_files import FileTooLargeError, read_regular

MAX_BYTES = 256 * 1024
MAX_RESOLVED_BYTES = 4 << 20  # of scenario.yaml in a run's folder, where traces are written out
MAX_DEPTH = 20
TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels; a scenario needs far fewer"
MAX_DIGITS = 4000  # of a whole number that is read in full; Python's int() refuses more than 4300
LARGE = "put long lists into a file and name it by {trace: file.csv}"
NO_CHARACTER = "an escape that is no character; write the character itself"
CLOSE = "close it, or quote a text that holds a bracket or a colon"
COLON = (
    "a key has a colon and a blank, also in the line before, and begins in the column of the keys "
    "beside it; quote a text that holds a colon"
)
_PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's, 13 times faster, where it is
_SURROGATE = re.compile("[\ud800-\udfff]")  # half a character of UTF-16
_INTEGER = re.compile(r"([-+]?)0*([0-9]+)")
_REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NOTHING = {"", "~", "null", "Null", "NULL"}
_TAG = "tag:yaml.org,2002:"
_TAGS = {type(None): "null", bool: "bool", int: "int", float: "float", str: "str"}
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
    builder = _DocumentBuilder(source, numbered)
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
    return f"not valid YAML ({_one_line(problem)}){hint}"


def scalar(text: str) -> str | int | float | bool | None:
    """What an unquoted YAML 1.2 word means: nothing, true or false, a number, or text."""
    if text in _NOTHING:
        return None
    if text in _WORDS:
        return _WORDS[text]
    if whole := _INTEGER.fullmatch(text):
        # no key allows a number of so many digits, and errors show the first of them alone
        return int(whole[1] + whole[2][:MAX_DIGITS])
    if _REAL.fullmatch(text):
        return float(text)
    if _SPECIAL.fullmatch(text):
        return float(text.replace(".", ""))
    return text


def write_text(content: dict[str, Any]) -> str:
    """A mapping of plain data as YAML 1.2, one key a line, in its own order and without aliases."""
    return yaml.dump(
        content,
        Dumper=_Writer,
        default_flow_style=False,
        width=10**6,
        sort_keys=False,
        allow_unicode=True,
    )


class _DocumentBuilder:
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
            raise self._error(line, f'the key "{_one_line(key)[:40]}" stands twice; keep one')
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


def _one_line(text: str) -> str:
    return one_line(text.replace("\t", "\\t"))


class _Writer(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Quotes exactly the words that the reader would not take for text."""

    def resolve(self, kind: type, value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            return _TAG + _TAGS[type(scalar(value))]
        return super().resolve(kind, value, implicit)

    def ignore_aliases(self, data: Any) -> bool:
        return True  # the reader refuses aliases


def _represent_float(writer: Any, value: float) -> Any:
    text = repr(value).replace("inf", ".inf").replace("nan", ".nan")
    return writer.represent_scalar(f"{_TAG}float", text)


_Writer.add_representer(float, _represent_float)
