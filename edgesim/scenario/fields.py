"""Readers of single values: quantities with units, whole numbers, words, lists of numbers."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from edgesim.scenario.section import Reader, ValueRefusedError, refuse
from edgesim.scenario.units import DIMENSIONS, UnitError, format_quantity, parse, unit_pattern

PLAIN = "1"  # the unit of a bare number
# Magnitudes in SI units, beyond all physics; products of several stay within a double.
LEAST, LARGEST = 1e-50, 1e50


def _or_none(rule: dict[str, Any], none: bool) -> dict[str, Any]:
    return {"anyOf": [rule, {"enum": ["none", None]}]} if none else rule


@dataclass(frozen=True)
class Quantity(Reader[float | None]):
    """A number with a unit, or a bare number where the unit is "1".

    Args:
        unit: the SI unit of the result.
        low: lower bound, in SI.
        high: upper bound, in SI.
        above: is the lower bound itself left out?
        none: may ``none`` be given?
        absent: what ``none`` stands for.
    """

    unit: str = PLAIN
    low: float = 0.0
    high: float = math.inf
    above: bool = True
    none: bool = False
    absent: float | None = None

    def read(self, given: object) -> float | None:
        return self.absent if self.none and given in (None, "none") else self.number(given)

    def number(self, given: object) -> float:
        """`read` where ``none`` is not allowed."""
        if given is None or not isinstance(given, str | int | float) or isinstance(given, bool):
            raise refuse(given, f"; write {self.allowed}")
        value = self._plain(given) if self.unit == PLAIN else self._with_unit(given)
        if value < self.low or value > self.high or (self.above and value == self.low):
            raise refuse(given, f"; allowed is {self.bounds}")
        if abs(value) > LARGEST or (self.unit != "dB" and 0.0 < abs(value) < LEAST):
            unit = "" if self.unit == PLAIN else f" {self.unit}"
            raise refuse(given, f"; a value lies between {LEAST:g} and {LARGEST:g}{unit}")
        return value

    def _plain(self, given: str | int | float) -> float:
        if isinstance(given, str):
            raise refuse(given, "; write a plain number without unit")
        try:
            return _finite(float(given), given)
        except OverflowError:  # an integer beyond all floats
            return _finite(math.inf, given)

    def _with_unit(self, given: str | int | float) -> float:
        if isinstance(given, float):
            _finite(given, given)
        try:
            return parse(given, self.unit)
        except UnitError as problem:
            raise ValueRefusedError(problem.rest, problem.given) from None

    def write(self, value: float | None) -> Any:
        if value is None or (self.none and value == self.absent):
            return "none"
        return value if self.unit == PLAIN else format_quantity(value, self.unit)

    @property
    def bounds(self) -> str:
        if self.low == -math.inf:
            return "any finite value"
        lower = f"{'more than' if self.above else 'at least'} {self.low:g}"
        return lower if self.high == math.inf else f"{lower} and at most {self.high:g}"

    @property
    def allowed(self) -> str:
        kind = "a number" if self.unit == PLAIN else f"{DIMENSIONS[self.unit].meaning} with unit"
        return f"{kind}, {self.bounds}" + (", or none" if self.none else "")

    def json_schema(self) -> dict[str, Any]:
        if self.unit == PLAIN:
            return {"type": "number", "description": self.allowed}
        text = {"type": "string", "pattern": unit_pattern(self.unit), "description": self.allowed}
        return _or_none(text, self.none)


def _finite(value: float, given: object) -> float:
    if not math.isfinite(value):
        raise refuse(given, " (not finite); write a finite number")
    return value


@dataclass(frozen=True)
class WholeNumber(Reader[int | None]):
    """An integer between bounds."""

    low: int = 1
    high: int = 10**9
    none: bool = False

    def read(self, given: object) -> int | None:
        if self.none and given in (None, "none"):
            return None
        if (
            isinstance(given, int)
            and not isinstance(given, bool)
            and self.low <= given <= self.high
        ):
            return given
        raise refuse(given, f"; write {self.allowed}")

    @property
    def allowed(self) -> str:
        return f"a whole number from {self.low} to {self.high}" + (", or none" if self.none else "")

    def json_schema(self) -> dict[str, Any]:
        number = {"type": "integer", "minimum": self.low, "maximum": self.high}
        return _or_none(number, self.none)


class RoundsOrTime(Reader[int | float]):
    """A whole number of rounds, or a simulated time: an int, or a float in s."""

    allowed = f"{WholeNumber().allowed} (rounds), or a time such as 60 s"

    def read(self, given: object) -> int | float:
        if isinstance(given, str) and not given.strip().isdigit():
            return Quantity("s").number(given)
        found = WholeNumber().read(given) if isinstance(given, int) else None
        if found is None:
            raise refuse(given, f"; write {self.allowed}")
        return found

    def write(self, value: int | float) -> Any:
        return value if isinstance(value, int) else Quantity("s").write(value)

    def json_schema(self) -> dict[str, Any]:
        return {"anyOf": [WholeNumber().json_schema(), Quantity("s").json_schema()]}


class Boolean(Reader[bool]):
    """true or false."""

    allowed = "true or false"

    def read(self, given: object) -> bool:
        if not isinstance(given, bool):
            raise refuse(given, f"; write {self.allowed}")
        return given

    def json_schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Word(Reader[str]):
    """One line of text.

    Args:
        options: the only words allowed; empty: any.
        pattern: regular expression that the word must match.
        looks: what the word is, as a part of a sentence.
    """

    options: Sequence[str] = ()
    pattern: str = ""
    looks: str = "a word"

    def read(self, given: object) -> str:
        if self.options and given not in self.options:
            near = difflib.get_close_matches(str(given), self.options, n=1)
            hint = f"did you mean {near[0]}?" if near else f"allowed is {self.allowed}"
            raise refuse(given, f"; {hint}")
        if not isinstance(given, str) or not given.strip() or "\n" in given or "\x00" in given:
            quotes = " in quotes" if isinstance(given, int | float) else ""
            raise refuse(given, f"; write {self.looks}{quotes}")
        if self.pattern and not self.matches(given):
            raise refuse(given, f"; write {self.looks}")
        return given

    def matches(self, given: str) -> bool:
        return re.fullmatch(self.pattern, given) is not None

    @property
    def allowed(self) -> str:
        return " or ".join(self.options) or self.looks

    def json_schema(self) -> dict[str, Any]:
        return {"enum": list(self.options)} if self.options else {"type": "string", "minLength": 1}


NAME = Word(
    pattern=r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}",
    looks="a short name of letters, digits, dot, _ and -",
)
LABEL = Word(
    pattern=r"[A-Za-z0-9_]([A-Za-z0-9._ -]{0,98}[A-Za-z0-9._-])?",
    looks="letters, digits, blank, dot, _ and -",
)


class AnyMapping(Reader[dict[str, Any]]):
    """A mapping whose keys are checked elsewhere."""

    allowed = "a mapping"

    def read(self, given: object) -> dict[str, Any]:
        if not isinstance(given, dict):
            raise refuse(given, f"; write {self.allowed}")
        return given

    def json_schema(self) -> dict[str, Any]:
        return {"type": "object"}


@dataclass(frozen=True)
class WordMapping(Reader[dict[str, str]]):
    """A mapping from any label to one of some words."""

    options: Sequence[str]

    def read(self, given: object) -> dict[str, str]:
        if not isinstance(given, dict) or not given:
            raise refuse(given, f"; write {self.allowed}")
        for label, word in given.items():
            try:
                Word(self.options).read(word)
            except ValueRefusedError as error:
                raise error.below(str(label)) from None
        return {str(label): word for label, word in given.items()}

    @property
    def allowed(self) -> str:
        return f"a mapping from labels to {', '.join(self.options)}"

    def json_schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": {"enum": list(self.options)}}


@dataclass(frozen=True)
class NumberList(Reader[tuple[float, ...]]):
    """A list of plain numbers from 0 to 1.

    Args:
        what: the numbers, as a part of a sentence.
        closed: may 0 and 1 themselves be given? The list then has at least one number.
    """

    what: str
    closed: bool = False

    @property
    def bounds(self) -> str:
        return "at least 0 and at most 1" if self.closed else "more than 0 and less than 1"

    @property
    def allowed(self) -> str:
        return f"a list of {self.what}, each {self.bounds}"

    def read(self, given: object) -> tuple[float, ...]:
        if not isinstance(given, list):
            raise refuse(given, "; write a list such as [0.8, 0.9]")
        if self.closed and not given:
            raise ValueRefusedError("; write at least one value", "an empty list")
        for i, item in enumerate(given):
            number = isinstance(item, int | float) and not isinstance(item, bool)
            if not (number and (0 < item < 1 or (self.closed and item in (0, 1)))):
                raise refuse(item, f"; allowed is {self.bounds}", i)
        return tuple(map(float, given))

    def write(self, value: tuple[float, ...]) -> list[float]:
        return list(value)

    def json_schema(self) -> dict[str, Any]:
        low, high = (
            ("minimum", "maximum") if self.closed else ("exclusiveMinimum", "exclusiveMaximum")
        )
        return {"type": "array", "items": {"type": "number", low: 0, high: 1}}


@dataclass(frozen=True)
class QuantityList(Reader[tuple[float, ...]]):
    """An ascending list of quantities above 0, at least one.

    Args:
        unit: the SI unit of each.
    """

    unit: str = PLAIN

    @property
    def allowed(self) -> str:
        return f"an ascending list, each {Quantity(self.unit).allowed}"

    def read(self, given: object) -> tuple[float, ...]:
        if not isinstance(given, list):
            raise refuse(given, f"; write {self.allowed}")
        if not given:
            raise ValueRefusedError("; write at least one value", "an empty list")
        numbers: list[float] = []
        for i, item in enumerate(given):
            try:
                numbers.append(Quantity(self.unit).number(item))
            except ValueRefusedError as problem:
                raise problem.below(i) from None
            if i and not numbers[i - 1] < numbers[i]:
                raise refuse(item, "; the list must ascend", i)
        return tuple(numbers)

    def write(self, value: tuple[float, ...] | None) -> Any:
        return None if value is None else [Quantity(self.unit).write(item) for item in value]

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": Quantity(self.unit).json_schema(), "minItems": 1}


@dataclass(frozen=True)
class WordList(Reader[tuple[str, ...]]):
    """A list of words, at least one.

    Args:
        what: the words, as a part of a sentence.
    """

    what: str

    @property
    def allowed(self) -> str:
        return f"a list of names of {self.what}"

    def read(self, given: object) -> tuple[str, ...]:
        words = given if isinstance(given, list) else None
        if not words or not all(isinstance(each, str | int) for each in words):
            raise refuse(given, f"; write {self.allowed}, such as [fc1, fc2]")
        return tuple(map(str, words))

    def write(self, value: tuple[str, ...]) -> list[str]:
        return list(value)

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string"}, "minItems": 1}
