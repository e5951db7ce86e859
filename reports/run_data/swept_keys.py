"""Which keys tell runs apart: numeric ones become axes, with the unit of the scenario's schema; others name series."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from edgesim.scenario.key_docs import all_keys
from edgesim.scenario.units import DIMENSIONS, UnitError, parse

NOT_CONFIG = frozenset({"name", "scheme", "schemes", "seed", "sweep", "provenance"})
METHOD = "learning.method.name"
NONE, UNSET = "none", "unset"
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?:\s+(\S+))?")

Flat = dict[str, str]


@dataclass(frozen=True)
class Axis:
    """A numeric key with several values: its text in the scenarios -> number in the unit of the title."""

    key: str
    name: str  # latency threshold
    unit: str  # ms; empty for plain numbers
    numbers: dict[str, float]

    @property
    def title(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @property
    def slug(self) -> str:
        """The name in a file's name."""
        return re.sub(r"\W+", "-", self.name)

    def of(self, values: Flat) -> float | None:
        """The number that a configuration has here; None where it has none."""
        return self.numbers.get(values.get(self.key, ""))


def flatten(scenario: dict[str, Any], prefix: str = "") -> Flat:
    """The scenario as {"network.bandwidth": "200 MHz", "devices.0.count": "10"}, without `NOT_CONFIG` at its top."""
    flat: Flat = {}
    for key, value in scenario.items():
        if not prefix and key in NOT_CONFIG:
            continue
        flat.update(_flat(value, f"{prefix}{key}"))
    return flat


def _flat(value: Any, key: str) -> Flat:
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        value = dict(enumerate(value))
    return (
        flatten(value, f"{key}.")
        if isinstance(value, dict)
        else {key: NONE if value is None else str(value)}
    )


def differing(flats: Sequence[Flat]) -> list[str]:
    """Keys that not all have with the same value, in the order of the scenario."""
    keys = dict.fromkeys(key for flat in flats for key in flat)
    return [key for key in keys if len({flat.get(key) for flat in flats}) > 1]


def telling(flats: Sequence[Flat]) -> tuple[list[str], list[str]]:
    """The fewest keys that tell configurations apart: (words, numbers).

    A key that follows from those before it, such as the parameters of a method from its name or the second of two keys
    that were changed together, tells nothing new and is left out.
    """
    keys = differing(flats)
    number = [key for key in keys if _is_numeric([flat.get(key) for flat in flats])]
    partial = [key for key in keys if key not in number and any(key not in flat for flat in flats)]
    word = sorted(
        (key for key in keys if key not in number and key not in partial),
        key=lambda key: key != METHOD,
    )
    chosen: list[str] = []
    for key in (*word, *partial, *number):
        if _groups(flats, [*chosen, key]) > _groups(flats, chosen):
            chosen.append(key)
    return [key for key in chosen if key not in number], [key for key in chosen if key in number]


def _groups(flats: Sequence[Flat], keys: list[str]) -> int:
    return len({tuple(flat.get(key) for key in keys) for flat in flats})


def _is_numeric(texts: Sequence[str | None]) -> bool:
    """Two numbers at least, and nothing else but "none" (no threshold)."""
    known = {text for text in texts if text != NONE}
    return len(known) > 1 and all(text is not None and _split(text) for text in known)


def _split(text: str) -> tuple[float, str] | None:
    match = _NUMBER.fullmatch(text)
    if match is None or not math.isfinite(float(match[1])):
        return None
    return float(match[1]), match[2] or ""


def short_names(keys: Collection[str]) -> Flat:
    """Key -> its last words, as many as tell it from the other keys: "bandwidth", "devices 0 count"."""
    names: Flat = {}
    for key in keys:
        parts = key.split(".")
        others = [other.split(".") for other in keys if other != key]
        ends = (
            n for n in range(1, len(parts)) if not any(parts[-n:] == other[-n:] for other in others)
        )
        n = next((n for n in ends if not parts[-n].isdigit()), len(parts))
        names[key] = " ".join(parts[-n:]).replace("_", " ")
    return names


def axis(key: str, texts: Sequence[str], name: str = "") -> Axis | None:
    """The axis of a key with these values; None where their units do not go together.

    name: of `short_names`; the last word of the key without it.
    """
    name = name or short_names([key])[key]
    split = {text: pair for text in dict.fromkeys(texts) if (pair := _split(text))}
    symbols = {symbol for _, symbol in split.values()}
    if len(symbols) == 1:
        return Axis(key, name, symbols.pop(), {text: number for text, (number, _) in split.items()})
    try:
        si_unit = unit_of(key)
        factors = {
            symbol: parse(f"1 {symbol}", si_unit)
            for symbol in symbols - DIMENSIONS[si_unit].levels.keys()
        }
        unit = max(factors, key=factors.__getitem__, default=si_unit)
        return Axis(
            key, name, unit, {text: parse(text, si_unit) / factors.get(unit, 1.0) for text in split}
        )
    except (UnitError, KeyError):
        return None


def unit_of(key: str) -> str:
    """The SI unit of a key in the schema; KeyError for a key that the schema does not know."""
    return _units()[re.sub(r"\.\d+(?=\.|$)", "", key)]


@cache
def _units() -> dict[str, str]:
    return {info.key: info.unit for info in all_keys()}


def words(flat: Flat, keys: Sequence[str], names: Flat) -> list[str]:
    """How a configuration is called by some keys: the method's plain name, "solver equal", "mu unset"."""
    return [flat[key] if key == METHOD else f"{names[key]} {flat.get(key, UNSET)}" for key in keys]
