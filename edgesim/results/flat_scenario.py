"""Resolved scenarios as dotted keys with texts, the keys in which they differ, values in SI."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from edgesim.scenario.documented_keys import KeyInfo, all_keys
from edgesim.scenario.documents.scalars import scalar
from edgesim.scenario.units import DIMENSIONS, UnitError, parse

POSITION = "scheme_position"
NOT_CONFIG = frozenset(
    {"name", "scheme", "schemes", POSITION, "seed", "sweep", "report", "provenance"}
)
NONE = "none"
GIVEN_BY_CARRIER = {
    "network.bandwidth": "network.carrier.bandwidth",
    "network.noise": "network.carrier.noise_figure",
}

FlatScenario = dict[str, str]


def flatten(scenario: dict[str, Any], prefix: str = "") -> FlatScenario:
    """{"network.bandwidth": "200 MHz", "devices.0.count": "10"}, without top-level `NOT_CONFIG`."""
    flat: FlatScenario = {}
    for name, value in scenario.items():
        if not prefix and name in NOT_CONFIG:
            continue
        key = f"{prefix}{name}"
        if isinstance(value, list) and any(isinstance(item, dict) for item in value):
            value = dict(enumerate(value))
        if isinstance(value, dict):
            flat |= flatten(value, f"{key}.")
        else:
            flat[key] = flat_text(value)
    return flat


def flat_text(value: Any) -> str:
    """A value as `flatten` has it, which is as one would write it but for lists of words."""
    text = NONE if value is None else str(value)
    return text.lower() if isinstance(value, bool) else text


def scheme_position(scenario: dict[str, Any]) -> float:
    """The place of a run's scheme among those of its file; inf where it is not known."""
    position = scenario.get(POSITION)
    return position if type(position) is int and position >= 0 else math.inf


def scheme_places(
    runs: Iterable[tuple[str, str, dict[str, Any]]],
) -> dict[tuple[str, str], tuple[str, float, str]]:
    """What sorts schemes: by scenario, then as in its file, then by label.

    Args:
        runs: of each the name of the scenario, the label of the scheme, and scenario.yaml.

    Returns:
        (scenario, scheme) -> both, with the least place of all its runs between them: older runs
        have none.
    """
    least: dict[tuple[str, str], float] = {}
    for name, label, content in runs:
        least[name, label] = min(least.get((name, label), math.inf), scheme_position(content))
    return {(name, label): (name, place, label) for (name, label), place in least.items()}


def versions(scenario: dict[str, Any]) -> dict[str, str]:
    """What made a run: {"python": "3.11.9", "git": "abc"}, from the scenario's provenance."""
    flat = flatten(scenario.get("provenance") or {}, "provenance.")
    return {key.removeprefix("provenance."): value for key, value in flat.items()}


def differing_keys(flats: Sequence[FlatScenario]) -> list[str]:
    """Keys that not all have with the same value, in the order of the scenario."""
    keys = dict.fromkeys(key for flat in flats for key in flat)
    return [key for key in keys if len({flat.get(key) for flat in flats}) > 1]


def chosen_keys(flats: Sequence[FlatScenario]) -> list[str]:
    """`differing_keys` without those that a carrier gives: it has the key that was chosen."""
    return [key for key in differing_keys(flats) if not _is_given(key, flats)]


def _is_given(key: str, flats: Sequence[FlatScenario]) -> bool:
    source = GIVEN_BY_CARRIER.get(key)
    return source is not None and all(flat.get(source, NONE) != NONE for flat in flats)


def unit_of(key: str) -> str:
    """The SI unit of a key in the schema; KeyError for a key that the schema does not know."""
    info = _info(key)
    if info is None:
        raise KeyError(key)
    return info.unit


def possible_units(key: str) -> list[str]:
    """The SI units that values of a key may have, as noise may be a power or a density.

    The one unit "" where they have none, or the schema does not know the key (of a method).
    """
    try:
        return unit_of(key).split(" or ")
    except KeyError:
        return [""]


def usual_level(key: str, unit: str) -> str | None:
    """The decibel unit of values that are usually written in dBm, such as ``tx_power``; else None.

    Args:
        key: dotted.
        unit: one of `possible_units`.
    """
    info = _info(key)
    in_decibel = info is not None and " dBm" in info.example
    return next(iter(DIMENSIONS[unit].levels)) if in_decibel else None


@cache
def _documented() -> dict[str, KeyInfo]:
    return {info.key: info for info in all_keys()}


def _info(key: str) -> KeyInfo | None:
    """What the schema says of a key, or of one in a scheme: schemes.LABEL.rounds is rounds."""
    words = key.split(".")
    inner = (".".join(words[n:]) for n in range(2, len(words)) if words[0] == "schemes")
    known = (_documented().get(re.sub(r"\.\d+(?=\.|$)", "", each)) for each in (key, *inner))
    return next(filter(None, known), None)


def si_column(key: str, texts: Iterable[str | None]) -> tuple[list[Any], str]:
    """The values of a key as a column of one type and unit: numbers in SI, or all of them texts.

    Args:
        key: dotted, such as ``budget.latency_threshold``.
        texts: as written, such as ``15 ms``; None: not set.

    Returns:
        Numbers, with None for what is not set or ``none``, and their unit; texts as given, without
        a unit, where one is a word, or where no unit fits all (noise in dBm and in dBm/Hz).
    """
    texts = list(texts)
    given = [None if _is_none(text) else text for text in texts]
    known = [text is not None for text in given]
    for unit in possible_units(key) if any(known) else ():
        values = [None if text is None else _number(text, unit) for text in given]
        if [value is not None for value in values] == known:
            return values, unit
    # of keys that take plain numbers or quantities, as evaluate.every takes rounds or a time
    for unit in DIMENSIONS if any(known) and possible_units(key) == [""] else ():
        with suppress(UnitError):
            return [None if text is None else parse(text, unit) for text in given], unit
    return texts, ""


def _is_none(text: str | None) -> bool:
    """Not set, ``none``, or one of YAML's words for nothing, such as null and ~."""
    return text is None or text == NONE or scalar(text.strip()) is None


def _number(text: str, unit: str) -> int | float | None:
    """The number that a text means, in a unit if it has one; None where it is none."""
    try:
        return parse(text, unit)
    except (UnitError, KeyError):  # counts and ratios have no unit
        value = scalar(text.strip())
    if isinstance(value, int) and abs(value) >= 2**63:  # more than a column of integers holds
        return float(text)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
