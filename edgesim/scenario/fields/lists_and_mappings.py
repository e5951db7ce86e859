"""Readers of lists of numbers, quantities and words, and of mappings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from edgesim.scenario.fields.quantities import PLAIN, Quantity
from edgesim.scenario.fields.words import Word
from edgesim.scenario.section import Reader, ValueRefusedError, refuse


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
        example: of such words.
    """

    what: str
    example: str = "fc1, fc2"

    @property
    def allowed(self) -> str:
        return f"a list of names of {self.what}"

    def read(self, given: object) -> tuple[str, ...]:
        words = given if isinstance(given, list) else None
        if not words or not all(isinstance(each, str | int) for each in words):
            raise refuse(given, f"; write {self.allowed}, such as [{self.example}]")
        return tuple(map(str, words))

    def write(self, value: tuple[str, ...]) -> list[str]:
        return list(value)

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string"}, "minItems": 1}
