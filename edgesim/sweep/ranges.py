"""Ranges of values as texts: equal steps and equal ratios, with the unit that they were written with."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation

from edgesim.errors import COMMAND_LINE, ScenarioError, shorten
from edgesim.scenario.units import DIMENSIONS, NUMBER, PREFIXES

MOST = 10_000  # values of a range
_CALL = re.compile(r"(range|log)\s*\((.*)\)")
_QUANTITY = re.compile(rf"({NUMBER})(\s*)(.*)")


def is_range(text: str) -> bool:
    return _CALL.fullmatch(text.strip()) is not None


def expanded(text: str, key: str) -> list[str]:
    """``range(15ms,30ms,5ms)`` -> 15ms, 20ms, 25ms, 30ms;  ``log(1MHz,1GHz,4)`` -> 1MHz, 10MHz, 100MHz, 1000MHz."""
    call = _CALL.fullmatch(text.strip())
    if call is None:
        return [text]
    kind, arguments = call[1], [part.strip() for part in call[2].split(",")]
    if len(arguments) != 3:
        example = {"range": "range(15ms,30ms,5ms)", "log": "log(1MHz,1GHz,4)"}[kind]
        raise ScenarioError(
            f"{COMMAND_LINE}: {key} has {text}; {kind} takes three numbers, such as {example}"
        )
    values: Callable = _steps if kind == "range" else _powers
    return values(
        *arguments, lambda problem: ScenarioError(f"{COMMAND_LINE}: {key} has {text}{problem}")
    )


def _steps(first: str, last: str, step: str, error: Callable[[str], ScenarioError]) -> list[str]:
    """Equal steps, both ends included. Counted, not summed up, so that no rounding error grows."""
    (a, b, d), unit = _numbers((first, last, step), error)
    if d == 0 or (b - a) / d < 0:
        raise error(f", whose step {step} does not lead from {first} to {last}; write another step")
    count = (b - a) / d
    if count > MOST:
        raise error(f", which has {int(count)} values; allowed are {MOST}")
    if count != count.to_integral_value():
        reached = _written(a + int(count) * d, unit)
        raise error(
            f", whose last step ends at {reached}; write an end that the steps meet, such as {reached}"
        )
    return [_written(a + i * d, unit) for i in range(int(count) + 1)]


def _powers(first: str, last: str, count: str, error: Callable[[str], ScenarioError]) -> list[str]:
    """Equal ratios, both ends included, rounded to 12 digits."""
    (a, b), unit = _numbers((first, last), error)
    if not re.fullmatch(r"\d{1,9}", count) or not 2 <= int(count) <= MOST:
        raise error(f"; its third number says how many values, from 2 to {MOST}")
    if a <= 0 or b <= 0 or unit.strip().startswith("dB"):
        raise error(
            "; log needs two numbers above 0 and no decibel; write range for steps in decibel"
        )
    ratio, n = float(b / a), int(count) - 1
    inner = [Decimal(f"{float(a) * ratio ** (i / n):.12g}") for i in range(1, n)]
    return [_written(value, unit) for value in (a, *inner, b)]


def _numbers(
    texts: Sequence[str], error: Callable[[str], ScenarioError]
) -> tuple[list[Decimal], str]:
    """The numbers in the unit of the first."""
    found = [_QUANTITY.fullmatch(text) for text in texts]
    wrong = next((text for text, one in zip(texts, found, strict=True) if one is None), None)
    if wrong is not None:
        raise error(f", where {shorten(wrong)} is no number; write such as range(15ms,30ms,5ms)")
    (_, space, unit), numbers = found[0].groups(), []
    for one in found:
        try:
            numbers.append(Decimal(one[1]).scaleb(_shift(one[3], unit)))
        except (KeyError, InvalidOperation):
            raise error(
                f", where {one[0]} is not in {unit or 'plain numbers'}; write all with the same unit"
            ) from None
    return numbers, space + unit


def _shift(symbol: str, wanted: str) -> int:
    """Powers of ten between two symbols of one unit; KeyError where they are of different ones."""
    if symbol == wanted:
        return 0
    for dimension in DIMENSIONS.values():
        for base in dimension.prefixed:
            ends = [one.removesuffix(base) for one in (symbol, wanted) if one.endswith(base)]
            if len(ends) == 2 and all(end in PREFIXES for end in ends):
                return PREFIXES[ends[0]] - PREFIXES[ends[1]]
    raise KeyError(symbol)


def _written(number: Decimal, unit: str) -> str:
    text = f"{number.normalize():f}" if -9 < number.adjusted() < 15 else str(number.normalize())
    return f"{text}{unit}"
