"""The scenario keys in which runs differ.

Keys of numbers become the axes of figures, with the unit of the scenario's schema; keys of words
(a method, a solver) name series.
"""

from __future__ import annotations

import ast
import hashlib
import math
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from edgesim.results.flat_scenario import (
    NONE,
    FlatScenario,
    chosen_keys,
    possible_units,
    usual_level,
)
from edgesim.scenario.units import DIMENSIONS, UnitError, in_unit, parse

METHOD = "learning.method.name"
UNSET = "unset"
SLUG_BYTES = 100  # the name of a file has at most 255
NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?:\s+(\S+))?")


@dataclass(frozen=True)
class SweptKey:
    """A key with several numbers, as the axis of a figure.

    key: "budget.latency_threshold".     name: "latency threshold".
    unit: "ms"; empty for plain numbers.     numbers: text in a scenario -> number in that unit.
    tied: names of keys that change along with it, which the axis then names.
    """

    key: str
    name: str
    unit: str
    numbers: dict[str, float]
    tied: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        title = f"{self.name} ({self.unit})" if self.unit else self.name
        return f"{title}, with {', '.join(self.tied)}" if self.tied else title

    @property
    def column(self) -> str:
        """The header of a CSV: "budget.latency_threshold (ms)"."""
        return f"{self.key} ({self.unit})" if self.unit else self.key

    @property
    def slug(self) -> str:
        """The name as part of a file's name; of a long one the beginning and a digest."""
        slug = re.sub(r"\W+", "-", self.name)
        if len(encoded := slug.encode()) <= SLUG_BYTES:
            return slug
        digest = hashlib.sha256(encoded).hexdigest()[:8]
        return f"{encoded[:SLUG_BYTES].decode(errors='ignore')}-{digest}"

    def of(self, values: FlatScenario) -> float | None:
        """The number that a scenario has here; None where it has none."""
        return self.numbers.get(values.get(self.key, ""))

    def value_in(self, values: FlatScenario) -> float | str | None:
        """The number, or the text of what is none, such as "none"; None without the key."""
        text = values.get(self.key)
        return text if text is None else self.numbers.get(text, text)

    def text(self, number: float) -> str:
        """A value with name and unit: "latency threshold 15 ms"."""
        return f"{self.name} {number:g} {self.unit}".rstrip()


def swept_key(key: str, texts: Sequence[str], name: str = "") -> SweptKey | None:
    """A key with these values in scenarios; None where their units do not go together.

    name: of `short_names`; the last word of the key without it.
    """
    name = name or short_names([key])[key]
    split = {text: pair for text in dict.fromkeys(texts) if (pair := _number_and_unit(text))}
    units = {unit for _, unit in split.values()}
    for si_unit in possible_units(key):
        with suppress(UnitError, KeyError):
            values = {text: parse(text, si_unit) for text in split}
            level = usual_level(key, si_unit) if all(v > 0.0 for v in values.values()) else None
            if unit := level or (_largest(units, si_unit) if len(units) > 1 else ""):
                numbers = {text: in_unit(value, unit, si_unit) for text, value in values.items()}
                return SweptKey(key, name, unit, numbers)
    if len(units) == 1:
        return SweptKey(key, name, units.pop(), {text: pair[0] for text, pair in split.items()})
    return None


def _largest(units: set[str], si_unit: str) -> str:
    """The largest of the units that is no level."""
    linear = units - DIMENSIONS[si_unit].levels.keys()
    return max(linear, key=lambda unit: parse(f"1 {unit}", si_unit), default=si_unit)


def distinguishing_keys(
    flats: Sequence[FlatScenario],
    beside: Sequence[FlatScenario] = (),
    following: Collection[str] = (),
) -> tuple[list[str], list[str]]:
    """The keys that tell scenarios apart: (those of words, those of numbers).

    A key that follows from the words before it, such as the parameters of a method from its name,
    distinguishes nothing and is left out. Of two numbers that were changed together both stay:
    an axis along one of them would show the effect of the other, too. Numbers that make no axis,
    with those of the scenarios ``beside`` them, are words. Keys that are ``following`` from others
    are left out where these suffice.
    """
    keys = chosen_keys(flats)
    others = [key for key in keys if key not in following]
    if _groups(flats, others) == _groups(flats, keys):
        keys = others
    words = [key for key in keys_of_words(flats, beside) if key in keys]
    numbers = [key for key in keys if key not in words]
    partial = [key for key in words if any(key not in flat for flat in flats)]
    whole = sorted((key for key in words if key not in partial), key=lambda key: key != METHOD)
    chosen: list[str] = []
    for key in (*whole, *partial):
        if _groups(flats, [*chosen, key]) > _groups(flats, chosen):
            chosen.append(key)
    return chosen, [
        key for key in numbers if _groups(flats, [*chosen, key]) > _groups(flats, chosen)
    ]


def following_keys(flats: Sequence[FlatScenario], swept: Collection[str]) -> set[str]:
    """The keys in which scenarios of one sweep differ, and that follow from those it varied."""
    keys = chosen_keys(flats)
    varied = [key for key in keys if any(f"{key}.".startswith(f"{one}.") for one in swept)]
    return set(keys).difference(varied) if _groups(flats, varied) == _groups(flats, keys) else set()


def keys_of_words(flats: Sequence[FlatScenario], beside: Sequence[FlatScenario]) -> list[str]:
    """Keys in which scenarios differ and that make no axis, with those of the scenarios beside."""
    numbers = numeric_differences(flats)
    axes = {key for key in numbers if _makes_an_axis(key, (*flats, *beside))}
    return [key for key in chosen_keys(flats) if key not in axes]


def numeric_differences(flats: Sequence[FlatScenario]) -> list[str]:
    """Keys of numbers in which these scenarios differ."""
    keys = chosen_keys(flats)
    return [key for key in keys if _is_numeric([flat.get(key) for flat in flats])]


def _makes_an_axis(key: str, flats: Sequence[FlatScenario]) -> bool:
    return swept_key(key, [flat[key] for flat in flats if key in flat]) is not None


def _groups(flats: Sequence[FlatScenario], keys: list[str]) -> int:
    return len({tuple(flat.get(key) for key in keys) for flat in flats})


def _is_numeric(texts: Sequence[str | None]) -> bool:
    """Two numbers at least, and nothing else but "none" (no threshold)."""
    known = {text for text in texts if text != NONE}
    return len(known) > 1 and all(text is not None and _number_and_unit(text) for text in known)


def _number_and_unit(text: str) -> tuple[float, str] | None:
    match = NUMBER.fullmatch(text)
    if match is None or not math.isfinite(float(match[1])):
        return None
    return float(match[1]), match[2] or ""


def short_names(keys: Collection[str]) -> dict[str, str]:
    """Key -> as many of its last words as no other key has: "bandwidth", "devices 0 count"."""
    names = {}
    for key in keys:
        parts = key.split(".")
        others = [other.split(".") for other in keys if other != key]
        lengths = range(1, len(parts))
        unique = (n for n in lengths if not any(parts[-n:] == other[-n:] for other in others))
        length = next((n for n in unique if not parts[-n].isdigit()), len(parts))
        names[key] = " ".join(parts[-length:]).replace("_", " ")
    return names


def describe(flat: FlatScenario, keys: Sequence[str], names: dict[str, str]) -> list[str]:
    """The values of some keys: a method by its plain name, others as "solver equal", "mu unset"."""
    return [flat[key] if key == METHOD else f"{names[key]} {_shown(flat, key)}" for key in keys]


def _shown(flat: FlatScenario, key: str) -> str:
    """The value of a key, in the unit of its axis."""
    text = flat.get(key, UNSET)
    made = swept_key(key, [text])
    if made is None or text not in made.numbers or text.endswith(made.unit):
        return value_text(text)
    return f"{made.numbers[text]:g} {made.unit}"


def value_text(text: str) -> str:
    """A value of a scenario as people read it: the list [1, 0.5, 0.25] as "1, 0.5 and 0.25".

    Lists of lists and those of one item keep brackets, as without they might be other values.
    """
    if not text.startswith("["):
        return text
    try:
        items = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # a word that begins so
        return text
    if len(items) < 2 or any(isinstance(item, list) for item in items):
        return _item_text(items)
    *others, last = map(_item_text, items)
    return f"{', '.join(others)} and {last}"


def _item_text(item: Any) -> str:
    if isinstance(item, list):
        return f"[{', '.join(map(_item_text, item))}]"
    if item is None:
        return NONE
    return str(item).lower() if isinstance(item, bool) else str(item)
