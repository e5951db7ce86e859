"""A scenario as plain data that knows where each part was written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from edgesim.errors import COMMAND_LINE, ScenarioError, counted, shorten

KeyPath = tuple[str | int, ...]  # of a value in a document: keys and list positions
# Sections of several kinds, and the key that names the kind. Where it changes, the section starts
# afresh, so that keys of the old kind do not linger. Keys beside which no kind was written stay.
KIND_KEYS: dict[KeyPath, str] = {
    ("learning", "method"): "name",
    ("learning", "partition"): "kind",
    ("network", "channel", "path_loss"): "model",
    ("network", "channel", "fading"): "kind",
    ("network", "downlink"): "mode",
}
ONE_KIND = (  # words whose sections have the same keys
    ("broadcast", "unicast"),
    ("uma", "umi", "rma", "inh"),
)
BELOW = -1  # in a scheme: the changes that it is laid over; keys of a file are texts
MISSING = object()


def copy_of(tree: Any) -> Any:
    """Plain data in mappings and lists of its own; scalars do not change."""
    if isinstance(tree, dict):
        return {key: copy_of(value) for key, value in tree.items()}
    return [copy_of(value) for value in tree] if isinstance(tree, list) else tree


@dataclass
class Document:
    """Plain data, and where each part of it was written.

    Args:
        tree: mappings, lists and scalars.
        places: path -> place, such as ``("network", "bandwidth") -> "cell.yaml:14"``.
    """

    tree: Any
    places: dict[KeyPath, str] = field(default_factory=dict)

    def copy(self) -> Document:
        """The same in mappings and lists of its own."""
        return Document(copy_of(self.tree), dict(self.places))

    def place_of(self, path: KeyPath) -> str:
        """Where the value at a path was written, or its nearest surrounding part."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.places:
                return self.places[path[:end]]
        return COMMAND_LINE

    def error(self, path: KeyPath, problem: str, shown: str | None = None) -> ScenarioError:
        """The one sentence about a value, which starts with its place.

        Args:
            path: of the value.
            problem: the rest of the sentence; without ``shown`` it follows the key.
            shown: the value, such as 20 in ``cell.yaml:14: network.bandwidth is 20 (no unit)``.
        """
        place, key = self.place_of(path), ".".join(map(str, path)) or "the scenario"
        verb = "=" if place == COMMAND_LINE else " is "
        value = " " if shown is None else f"{verb}{shown}"
        return ScenarioError(f"{place}: {key}{value}{problem}")

    def wrong_value(self, path: KeyPath, problem: str) -> ScenarioError:
        """`error` about the value that stands at a path, which it shows."""
        return self.error(path, problem, shorten(self.find(path)))

    def find(self, path: KeyPath) -> Any:
        """The value at a path; `MISSING` where there is none."""
        tree: Any = self.tree
        key: Any
        for key in path:
            if not isinstance(tree, dict | list):
                return MISSING
            try:
                tree = tree[key]
            except (KeyError, IndexError, TypeError):
                return MISSING
        return tree

    def subtree(self, path: KeyPath) -> Document:
        """The part at a path, which is there, as a document of its own."""
        size = len(path)
        places = {at[size:]: place for at, place in self.places.items() if at[:size] == path}
        return Document(self.find(path), places)

    def remove(self, path: KeyPath, place: str) -> None:
        """Remove a key.

        Args:
            path: of the key.
            place: where its removal is asked for, which errors name.

        Raises:
            ScenarioError: there is no such key, or it is an item of a list.
        """
        name, holder = ".".join(map(str, path)), self.find(path[:-1])
        if self.find(path) is MISSING:
            known = [".".join(str(key) for key in at if key != BELOW) for at in self.places]
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean ~{near[0]}?" if near else "; remove it from the command"
            raise ScenarioError(f"{place}: the scenario does not set {name}{hint}")
        if isinstance(holder, list):
            problem = "is an item of a list; ~ removes keys only, write the list as you want it"
            raise ScenarioError(f"{place}: {name} {problem}")
        del holder[path[-1]]
        self.places = {at: p for at, p in self.places.items() if at[: len(path)] != path}

    def put(self, path: KeyPath, part: Document) -> None:
        """Set the value at a path to a copy, making the mappings around it where none are.

        A word that stands for a section, ``method: fedprox``, becomes a mapping that names it.

        Raises:
            ScenarioError: what holds a key is neither a mapping, nor a list with that position.
        """
        self._check_holders(path, part)
        holder = self.tree
        for end, key in enumerate(path[:-1], 1):
            if (isinstance(holder, dict) and key not in holder) or holder[key] is None:
                holder[key] = {}
                self.places[path[:end]] = part.place_of(())
            elif kind := kind_of_word(path[:end], holder[key]):
                holder[key] = {kind: holder[key]}
                self.places[(*path[:end], kind)] = self.place_of(path[:end])
            holder = holder[key]
        holder[path[-1]] = copy_of(part.tree)
        for at in [at for at in self.places if at[: len(path)] == path]:
            del self.places[at]
        self.places.update({path + at: place for at, place in part.places.items()})

    def _check_holders(self, path: KeyPath, part: Document) -> None:
        for depth, key in enumerate(path):
            holder = self.find(path[:depth])
            name = ".".join(map(str, path[:depth])) or "the scenario"
            if isinstance(holder, list) and not (isinstance(key, int) and key < len(holder)):
                items = f"{name}.0" + (f" to {name}.{len(holder) - 1}" if len(holder) > 1 else "")
                problem = f"leads into a list; write {items} for its items"
                if isinstance(key, int):
                    count = counted(len(holder), "item")
                    problem = f"is not there: {name} has {count}" + f", {items}" * bool(holder)
            elif isinstance(key, int) and not isinstance(holder, list):
                problem = f"counts into {name}, which is not a list"
            elif not (
                isinstance(holder, list | dict)
                or holder in (None, MISSING)
                or kind_of_word(path[:depth], holder)
            ):
                problem = f"cannot be set, because {name} is not a mapping; set {name} as a whole"
            else:
                continue
            raise ScenarioError(f"{part.place_of(())}: {'.'.join(map(str, path))} {problem}")


def key_path(key: str) -> KeyPath:
    """``devices.0.count`` -> ("devices", 0, "count")."""
    return tuple(
        int(word) if re.fullmatch(r"0|[1-9]\d{0,7}", word, re.ASCII) else word
        for word in key.split(".")
    )


def kind_of_word(path: KeyPath, value: Any) -> str | None:
    """The key of a kind, for which a word stands where its section is meant; else None."""
    return KIND_KEYS.get(path) if isinstance(value, str) else None
