"""Changes to a scenario before it is checked: schemes of the file, and ``key=value`` from the command line."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Any

from edgesim.errors import COMMAND_LINE, ScenarioError
from edgesim.scenario.yaml_locations import Keys, Marked, read_text

# A mapping here starts afresh where a scheme changes its kind, so that the old kind's keys do not linger.
_KIND = {
    ("learning", "method"): "name",
    ("learning", "partition"): "kind",
    ("network", "channel", "path_loss"): "model",
    ("network", "channel", "fading"): "kind",
    ("network", "downlink"): "mode",
}
_MISSING = object()


def parse_overrides(texts: Sequence[str]) -> list[tuple[Keys, Marked]]:
    """``a.b.c=value`` (as in Hydra) -> path and value; a number in the path is a position in a list."""
    return [_parse(text) for text in texts]


def apply(document: Marked, overrides: Sequence[tuple[Keys, Marked]]) -> Marked:
    """A copy with each override set exactly as given, in order.

    One that changes the kind of a section, such as learning.method.name, starts that section afresh, as in a scheme;
    overrides of its other keys hold wherever they stand.
    """
    changed = copy.deepcopy(document)
    for i, (path, part) in enumerate(overrides):
        if _changes_kind(changed, path, part):
            _put(changed, path[:-1], Marked({}, {(): part.place(())}))
            for earlier, value in overrides[:i]:
                if len(earlier) >= len(path) and earlier[: len(path) - 1] == path[:-1]:
                    _put(changed, earlier, value)
        _put(changed, path, part)
    return changed


def _changes_kind(document: Marked, path: Keys, part: Marked) -> bool:
    """Does this override make another kind of its section, whose old keys then mean nothing?"""
    if _KIND.get(path[:-1]) != path[-1]:
        return False
    there = _find(document.tree, path[:-1])
    kind = there.get(path[-1]) if isinstance(there, dict) else there
    return isinstance(there, dict | str) and kind != part.tree


def merge(document: Marked, patch: Marked) -> Marked:
    """A copy with a scheme's mapping laid over it; its keys may be dotted."""
    changed = copy.deepcopy(document)
    _merge(changed, patch, ())
    return changed


def _parse(text: str) -> tuple[Keys, Marked]:
    key, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[\w-]+(\.[\w-]+)*", key.strip()):
        raise ScenarioError(
            f'{COMMAND_LINE}: "{text[:60]}" is not an override; write key=value, for instance rounds=10'
        )
    if not value.strip():
        raise ScenarioError(f"{COMMAND_LINE}: {key} has no value; write {key}=value")
    try:
        part = read_text(value, COMMAND_LINE, numbered=False)
    except ScenarioError as problem:
        raise ScenarioError(
            str(problem).replace(COMMAND_LINE, f"{COMMAND_LINE}: {key}", 1)
        ) from None
    return _split(key.strip()), part


def _split(key: str) -> Keys:
    return tuple(
        int(word) if word.isdecimal() and len(word) < 9 else word for word in key.split(".")
    )


def _merge(document: Marked, patch: Marked, at: Keys) -> None:
    for key, value in patch.tree.items():
        path, part = at + _split(key), patch.under((key,))
        if not isinstance(value, dict):
            _put(document, path, part)
            continue
        if not _mergeable(path, _find(document.tree, path), value):
            _put(document, path, Marked({}, {(): part.place(())}))
        _merge(document, part, path)


def _mergeable(path: Keys, there: Any, value: dict) -> bool:
    kind = _KIND.get(path)
    return isinstance(there, dict) and (kind not in value or there.get(kind) == value[kind])


def _find(tree: Any, path: Keys) -> Any:
    for key in path:
        if not isinstance(tree, dict | list):
            return _MISSING
        try:
            tree = tree[key]
        except (KeyError, IndexError, TypeError):
            return _MISSING
    return tree


def _put(document: Marked, path: Keys, part: Marked) -> None:
    """Set one value, making the sections around it where they are missing."""
    for end in range(1, len(path)):
        _check_holder(document, path, end - 1, part)
        if _find(document.tree, path[:end]) in (_MISSING, None):
            document.put(path[:end], Marked({}, {(): part.place(())}))
    _check_holder(document, path, len(path) - 1, part)
    document.put(path, copy.deepcopy(part))


def _check_holder(document: Marked, path: Keys, depth: int, part: Marked) -> None:
    """What holds path[depth] must be a mapping, or a list with that position."""
    holder, key = _find(document.tree, path[:depth]), path[depth]
    name, full = ".".join(map(str, path[:depth])), ".".join(map(str, path))
    if isinstance(holder, list) and not (isinstance(key, int) and key < len(holder)):
        items = f"{name}.0" + (f" to {name}.{len(holder) - 1}" if len(holder) > 1 else "")
        raise ScenarioError(
            f"{part.place(())}: {full} leads into a list; write {items} for its items"
        )
    if isinstance(holder, dict) and isinstance(key, int):
        raise ScenarioError(
            f"{part.place(())}: {full} counts into {name or 'the scenario'}, which is not a list"
        )
    if not isinstance(holder, list | dict):
        raise ScenarioError(
            f"{part.place(())}: {full} cannot be set, because {name} is not a mapping; set {name} as a whole"
        )
