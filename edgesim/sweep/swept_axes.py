"""The axes of a sweep: from the command line, the file's sweep block and those of its schemes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, product

from edgesim.errors import COMMAND_LINE, ScenarioError
from edgesim.results.equal_runs import TARGETS
from edgesim.scenario.documents.document import MISSING, Document, KeyPath, key_path
from edgesim.scenario.documents.layers import lay_over, layers
from edgesim.scenario.overrides import scheme_labels
from edgesim.sweep.values import (
    SweepAxis,
    SweptValue,
    axis_from_block,
    axis_from_text,
    block_seeds,
    in_one_line,
    parse_seeds,
)

METHOD_KEY = "learning.method.name"


def varies(axis: SweepAxis) -> bool:
    """Several values, or a choice among schemes? One value alone is a change of the scenario."""
    return len(axis.rows) > 1 or any(names_method(value) for value in axis.rows[0])


def names_method(value: SweptValue) -> bool:
    """Is it the name of a method, which chooses among schemes?"""
    return value.key == METHOD_KEY and not value.override.removes


def with_seeds(texts: Sequence[str], seed_text: str | None) -> Sequence[str]:
    """The texts of the command line with --seeds 0-1 among them, as seed=0,1."""
    if seed_text is None:
        return texts
    for axis in map(axis_from_text, texts):
        if "seed" in axis.keys:
            kept = "one of them" if len(axis.keys) > 1 else "--seeds"
            problem = f"{':'.join(axis.keys)} and --seeds are both given; keep {kept}"
            raise ScenarioError(f"{COMMAND_LINE}: {problem}")
    return [*texts, f"seed={','.join(map(str, parse_seeds(seed_text)))}"]


def gather(
    document: Document, texts: Sequence[str]
) -> tuple[list[SweepAxis], tuple[int, ...] | None]:
    """Axes and seeds of the command line, and those of the sweep block that it leaves."""
    given = [axis_from_text(text) for text in texts]
    block = sweep_block(document)
    seeds = block_seeds(block.subtree(("seeds",))) if "seeds" in block.tree else None
    inner = [axis_from_block(key, block.subtree((key,))) for key in block.tree if key != "seeds"]
    left = [left_by(given, axis) for axis in inner]
    for axis in (axis for axis, rest in zip(inner, left, strict=True) if rest is None):
        _refuse_torn(axis, given)
    inner = [axis for axis in left if axis is not None]
    of_the_file = {key for axis in inner for key in axis.keys}
    axes = inner + [axis for axis in given if not of_the_file & set(axis.keys)]
    _check_keys(axes)
    own = next((axis for axis in axes if "seed" in axis.keys), None)
    if own is None:
        return axes, seeds
    if seeds is not None and own in inner:
        place, name = block.place_of(("seeds",)), ":".join(own.keys)
        raise ScenarioError(f"{place}: the sweep has seeds and {name}; keep one of them")
    if len(own.keys) > 1 or own.rows[0][0].override.removes:
        return axes, None
    # seed=0,1 is another way to write seeds: [0, 1]
    texts = [row[0].text for row in own.rows]
    return [axis for axis in axes if axis is not own], parse_seeds(",".join(texts))


def axes_of_schemes(
    document: Document, texts: Sequence[str] = ()
) -> dict[str | None, list[SweepAxis]]:
    """The axes of the schemes' own sweep blocks, by label, as the command line leaves them.

    Args:
        document: the file.
        texts: ``key=values`` of the command line.
    """
    found: dict[str | None, list[SweepAxis]] = {}
    given = [axis_from_text(text) for text in texts]
    for label in filter(None, scheme_labels(document)):
        block, within = sweep_block(document, label), changes_within(given, label)
        own = [axis_from_block(key, block.subtree((key,))) for key in block.tree]
        for axis in own:
            if {"seed", "seeds"} & set(axis.keys):
                place = block.place_of((":".join(axis.keys),))
                problem = "seeds are those of all schemes; write them in the file's sweep"
                raise ScenarioError(f"{place}: {problem}")
        found[label] = [left for axis in own if (left := left_by([*given, *within], axis))]
        _check_keys(found[label])
    return found


def changes_within(given: Sequence[SweepAxis], label: str) -> list[SweepAxis]:
    """The single values that the command line gives keys of a scheme, by their keys in it."""
    start = f"schemes.{label}."
    values = (value for axis in given if not varies(axis) for value in axis.rows[0])
    inner = (replace(v, key=v.key.removeprefix(start)) for v in values if v.key.startswith(start))
    return [SweepAxis((value.key,), ((value,),)) for value in inner]


def left_by(given: Sequence[SweepAxis], axis: SweepAxis) -> SweepAxis | None:
    """What the command line leaves of an axis of the file: the rows that have its values.

    Args:
        given: the axes of the command line.
        axis: of the file.

    Returns:
        None where all keys of the axis are given, or values that no row of it has together.
    """
    keys = given_keys(given, axis)
    meeting = [each for each in given if set(each.keys) & set(axis.keys)]
    alone = {key for each in meeting for key in each.keys}  # others are parts of a section
    if keys == set(axis.keys) or keys - alone:
        return None
    asked = [_values(chain(*rows)) for rows in product(*(each.rows for each in meeting))]
    if not all(any(wanted <= _values(row) for row in axis.rows) for wanted in asked):
        return None
    rows = (row for row in axis.rows if any(wanted <= _values(row) for wanted in asked))
    return SweepAxis(axis.keys, tuple(rows))


def given_keys(given: Sequence[SweepAxis], axis: SweepAxis) -> set[str]:
    """Those keys of an axis that the command line sets or removes, also as a part of a section."""
    return {key for key in axis.keys if any(_gives(each, key) for each in given)}


def _gives(given: SweepAxis, key: str) -> bool:
    return all(any(_sets(value, key_path(key)) for value in row) for row in given.rows)


def _sets(value: SweptValue, path: KeyPath) -> bool:
    above = key_path(value.key)
    if path[: len(above)] != above:
        return False
    return value.override.removes or value.override.value.find(path[len(above) :]) is not MISSING


def _values(row: Iterable[SweptValue]) -> set[tuple[str, str]]:
    """Keys and values as YAML reads them: 1e-3 is 0.001, and 10 MHz is 10MHz."""
    return {(each.key, "".join(in_one_line(each.override.value.tree).split())) for each in row}


def _refuse_torn(axis: SweepAxis, given: Sequence[SweepAxis]) -> None:
    """Refuse values of some keys of an axis that are none of its own: the others would be lost."""
    keys = given_keys(given, axis)
    if others := [key for key in axis.keys if key not in keys]:
        known = dict.fromkeys(
            ":".join(value.text for value in row if value.key in keys) for row in axis.rows
        )
        named = ":".join(key for key in axis.keys if key in keys)
        problem = f"{named} changes in the file together with {', '.join(others)}"
        cure = f"write {' or '.join(known)}, or values of all: {':'.join(axis.keys)}=..."
        raise ScenarioError(f"{COMMAND_LINE}: {problem}; {cure}")


def refuse_parts(axes: Sequence[SweepAxis], label: str, own: Sequence[SweepAxis]) -> None:
    """Refuse axes of a scheme that have some keys of an axis of all: the others would be lost."""
    mine = {value.key: value for axis in own for value in axis.rows[0]}
    for axis in filter(varies, axes):
        taken = [key for key in axis.keys if key in mine]
        if taken and (lost := [key for key in axis.keys if key not in mine]):
            place = mine[taken[0]].override.value.place_of(())
            problem = (
                f"{label} sweeps {', '.join(taken)}, which changes in the sweep of all schemes"
            )
            cure = f"sweep {':'.join(axis.keys)} here, or leave it to that sweep"
            raise ScenarioError(f"{place}: {problem} together with {', '.join(lost)}; {cure}")


def hidden_but_for_one(
    axes: Sequence[SweepAxis], rows: Sequence[Sequence[SweptValue]], own: Sequence[SweepAxis]
) -> bool:
    """Does a scheme with axes of its own skip these rows of those of all, which it overrides?

    It takes the first row of each of them, and so stands once in the sweep.
    """
    keys = {key for axis in own for key in axis.keys}
    hidden = ((axis, row) for axis, row in zip(axes, rows, strict=True) if keys & set(axis.keys))
    return any(row is not axis.rows[0] for axis, row in hidden)


def sweep_block(document: Document, label: str | None = None) -> Document:
    """The sweep block of a file, or of one of its schemes; empty where none is."""
    holder = document if label is None else document.subtree(("schemes", label))
    joined = Document({})
    for layer in layers(holder):
        for key in layer.tree:
            word, _, swept = key.partition(".")
            at = ("sweep", swept) if swept else ("sweep",)  # a swept key is dotted as a whole
            if word == "sweep":
                own = Document({})
                own.put(at, layer.subtree((key,)))
                lay_over(joined, own)
    block = joined.subtree(("sweep",)) if joined.tree.get("sweep") else Document({})
    if not isinstance(block.tree, dict):
        example = "write for instance sweep: {rounds: [10, 20]}"
        raise ScenarioError(f"{block.place_of(())}: sweep is no mapping; {example}")
    return block


def _check_keys(axes: Sequence[SweepAxis]) -> None:
    """Refuse a key that stands on two axes, or that cannot be swept or removed."""
    values = [value for axis in axes for value in axis.rows[0]]
    places = {each.key: each.override.value.place_of(()) for each in values}
    removed = {each.key for each in values if each.override.removes}
    for key, count in Counter(each.key for each in values).items():
        if count > 1:
            problem = f"{key} is given twice; write its values in one list"
            raise ScenarioError(f"{places[key]}: {problem}")
        if key.split(".")[0] in ("sweep", "scheme", "scheme_position", "provenance", "name"):
            cure = "--out names the folder" if key == "name" else "--only chooses schemes"
            problem = f"{key} cannot be swept; {cure}"
            if key in removed:
                problem = f"~{key} cannot be given to a sweep; change the file"
            raise ScenarioError(f"{places[key]}: {problem}")
    if any(axis.keys == (TARGETS,) and varies(axis) for axis in axes):
        cure = f"write all of them in one list, as in {TARGETS}='[0.8, 0.9]'"
        problem = "cannot be swept, since targets are read of the curves of one run"
        raise ScenarioError(f"{places[TARGETS]}: {TARGETS} {problem}; {cure}")
