"""How one YAML value becomes a checked SI value, and how it is written back.

A reader stands in a field's type (``Annotated[float, Quantity("Hz")]``): pydantic calls ``read``, the resolved scenario
is written by ``write``, editors get ``json_schema``, and ``edgesim explain`` prints ``allowed``. A refused value is a
PydanticCustomError that carries what was given and the rest of the sentence; complaints.py puts the place in front.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import PydanticCustomError, core_schema

from edgesim.scenario.units import DIMENSIONS, UnitError, format_quantity, parse, unit_pattern

PLAIN = "1"  # the unit of a bare number


def refuse(given: Any, rest: str, *keys: str | int) -> PydanticCustomError:
    """``<key> is <given><rest>``; ``keys`` lead from the field to the part that is wrong."""
    shown = given if isinstance(given, Shown) else shorten(given)
    return PydanticCustomError(
        "refused", "{rest}", {"given": str(shown), "rest": rest, "keys": list(keys)}
    )


def fault(rest: str, *keys: str | int) -> PydanticCustomError:
    """``<key> <rest>``, where no single value is wrong."""
    return PydanticCustomError(
        "refused", "{rest}", {"given": None, "rest": rest, "keys": list(keys)}
    )


class Shown(str):
    """Text about a value that is printed as it is."""


def shorten(given: Any) -> str:
    """A value as a sentence shows it."""
    if given is None:
        return "empty"
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, dict):
        return "a mapping"
    if isinstance(given, list | tuple):
        return "a list"
    if isinstance(given, str):
        text = " ".join(given.split())
        return f'"{text[:40]}..."' if len(text) > 43 else f'"{text}"'
    text = str(given)
    return text if len(text) <= 25 else f"{text[:20]}..."


class Reader:
    """Base of all readers: the pydantic hooks."""

    unit: str | None = None

    def read(self, given: Any, folder: Path) -> Any:
        raise NotImplementedError

    def write(self, value: Any) -> Any:
        return value

    def json_schema(self) -> dict[str, Any]:
        raise NotImplementedError

    @property
    def allowed(self) -> str:
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        def check(given: Any, info: Any) -> Any:
            return self.read(given, (info.context or {}).get("folder", Path()))

        return core_schema.with_info_plain_validator_function(check)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return self.json_schema()


@dataclass(frozen=True)
class Quantity(Reader):
    """A number with a unit (``unit`` is the SI unit of the result), or a bare number where ``unit`` is "1".

    low, high: the bounds, in SI; ``above`` leaves the lower bound itself out. none: the word ``none`` gives ``absent``.
    """

    unit: str = PLAIN
    low: float = 0.0
    high: float = math.inf
    above: bool = True
    none: bool = False
    absent: float | None = None

    def read(self, given: Any, folder: Path) -> float | None:
        if self.none and (given is None or given == "none"):
            return self.absent
        if isinstance(given, dict | list) or given is None or isinstance(given, bool):
            raise refuse(given, f"; write {self.allowed}")
        return self.number(given)

    def number(self, given: Any) -> float:
        value = self._plain(given) if self.unit == PLAIN else self._with_unit(given)
        if value < self.low or value > self.high or (self.above and value == self.low):
            raise refuse(given, f"; allowed is {self.bounds}")
        return value

    def _plain(self, given: Any) -> float:
        if isinstance(given, str):
            raise refuse(given, "; write a plain number without unit")
        try:
            value = float(given)
        except OverflowError:  # an integer beyond all floats
            value = math.inf
        return value if math.isfinite(value) else self._not_finite(given)

    def _with_unit(self, given: Any) -> float:
        if isinstance(given, float) and not math.isfinite(given):
            self._not_finite(given)
        try:
            return parse(given, self.unit)
        except UnitError as problem:
            raise refuse(Shown(problem.given), problem.rest) from None

    def _not_finite(self, given: float) -> float:
        raise refuse(given, " (not finite); write a finite number")

    def write(self, value: float | None) -> Any:
        if self.none and value == self.absent:
            return "none"
        return value if self.unit == PLAIN else format_quantity(value, self.unit)

    @property
    def bounds(self) -> str:
        def show(bound: float) -> str:
            return f"{bound:g}" if self.unit == PLAIN or bound else "0"

        if self.low == -math.inf:
            return "any finite value"
        lower = f"{'more than' if self.above else 'at least'} {show(self.low)}"
        return lower if self.high == math.inf else f"{lower} and at most {show(self.high)}"

    @property
    def allowed(self) -> str:
        kind = "a number" if self.unit == PLAIN else f"{DIMENSIONS[self.unit].meaning} with unit"
        return f"{kind}, {self.bounds}" + (", or none" if self.none else "")

    def json_schema(self) -> dict[str, Any]:
        if self.unit == PLAIN:
            return {"type": "number", "description": self.allowed}
        pattern = {
            "type": "string",
            "pattern": unit_pattern(self.unit),
            "description": self.allowed,
        }
        return {"anyOf": [pattern, {"enum": ["none", None]}]} if self.none else pattern


@dataclass(frozen=True)
class Whole(Reader):
    """An integer between bounds."""

    low: int = 1
    high: int = 10**9
    none: bool = False

    def read(self, given: Any, folder: Path) -> int | None:
        if self.none and (given is None or given == "none"):
            return None
        if (
            isinstance(given, bool)
            or not isinstance(given, int)
            or not self.low <= given <= self.high
        ):
            raise refuse(given, f"; write {self.allowed}")
        return given

    def write(self, value: int | None) -> Any:
        return "none" if value is None else value

    @property
    def allowed(self) -> str:
        return f"a whole number from {self.low} to {self.high}" + (", or none" if self.none else "")

    def json_schema(self) -> dict[str, Any]:
        number = {"type": "integer", "minimum": self.low, "maximum": self.high}
        return {"anyOf": [number, {"enum": ["none", None]}]} if self.none else number


@dataclass(frozen=True)
class Flag(Reader):
    """true or false."""

    allowed = "true or false"

    def read(self, given: Any, folder: Path) -> bool:
        if not isinstance(given, bool):
            raise refuse(given, f"; write {self.allowed}")
        return given

    def json_schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Word(Reader):
    """One line of text; ``options`` lists the only words allowed, ``pattern`` what else it must look like."""

    options: Sequence[str] = ()
    pattern: str = ""
    looks: str = "a word"

    def read(self, given: Any, folder: Path) -> str:
        if self.options and given not in self.options:
            near = difflib.get_close_matches(str(given), self.options, n=1)
            raise refuse(
                given, f"; did you mean {near[0]}?" if near else f"; allowed is {self.allowed}"
            )
        if not isinstance(given, str) or not given.strip() or "\n" in given or "\x00" in given:
            raise refuse(
                given,
                f"; write {self.looks}" + (" in quotes" if isinstance(given, int | float) else ""),
            )
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


@dataclass(frozen=True)
class Anything(Reader):
    """Any YAML value of one type, looked into elsewhere."""

    kind: type

    allowed = "a mapping"

    def read(self, given: Any, folder: Path) -> Any:
        if not isinstance(given, self.kind):
            raise refuse(given, f"; write {self.allowed}")
        return given

    def json_schema(self) -> dict[str, Any]:
        return {"type": "object"}
