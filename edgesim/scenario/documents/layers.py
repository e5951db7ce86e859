"""Changes laid over a document: a scheme over its file, a file over its base."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from edgesim.scenario.documents.document import (
    BELOW,
    KIND_KEYS,
    ONE_KIND,
    Document,
    KeyPath,
    key_path,
    kind_of_word,
)

JOINED = ("schemes", "sweep")  # mappings whose keys are names, not parts of the scenario


def lay_over(document: Document, patch: Document) -> None:
    """Lay a mapping of changes over a document: a scheme over its file, a file over its base.

    Its keys may be dotted. The keys of ``sweep`` and the labels of ``schemes`` are kept as they
    are, and join those that the document has; a swept key replaces the axis that it had there.

    Raises:
        ScenarioError: a key leads nowhere, or ``sweep`` or ``schemes`` joins what is no mapping.
    """
    for key, value in _kinds_first(patch.tree, ()):
        if key not in JOINED or not isinstance(value, dict):
            _merge(document, Document({key: value}, patch.places), ())
            continue
        document.tree[key] = there = document.tree.get(key) or {}
        if not isinstance(there, dict):
            raise document.wrong_value((key,), "; write a mapping")
        swept = {each for axis in value for each in str(axis).split(":")}
        for axis in list(there) if key == "sweep" else ():
            if swept & set(str(axis).split(":")):
                document.remove((key, axis), patch.place_of(()))
        for name, changes in value.items():
            part = patch.subtree((key, name))
            if key == "schemes" and isinstance(there.get(name), dict):
                if changes is None:  # a label with nothing behind it
                    continue
                if isinstance(changes, dict):
                    part = laid_above(document.subtree((key, name)), part)
            document.put((key, name), part)


def laid_above(lower: Document, upper: Document) -> Document:
    """A scheme that keeps another one `BELOW` it, as its changes count from the whole file."""
    places = {(BELOW, *at): place for at, place in lower.places.items()}
    return Document({BELOW: lower.tree, **upper.tree}, places | upper.places)


def layers(scheme: Document) -> Iterator[Document]:
    """The changes of a scheme of `laid_above` in the order in which they are laid over the file."""
    if not isinstance(scheme.tree, dict):
        return
    if BELOW in scheme.tree:
        yield from layers(scheme.subtree((BELOW,)))
    yield Document({k: v for k, v in scheme.tree.items() if k != BELOW}, scheme.places)


def _kinds_first(tree: dict[Any, Any], at: KeyPath) -> list[tuple[Any, Any]]:
    """Items of a mapping at a path; those that start a section afresh stand before its others."""

    def names_kind(key: str, value: Any, at: KeyPath = at) -> bool:
        path = at + key_path(key)
        if isinstance(value, dict):
            return any(names_kind(str(below), part, path) for below, part in value.items())
        return KIND_KEYS.get(path[:-1]) == path[-1] or kind_of_word(path, value) is not None

    return sorted(tree.items(), key=lambda item: not names_kind(str(item[0]), item[1]))


def _merge(document: Document, patch: Document, at: KeyPath) -> None:
    """Lay a mapping over the section at a path; its keys may be dotted."""
    for key, value in _kinds_first(patch.tree, at):
        path, part = at + key_path(key), patch.subtree((key,))
        if not isinstance(value, dict):
            if changes_kind(document, path, part):
                document.put(path[:-1], Document({}, {(): part.place_of(())}))
            document.put(path, part)
            continue
        there, kind = document.find(path), KIND_KEYS.get(path)
        named = {kind: there} if kind_of_word(path, there) else there
        if isinstance(there, list) and value and all(str(each)[:1].isdigit() for each in value):
            pass  # devices: {0: {...}} changes items, as devices.0 does
        elif not isinstance(named, dict) or (
            kind in value and _are_two_kinds(named.get(kind), value[kind])
        ):
            document.put(path, Document({}, {(): part.place_of(())}))
        _merge(document, part, path)


def changes_kind(document: Document, path: KeyPath, part: Document) -> bool:
    """Does this value make another kind of its section, whose old keys then mean nothing?"""
    if KIND_KEYS.get(path[:-1]) != path[-1]:
        return False
    there = document.find(path[:-1])
    kind = there.get(path[-1]) if isinstance(there, dict) else there
    return isinstance(there, dict | str) and _are_two_kinds(kind, part.tree)


def _are_two_kinds(one: Any, other: Any) -> bool:
    if one is None:
        return bool(other == "none")  # which reads no keys
    return one != other and not any(one in words and other in words for words in ONE_KIND)
