"""Readers of quantities with units, whole numbers, rounds or times, and of true and false."""

from __future__ import annotations

import math
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
        lower = f"{'more than' if self.above else 'at least'} {self._bound(self.low)}"
        return lower if self.high == math.inf else f"{lower} and at most {self._bound(self.high)}"

    def _bound(self, value: float) -> str:
        is_plain = self.unit == PLAIN or value == 0.0
        return f"{value:g}" if is_plain else f"{value:g} {self.unit}"

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
