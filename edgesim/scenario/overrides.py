"""Changes to a document before it is checked: a scheme of the file, ``key=value`` texts."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from edgesim.errors import COMMAND_LINE, ScenarioError, shorten
from edgesim.scenario.fields import LABEL
from edgesim.scenario.yaml_locations import Document, KeyPath, read_text

# Sections of several kinds, and the key that names the kind. Where it changes, the section starts
# afresh, so that keys of the old kind do not linger.
KIND_KEYS: dict[KeyPath, str] = {
    ("learning", "method"): "name",
    ("learning", "partition"): "kind",
    ("network", "channel", "path_loss"): "model",
    ("network", "channel", "fading"): "kind",
    ("network", "downlink"): "mode",
}
_KEY = re.compile(r"[\w-]+(\.[\w-]+)*|schemes(\.[\w -]+)+")  # labels may have blanks
JOINED = ("schemes", "sweep")  # mappings whose keys are names, not parts of the scenario
_MISSING = object()
REMOVED = object()  # the tree of an override that removes its key


class Override(NamedTuple):
    """A value for the key at a path; a number in the path is a position in a list.

    A value whose tree is `REMOVED` removes the key, so that its default holds.
    """

    path: KeyPath
    value: Document

    @property
    def removes(self) -> bool:
        return self.value.tree is REMOVED


def parse_override(text: str, place: str = COMMAND_LINE) -> Override:
    """``a.b.c=value``, or ``~a.b.c`` to remove a key, as in Hydra.

    Args:
        text: of the command line, or of a sweep block.
        place: where it was written.

    Raises:
        ScenarioError: the text is no override, or its value is no YAML.
    """
    key, equals, value = text.partition("=")
    removed = key.strip().startswith("~")
    if removed and equals:
        problem = f"{key.strip()} removes a key and takes no value; write {key.strip()} alone"
        raise ScenarioError(f"{place}: {problem}")
    name = key.strip().removeprefix("~")
    if not (equals or removed) or not _KEY.fullmatch(name):
        problem = "is not an override; write key=value, for instance rounds=10, or ~key"
        raise ScenarioError(f'{place}: "{text[:60]}" {problem}')
    if removed:
        return Override(key_path(name), Document(REMOVED, {(): place}))
    if not value.strip():
        raise ScenarioError(f"{place}: {key} has no value; write {key}=value")
    read = read_text(value, f"{place}: {key}", numbered=False)
    value_read = Document(read.tree, dict.fromkeys(read.places, place))
    return Override(key_path(key.strip()), value_read)


def key_path(key: str) -> KeyPath:
    """``devices.0.count`` -> ("devices", 0, "count")."""
    return tuple(
        int(word) if re.fullmatch(r"0|[1-9]\d{0,7}", word, re.ASCII) else word
        for word in key.split(".")
    )


def scheme_labels(document: Document, overrides: Sequence[Override] = ()) -> list[str | None]:
    """The labels of a file's schemes, in its order; one None where it has no schemes.

    Raises:
        ScenarioError: a label cannot name a folder, or a scheme is no mapping.
    """
    document = _with_overridden_schemes(document, overrides)
    if "schemes" not in document.tree:
        return [None]
    schemes = document.tree["schemes"]
    if not isinstance(schemes, dict) or not schemes:
        raise document.error(("schemes",), "; write a mapping of label: changes", shorten(schemes))
    folders: dict[str, str] = {}
    for label, changes in schemes.items():
        place = document.place_of(("schemes", label))
        same = folders.setdefault(str(label).replace(" ", "-"), label)
        if same != label:
            problem = f'the labels "{same}" and "{label}" would share a folder; rename one of them'
            raise ScenarioError(f"{place}: {problem}")
        if not LABEL.matches(label):
            problem = f"the label {shorten(label)} is not allowed; write {LABEL.looks}"
            raise ScenarioError(f"{place}: {problem}")
        if not isinstance(changes, dict | None):
            shown = shorten(changes)
            raise document.error(("schemes", label), "; write a mapping of changes", shown)
    return list(schemes)


def resolve(
    document: Document, overrides: Sequence[Override], label: str | None = None
) -> Document:
    """One scheme of a file with the overrides, which win over everything in the file.

    Args:
        document: the file.
        overrides: in order; those of ``schemes`` come first.
        label: of the scheme; None: the file as if it had no schemes.

    Raises:
        ScenarioError: there is no such scheme, or a key leads nowhere.
    """
    changed = _with_overridden_schemes(document, overrides)
    if label is not None:
        labels = scheme_labels(changed)
        if label not in labels:
            known = ", ".join(filter(None, labels)) or "no schemes at all"
            place = changed.place_of(("schemes",))
            raise ScenarioError(f'{place}: there is no scheme "{label}"; the file has {known}')
        patch = changed.subtree(("schemes", label))
        changed.remove(("schemes",))
        if patch.tree:
            lay_over(changed, patch)
        changed.set_subtree(("scheme",), Document(label, {(): patch.place_of(())}))
    _apply(changed, [override for override in overrides if override.path[0] != "schemes"])
    return changed


def _with_overridden_schemes(document: Document, overrides: Sequence[Override]) -> Document:
    """A copy with the overrides whose keys begin with ``schemes``."""
    changed, schemes = copy.deepcopy(document), document.tree.get("schemes")
    labels = list(schemes) if isinstance(schemes, dict) else []
    own = [override for override in overrides if override.path[0] == "schemes"]
    _apply(changed, [each._replace(path=_with_label(each.path, labels)) for each in own])
    return changed


def _with_label(path: KeyPath, labels: Sequence[str]) -> KeyPath:
    """The path of ``schemes.v1.5.rounds`` where v1.5 is a label: the longest one that fits."""
    words = [str(word) for word in path[1:]]
    for count in range(len(words), 0, -1):
        if (label := ".".join(words[:count])) in labels:
            return ("schemes", label, *path[1 + count :])
    return path


def _apply(document: Document, overrides: Sequence[Override]) -> None:
    """Set each override exactly as given, in order.

    One that changes the kind of a section, such as learning.method.name, starts that section
    afresh; overrides of its other keys hold wherever they stand.
    """
    for i, override in enumerate(overrides):
        path, part = override
        section = path[:-1]
        if override.removes:
            _remove(document, path, part.place_of(()))
            continue
        if _changes_kind(document, path, part):
            _set(document, section, Document({}, {(): part.place_of(())}))
            for earlier, value in overrides[:i]:
                below = len(earlier) >= len(path) and earlier[: len(section)] == section
                if below and value.tree is not REMOVED:
                    _set(document, earlier, value)
        _set(document, path, part)


def _changes_kind(document: Document, path: KeyPath, part: Document) -> bool:
    """Does this value make another kind of its section, whose old keys then mean nothing?"""
    if KIND_KEYS.get(path[:-1]) != path[-1]:
        return False
    there = _find(document.tree, path[:-1])
    kind = there.get(path[-1]) if isinstance(there, dict) else there
    return isinstance(there, dict | str) and kind != part.tree


def lay_over(document: Document, patch: Document) -> None:
    """Lay a mapping of changes over a document: a scheme over its file, a file over its base.

    Its keys may be dotted. The keys of ``sweep`` and the labels of ``schemes`` are kept as they
    are, and join those that the document has; a swept key leaves the axis that it had there.
    """
    for key, value in patch.tree.items():
        if key not in JOINED or not isinstance(value, dict):
            _merge(document, Document({key: value}, patch.places), ())
            continue
        document.tree[key] = document.tree.get(key) or {}
        swept = {each for axis in value for each in str(axis).split(":")}
        for axis in list(document.tree[key]) if key == "sweep" else ():
            if swept & set(str(axis).split(":")):
                document.remove((key, axis))
        for name, changes in value.items():
            part = patch.subtree((key, name))
            there = document.tree[key].get(name)
            if key == "schemes" and isinstance(there, dict) and isinstance(changes, dict):
                scheme = document.subtree((key, name))
                lay_over(scheme, part)
                part = scheme
            document.set_subtree((key, name), copy.deepcopy(part))


def _merge(document: Document, patch: Document, at: KeyPath) -> None:
    """Lay a mapping over the section at a path; its keys may be dotted."""
    for key, value in patch.tree.items():
        path, part = at + key_path(key), patch.subtree((key,))
        if not isinstance(value, dict):
            _set(document, path, part)
            continue
        there, kind = _find(document.tree, path), KIND_KEYS.get(path)
        if not isinstance(there, dict) or (kind in value and there.get(kind) != value[kind]):
            _set(document, path, Document({}, {(): part.place_of(())}))
        _merge(document, part, path)


def _remove(document: Document, path: KeyPath, place: str) -> None:
    """Remove a key that the scenario sets."""
    name = ".".join(map(str, path))
    if _find(document.tree, path) is _MISSING:
        known = [".".join(map(str, at)) for at in document.places]
        near = get_close_matches(name, known, n=1)
        hint = f"; did you mean ~{near[0]}?" if near else "; remove it from the command"
        raise ScenarioError(f"{place}: the scenario does not set {name}{hint}")
    if isinstance(path[-1], int):
        problem = "is an item of a list; ~ removes keys only, write the list as you want it"
        raise ScenarioError(f"{place}: {name} {problem}")
    document.remove(path)


def _find(tree: Any, path: KeyPath) -> Any:
    """The value at a path; _MISSING where there is none."""
    key: Any
    for key in path:
        if not isinstance(tree, dict | list):
            return _MISSING
        try:
            tree = tree[key]
        except (KeyError, IndexError, TypeError):
            return _MISSING
    return tree


def _set(document: Document, path: KeyPath, part: Document) -> None:
    """Set one value; what holds a key must be a mapping, or a list with that position."""
    for depth, key in enumerate(path):
        holder = _find(document.tree, path[:depth])
        name = ".".join(map(str, path[:depth])) or "the scenario"
        if isinstance(holder, list) and not (isinstance(key, int) and key < len(holder)):
            items = f"{name}.0" + (f" to {name}.{len(holder) - 1}" if len(holder) > 1 else "")
            problem = f"leads into a list; write {items} for its items"
        elif isinstance(key, int) and not isinstance(holder, list):
            problem = f"counts into {name}, which is not a list"
        elif not (isinstance(holder, list | dict) or holder in (None, _MISSING)):
            problem = f"cannot be set, because {name} is not a mapping; set {name} as a whole"
        else:
            continue
        raise ScenarioError(f"{part.place_of(())}: {'.'.join(map(str, path))} {problem}")
    document.set_subtree(path, copy.deepcopy(part))
