"""The values of a sweep, from the command line or from a file's sweep block.

Values are text until the scenario of a point reads them, so that a swept key allows exactly what an
override allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from edgesim.errors import COMMAND_LINE, ScenarioError, shorten
from edgesim.scenario.documents.document import Document
from edgesim.scenario.overrides import Override, parse_override
from edgesim.sweep.ranges import expand_range, is_range

MAX_SEEDS = 10_000
MAX_SEED = 2**63 - 1
_SEEDS = re.compile(r"\s*(\d{1,19})\s*((?:-|\.\.)\s*(\d{1,19})\s*)?")
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True)
class SweptValue:
    """One value of one key: the text that shows it, and the override that sets it."""

    key: str
    text: str
    override: Override


@dataclass(frozen=True)
class SweepAxis:
    """Keys that change together.

    Args:
        keys: dotted keys.
        rows: their values [rows][keys].
    """

    keys: tuple[str, ...]
    rows: tuple[tuple[SweptValue, ...], ...]


def axis_from_text(text: str, place: str = COMMAND_LINE) -> SweepAxis:
    """``key=v1,v2``, ``key1:key2=a1:b1,a2:b2`` for keys that change together, or ``~key``.

    Args:
        text: of the command line.
        place: where it was written, for errors.

    Raises:
        ScenarioError: what is wrong with it, in one sentence.
    """
    name, equals, values = text.partition("=")
    if not equals or not values.strip() or text.strip().startswith("~"):
        removal = parse_override(text, place)  # raises the error, unless it removes a key
        key = ".".join(map(str, removal.path))
        return SweepAxis((key,), ((SweptValue(key, "removed", removal),),))
    keys = _keys(name)
    rows = [
        [_from_text(key, value, place) for key, value in zip(keys, row, strict=True)]
        for item in split(values, ",", name, place)
        for row in _zipped(item, keys, place)
    ]
    return _axis(keys, rows, place)


def axis_from_block(name: str, part: Document) -> SweepAxis:
    """The same of a sweep block: a list of values, or a text as on the command line.

    Args:
        name: a key; keys that change together are joined by colons, their values are lists.
        part: what stands under it.

    Raises:
        ScenarioError: what is wrong with it, in one sentence.
    """
    if isinstance(part.tree, str):
        return axis_from_text(f"{name}={part.tree}", part.place_of(()))
    items = [part.subtree((i,)) for i in range(len(part.tree))] if _is_list(part) else [part]
    rows = [row for item in items for row in _listed(_keys(name), item)]
    return _axis(_keys(name), rows, part.place_of(()))


def _keys(name: str) -> tuple[str, ...]:
    return tuple(key.strip() for key in name.split(":"))


def _is_list(part: Document) -> bool:
    return isinstance(part.tree, list)


def _axis(keys: tuple[str, ...], rows: Sequence[Sequence[SweptValue]], place: str) -> SweepAxis:
    name = ":".join(keys)
    if len(set(keys)) < len(keys):
        raise ScenarioError(f"{place}: {name} names a key twice; write each once")
    if not rows:
        raise ScenarioError(f"{place}: {name} has no values; write at least one")
    seen: set[tuple[str, ...]] = set()
    for row in rows:
        texts = tuple(value.text for value in row)
        if texts in seen:
            raise ScenarioError(f"{place}: {name} has the value {':'.join(texts)} twice; keep one")
        seen.add(texts)
    return SweepAxis(keys, tuple(map(tuple, rows)))


def _from_text(key: str, text: str, place: str) -> SweptValue:
    return SweptValue(key, text, parse_override(f"{key}={text}", place))


def _from_block(key: str, part: Document) -> SweptValue:
    path = parse_override(f"{key}=0", part.place_of(())).path
    return SweptValue(key, in_one_line(part.tree), Override(path, part))


def _listed(keys: tuple[str, ...], item: Document) -> Iterator[list[SweptValue]]:
    """The rows that one item of a list stands for: one, or several where it is a range."""
    place, tree = item.place_of(()), item.tree
    if len(keys) > 1:
        if not isinstance(tree, list) or len(tree) != len(keys):
            wanted = f"a list of {len(keys)} values for {':'.join(keys)}, one for each key"
            raise ScenarioError(f"{place}: write {wanted}")
        yield [_from_block(key, item.subtree((n,))) for n, key in enumerate(keys)]
    elif isinstance(tree, str) and is_range(tree):
        for text in expand_range(tree, keys[0], place):
            yield [_from_text(keys[0], text, place)]
    else:
        yield [_from_block(keys[0], item)]


def in_one_line(tree: object) -> str:
    """A YAML value as one would write it on the command line."""
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key}: {in_one_line(value)}" for key, value in tree.items()) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(map(in_one_line, tree)) + "]"
    return "none" if tree is None else str(tree).lower() if isinstance(tree, bool) else str(tree)


def _zipped(item: str, keys: tuple[str, ...], place: str) -> list[tuple[str, ...]]:
    """The rows of one item: its parts, one for each key, each of them a value or a range."""
    name = ":".join(keys)
    parts = [item] if len(keys) == 1 else split(item, ":", name, place)
    if len(parts) != len(keys):
        wanted = ":".join(f"value{i + 1}" for i in range(len(keys)))
        problem = f"write {len(keys)} values for its {len(keys)} keys, {wanted}"
        raise ScenarioError(f"{place}: {name} has {shorten(item)}; {problem}")
    columns = [expand_range(part, key, place) for part, key in zip(parts, keys, strict=True)]
    if len({len(column) for column in columns}) > 1:
        counts = " and ".join(str(len(column)) for column in columns)
        problem = f"has ranges of {counts} values; make them equally long"
        raise ScenarioError(f"{place}: {name} {problem}")
    return list(zip(*columns, strict=True))


def split(text: str, mark: str, key: str, place: str = COMMAND_LINE) -> list[str]:
    """The pieces of a text between marks that stand in no bracket and no quotes."""
    pieces, depth, quote = [""], 0, ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"" and not pieces[-1].strip():
            quote = char
        depth += 0 if quote else (char in _OPEN) - (char in _CLOSE)
        if char == mark and depth == 0 and not quote:
            pieces.append("")
        else:
            pieces[-1] += char
    if depth or quote:
        problem = "has a bracket or a quote that does not close"
        raise ScenarioError(f"{place}: {key}={text[:60]} {problem}")
    if any(not piece.strip() for piece in pieces):
        problem = "has an empty value; write values between the marks"
        raise ScenarioError(f"{place}: {key}={text[:60]} {problem}")
    return [piece.strip() for piece in pieces]


def parse_seeds(text: str, place: str = COMMAND_LINE) -> tuple[int, ...]:
    """``0-4`` or ``0..4`` is 0, 1, 2, 3, 4, and ``0,3,7-9`` is 0, 3, 7, 8, 9."""
    found: list[int] = []
    for piece in text.split(","):
        match = _SEEDS.fullmatch(piece)
        if match is None:
            problem = f"seeds is {shorten(text)}; write such as 0-4 or 0,3,7"
            raise ScenarioError(f"{place}: {problem}")
        first, _, last = match.groups()
        low, high = int(first), int(last or first)
        if max(low, high) > MAX_SEED:
            problem = f"seeds has {piece.strip()}; seeds go from 0 to {MAX_SEED}"
            raise ScenarioError(f"{place}: {problem}")
        if high < low or high - low >= MAX_SEEDS:
            problem = f"write the smaller seed first, at most {MAX_SEEDS}"
            raise ScenarioError(f"{place}: seeds has {piece.strip()}; {problem}")
        found += range(low, high + 1)
    if len(set(found)) < len(found):
        problem = f"seeds is {shorten(text)}, which has a seed twice; keep one"
        raise ScenarioError(f"{place}: {problem}")
    return tuple(found)


def block_seeds(part: Document) -> tuple[int, ...]:
    """The seeds of a sweep block: a number, a list, or a text such as 0-4."""
    items = part.tree if isinstance(part.tree, list) else [part.tree]
    return parse_seeds(",".join(map(str, items)), part.place_of(()))
