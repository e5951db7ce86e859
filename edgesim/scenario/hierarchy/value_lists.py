"""Readers of a point of the plane and of a list of whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from edgesim.scenario.fields import Quantity
from edgesim.scenario.section import Reader, ValueRefusedError, refuse
from edgesim.scenario.units import format_quantity, unit_pattern

COORDINATE = Quantity("m", -1e7, 1e7, above=False)


class PointReader(Reader[tuple[float, float]]):
    """A point [x, y], two lengths."""

    unit = "m"
    allowed = "[x, y], two lengths with unit"

    def read(self, given: object) -> tuple[float, float]:
        if not isinstance(given, list | tuple) or len(given) != 2:
            raise refuse(given, "; write x and y such as [10 m, 20 m]")
        coordinates = []
        for i, each in enumerate(given):
            try:
                coordinates.append(COORDINATE.number(each))
            except ValueRefusedError as problem:
                raise problem.below(i) from None
        return coordinates[0], coordinates[1]

    def write(self, value: tuple[float, float] | None) -> Any:
        return None if value is None else [format_quantity(each, "m") for each in value]

    def json_schema(self) -> dict[str, Any]:
        length = {"type": "string", "pattern": unit_pattern("m")}
        return {"type": "array", "items": length, "minItems": 2, "maxItems": 2}


@dataclass(frozen=True)
class WholeNumberList(Reader[tuple[int, ...]]):
    """A list of whole numbers from 0 on, at least one.

    Args:
        what: the numbers, as a part of a sentence.
    """

    what: str

    @property
    def allowed(self) -> str:
        return f"a list of whole numbers from 0 on, {self.what}"

    def read(self, given: object) -> tuple[int, ...]:
        if not isinstance(given, list | tuple) or not given:
            raise refuse(given, f"; write {self.allowed}, such as [0, 0, 1]")
        for i, each in enumerate(given):
            if not isinstance(each, int) or isinstance(each, bool) or each < 0:
                raise refuse(each, "; write a whole number from 0 on", i)
        return tuple(given)

    def write(self, value: tuple[int, ...] | None) -> Any:
        return None if value is None else list(value)

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
