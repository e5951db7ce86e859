"""The values of a sweep: ``15ms,20ms``, ``range(15ms,30ms,5ms)``, ``log(1MHz,1GHz,4)``, zipped keys, seeds.

Values are text until a point's scenario reads them, so that a swept key allows exactly what an override allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from edgesim.errors import COMMAND_LINE, ScenarioError, shorten
from edgesim.scenario.overrides import Override, parse_override
from edgesim.scenario.yaml_locations import Document
from edgesim.sweep.ranges import expanded, is_range

MOST_SEEDS = 10_000
_SEEDS = re.compile(r"\s*\d{1,18}\s*(-\s*\d{1,18}\s*)?")
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True)
class Value:
    """One value of one key: as it is shown, and as the override that sets it."""

    key: str
    text: str
    change: Override


@dataclass(frozen=True)
class Axis:
    """Keys that change together, and their values row by row: [rows][keys]."""

    keys: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    @property
    def name(self) -> str:
        return ":".join(self.keys)


def from_text(text: str) -> Axis:
    """An axis of the command line: ``key=v1,v2``, or ``key1:key2=a1:b1,a2:b2`` for keys that change together."""
    name, equals, values = text.partition("=")
    if not equals or not values.strip():
        parse_override(text)  # says what is wrong
    keys = tuple(key.strip() for key in name.split(":"))
    rows = [row for item in split(values, ",", name) for row in _zipped(item, keys)]
    read = [[_value(key, one) for key, one in zip(keys, row, strict=True)] for row in rows]
    return _axis(keys, read, COMMAND_LINE)


def from_block(name: str, part: Document) -> Axis:
    """An axis of a file's sweep block: a list of values, or a text as on the command line; zipped keys list lists."""
    keys, place = tuple(key.strip() for key in name.split(":")), part.place_of(())
    if isinstance(part.tree, str):
        try:
            axis = from_text(f"{name}={part.tree}")
        except ScenarioError as problem:
            raise ScenarioError(str(problem).replace(COMMAND_LINE, place, 1)) from None
        rows = [[_placed(value, place) for value in row] for row in axis.rows]
    else:
        items = part.tree if isinstance(part.tree, list) else [part.tree]
        rows = [row for i in range(len(items)) for row in _listed(keys, part, i)]
    return _axis(keys, rows, place)


def _axis(keys: tuple[str, ...], rows: Sequence[Sequence[Value]], place: str) -> Axis:
    if len(set(keys)) < len(keys):
        raise ScenarioError(f"{place}: {':'.join(keys)} names a key twice; write each once")
    if not rows:
        raise ScenarioError(f"{place}: {':'.join(keys)} has no values; write at least one")
    seen: set[tuple] = set()
    for row in rows:
        texts = tuple(value.text for value in row)
        if texts in seen:
            raise ScenarioError(
                f"{place}: {':'.join(keys)} has the value {':'.join(texts)} twice; keep one"
            )
        seen.add(texts)
    return Axis(keys, tuple(map(tuple, rows)))


def _value(key: str, text: str) -> Value:
    return Value(key, text, parse_override(f"{key}={text}"))


def _placed(value: Value, place: str) -> Value:
    path, part = value.change
    return Value(
        value.key,
        value.text,
        Override(path, Document(part.tree, dict.fromkeys(part.places, place))),
    )


def _listed(keys: tuple[str, ...], part: Document, i: int) -> Iterator[list[Value]]:
    """The rows that item i of a list stands for: one, or several where it is a range."""
    item = part.subtree((i,)) if isinstance(part.tree, list) else part
    place = item.place_of(())
    if len(keys) > 1:
        if not isinstance(item.tree, list) or len(item.tree) != len(keys):
            raise ScenarioError(
                f"{place}: write a list of {len(keys)} values for {':'.join(keys)}, one for each key"
            )
        yield [_marked(key, item.subtree((n,))) for n, key in enumerate(keys)]
    elif isinstance(item.tree, str) and is_range(item.tree):
        yield from (
            [_placed(_value(keys[0], text), place)] for text in expanded(item.tree, keys[0])
        )
    else:
        yield [_marked(keys[0], item)]


def _marked(key: str, part: Document) -> Value:
    return Value(key, shown(part.tree), Override(parse_override(f"{key}=0").path, part))


def shown(tree: Any) -> str:
    """A YAML value in one line, as one would write it on the command line."""
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key}: {shown(value)}" for key, value in tree.items()) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(map(shown, tree)) + "]"
    return "none" if tree is None else str(tree).lower() if isinstance(tree, bool) else str(tree)


def _zipped(item: str, keys: tuple[str, ...]) -> list[list[str]]:
    """The rows of one item: its parts, one for each key, each of them a value or a range."""
    parts = [item] if len(keys) == 1 else split(item, ":", ":".join(keys))
    if len(parts) != len(keys):
        example = ":".join(f"value{i + 1}" for i in range(len(keys)))
        raise ScenarioError(
            f"{COMMAND_LINE}: {':'.join(keys)} has {shorten(item)}; write {len(keys)} values for its "
            f"{len(keys)} keys, {example}"
        )
    columns = [expanded(part, key) for part, key in zip(parts, keys, strict=True)]
    if len({len(column) for column in columns}) > 1:
        counts = " and ".join(str(len(column)) for column in columns)
        raise ScenarioError(
            f"{COMMAND_LINE}: {':'.join(keys)} has ranges of {counts} values; make them equally long"
        )
    return [list(row) for row in zip(*columns, strict=True)]


def split(text: str, mark: str, key: str) -> list[str]:
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
        raise ScenarioError(
            f"{COMMAND_LINE}: {key}={text[:60]} has a bracket or a quote that does not close"
        )
    if any(not piece.strip() for piece in pieces):
        raise ScenarioError(
            f"{COMMAND_LINE}: {key}={text[:60]} has an empty value; write values between the marks"
        )
    return [piece.strip() for piece in pieces]


# --- seeds ---------------------------------------------------------------------------------------------------------


def seeds(text: str, place: str = COMMAND_LINE) -> tuple[int, ...]:
    """``0-4`` -> 0, 1, 2, 3, 4;  ``0,3,7-9`` -> 0, 3, 7, 8, 9."""
    found: list[int] = []
    for piece in str(text).split(","):
        if not _SEEDS.fullmatch(piece):
            raise ScenarioError(
                f"{place}: seeds is {shorten(str(text))}; write such as 0-4 or 0,3,7"
            )
        first, _, last = piece.partition("-")
        low, high = int(first), int(last or first)
        if high < low or high - low >= MOST_SEEDS or high >= 2**63:
            raise ScenarioError(
                f"{place}: seeds has {piece.strip()}; write the smaller seed first, at most {MOST_SEEDS}"
            )
        found += range(low, high + 1)
    if len(set(found)) < len(found):
        raise ScenarioError(
            f"{place}: seeds is {shorten(str(text))}, which has a seed twice; keep one"
        )
    return tuple(found)


def block_seeds(part: Document) -> tuple[int, ...]:
    """The seeds of a sweep block: a number, a list, or a text such as 0-4."""
    tree, place = part.tree, part.place_of(())
    items = tree if isinstance(tree, list) else [tree]
    return seeds(",".join(map(str, items)), place)
