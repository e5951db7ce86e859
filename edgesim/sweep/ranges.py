"""Ranges of values as texts: equal steps and equal ratios, in the unit they were written with."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal, DecimalException

from edgesim.errors import COMMAND_LINE, ScenarioError, shorten
from edgesim.scenario.units import DIMENSIONS, NUMBER, PREFIXES

MAX_VALUES = 10_000
_CALL = re.compile(r"(range|log)\s*\((.*)\)")
_QUANTITY = re.compile(rf"({NUMBER})(\s*)(.*)")


class _RangeError(ValueError):
    """What is wrong with a range: the sentence after its text."""


def is_range(text: str) -> bool:
    return _CALL.fullmatch(text.strip()) is not None


def expand_range(text: str, key: str, place: str = COMMAND_LINE) -> list[str]:
    """The values that a text stands for; a text that is no range stands for itself.

    ``range(15ms,30ms,5ms)`` is 15ms, 20ms, 25ms, 30ms, and ``log(1MHz,1GHz,4)`` is 1MHz, 10MHz,
    100MHz, 1000MHz.

    Args:
        text: as it was written.
        key: of the values, for the error.
        place: where it was written, for the error.

    Raises:
        ScenarioError: what is wrong with the range, in one sentence.
    """
    call = _CALL.fullmatch(text.strip())
    if call is None:
        return [text]
    kind, arguments = call[1], [part.strip() for part in call[2].split(",")]
    try:
        if len(arguments) != 3:
            example = {"range": "range(15ms,30ms,5ms)", "log": "log(1MHz,1GHz,4)"}[kind]
            raise _RangeError(f"; {kind} takes three numbers, such as {example}")
        return (_equal_steps if kind == "range" else _equal_ratios)(*arguments)
    except _RangeError as problem:
        raise ScenarioError(f"{place}: {key} has {text}{problem}") from None
    except DecimalException:
        cure = "write numbers between 1e-300 and 1e300"
        raise ScenarioError(
            f"{place}: {key} has {text}, whose numbers are too far apart; {cure}"
        ) from None


def _equal_steps(first: str, last: str, step: str) -> list[str]:
    """Both ends included. Counted, not summed up, so that no rounding error grows."""
    (a, b, d), unit = _numbers((first, last, step))
    if d == 0 or (b - a) / d < 0:
        problem = f"whose step {step} does not lead from {first} to {last}; write another step"
        raise _RangeError(f", {problem}")
    count = (b - a) / d
    if count > MAX_VALUES:
        raise _RangeError(f", which has {count:.6g} values; allowed are {MAX_VALUES}")
    if count != count.to_integral_value():
        end = _written(a + int(count) * d, unit)
        problem = f"whose last step ends at {end}; write an end that the steps meet, such as {end}"
        raise _RangeError(f", {problem}")
    return [_written(a + i * d, unit) for i in range(int(count) + 1)]


def _equal_ratios(first: str, last: str, count: str) -> list[str]:
    """Both ends included, the values between them rounded to 12 digits."""
    ends = [_QUANTITY.fullmatch(text) for text in (first, last)]
    if any(end is not None and Decimal(end[1]) == 0 for end in ends):
        raise _RangeError("; log has equal ratios, so that no end is 0; write one above 0")
    (a, b), unit = _numbers((first, last))
    if not re.fullmatch(r"\d{1,9}", count) or not 2 <= int(count) <= MAX_VALUES:
        raise _RangeError(f"; its third number says how many values, from 2 to {MAX_VALUES}")
    if a <= 0 or b <= 0 or unit.strip().startswith("dB"):
        problem = "log needs two numbers above 0 and no decibel; write range for steps in decibel"
        raise _RangeError(f"; {problem}")
    ratio, n = float(b / a), int(count) - 1
    if not all(0 < number < math.inf for number in (float(a), float(b), ratio)):
        raise DecimalException
    inner = [Decimal(f"{float(a) * ratio ** (i / n):.12g}") for i in range(1, n)]
    return [_written(value, unit) for value in (a, *inner, b)]


def _numbers(texts: Sequence[str]) -> tuple[list[Decimal], str]:
    """The numbers in the unit of the first, and that unit with the space before it."""
    found = []
    for text in texts:
        match = _QUANTITY.fullmatch(text)
        if match is None:
            problem = f"where {shorten(text)} is no number; write such as range(15ms,30ms,5ms)"
            raise _RangeError(f", {problem}")
        found.append(match)
    (_, space, unit), numbers = found[0].groups(), []
    for match in found:
        try:
            numbers.append(Decimal(match[1]).scaleb(_shift(match[3], unit)))
        except KeyError:
            wanted = unit or "plain numbers"
            problem = f"where {match[0]} is not in {wanted}; write all with the same unit"
            raise _RangeError(f", {problem}") from None
    return numbers, space + unit


def _shift(symbol: str, wanted: str) -> int:
    """Powers of ten between two symbols of one unit; KeyError where they are of different ones."""
    if symbol == wanted:
        return 0
    for dimension in DIMENSIONS.values():
        for base in dimension.prefixed:
            prefixes = [one.removesuffix(base) for one in (symbol, wanted) if one.endswith(base)]
            if len(prefixes) == 2 and all(prefix in PREFIXES for prefix in prefixes):
                return PREFIXES[prefixes[0]] - PREFIXES[prefixes[1]]
    raise KeyError(symbol)


def _written(number: Decimal, unit: str) -> str:
    text = f"{number.normalize():f}" if -9 < number.adjusted() < 15 else str(number.normalize())
    return f"{text}{unit}"
