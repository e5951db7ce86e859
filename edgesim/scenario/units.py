"""Quantities with units: ``"25 ms"`` to SI, and back without losing a bit.

A small table instead of a units library: SI prefixes on a handful of units, and the levels dB, dBm
and dBW of radio engineering. Decimal arithmetic shifts the prefix, so that ``parse("25 ms", "s")``
is exactly the float ``0.025``.
"""

from __future__ import annotations

import difflib
import math
import re
from decimal import Decimal
from typing import NamedTuple

from edgesim.errors import EdgesimError

PREFIXES = {"": 0, "p": -12, "n": -9, "u": -6, "µ": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12}
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_QUANTITY = re.compile(rf"({NUMBER})\s*(\S.*)?")
_MICRO = "μ"  # Greek mu, beside the micro sign of the table


class _Dimension(NamedTuple):
    meaning: str  # "a frequency"
    example: str  # the unit proposed where none was given
    prefixed: dict[str, int]  # unit that takes SI prefixes -> factor
    plain: dict[str, int | Decimal]  # unit that does not -> factor
    levels: dict[str, int]  # decibel unit -> dB to subtract before 10^(x/10)


DIMENSIONS = {
    "Hz": _Dimension("a frequency", "MHz", {"Hz": 1}, {}, {}),
    "s": _Dimension("a time", "ms", {"s": 1}, {"min": 60, "h": 3600}, {}),
    "m": _Dimension("a length", "m", {"m": 1}, {}, {}),
    "m/s": _Dimension("a speed", "km/h", {}, {"m/s": 1, "km/h": 1 / Decimal("3.6")}, {}),
    "W": _Dimension("a power", "dBm", {"W": 1}, {}, {"dBm": 30, "dBW": 0}),
    "W/Hz": _Dimension("a power density", "dBm/Hz", {"W/Hz": 1}, {}, {"dBm/Hz": 30, "dBW/Hz": 0}),
    "J": _Dimension("an energy", "J", {"J": 1, "Wh": 3600}, {}, {}),
    "K": _Dimension("a difference of temperatures", "K", {}, {"K": 1}, {}),
    "degC": _Dimension("a temperature", "degC", {}, {"degC": 1, "°C": 1}, {}),
    "K/W": _Dimension("a thermal resistance", "K/W", {}, {"K/W": 1}, {}),
    "J/K": _Dimension("a heat capacity", "J/K", {}, {"J/K": 1}, {}),
    "bit": _Dimension("an amount of data", "Mbit", {"bit": 1, "byte": 8}, {}, {}),
    "bit/s": _Dimension("a data rate", "Mbit/s", {"bit/s": 1, "byte/s": 8}, {}, {}),
    "deg": _Dimension("an angle", "deg", {}, {"deg": 1}, {}),
    "dB": _Dimension("a ratio in decibel", "dB", {}, {"dB": 1}, {}),
}


class UnitError(EdgesimError, ValueError):
    """A value that is no quantity of the wanted kind.

    Args:
        given: the value as the sentence shows it.
        rest: the sentence after it.
    """

    def __init__(self, given: str, rest: str):
        super().__init__(f"{given}{rest}")
        self.given, self.rest = given, rest


def parse(value: str | int | float, unit: str) -> float:
    """The SI value of a quantity such as ``"200 MHz"``.

    Args:
        value: number and unit in one text; a bare number is an error.
        unit: the SI unit of the result, one of Hz, s, m, m/s, W, W/Hz, J, K, degC, K/W,
            J/K, bit, bit/s, deg, dB.

    Raises:
        UnitError: no number, no unit, a unit of another kind, or a number too large for a float.

    Example:
        >>> parse("25 ms", "s"), parse("-110 dBm", "W"), parse("2 kbyte", "bit")
        (0.025, 1e-14, 16000.0)
    """
    text = str(value).strip().replace(_MICRO, "µ")
    match = _QUANTITY.fullmatch(text)
    given = _quoted(value)
    if match is None:
        raise UnitError(
            given, f' (not a number with a unit); write for instance "{_example(20, unit)}"'
        )
    number, symbol = match.groups()
    if symbol is None:
        raise UnitError(text[:25], f' (no unit); write "{_example(number, unit)}"')
    return _finite(number, symbol, unit, given)


def in_unit(value: float, symbol: str, unit: str) -> float:
    """An SI value as a number of another unit, of which 12 digits count, nine decimals of a level.

    Example:
        >>> in_unit(0.025, "ms", "s"), in_unit(0.1, "dBm", "W"), in_unit(0.0, "dBm", "W")
        (25.0, 20.0, -inf)
    """
    if symbol not in DIMENSIONS[unit].levels:
        return float(f"{value / parse(f'1 {symbol}', unit):.12g}")
    if value <= 0.0:
        return -math.inf
    return round(10.0 * math.log10(value) + DIMENSIONS[unit].levels[symbol], 9)


def format_quantity(value: float, unit: str) -> str:
    """The shortest usual way to write an SI value; `parse` gives it back exactly.

    Example:
        >>> format_quantity(2e7, "Hz"), format_quantity(10 ** -0.2, "W")
        ('20 MHz', '28 dBm')
        >>> format_quantity(parse("3 km/h", "m/s"), "m/s")  # 0.8333333333333334 m/s
        '3 km/h'
    """
    if not math.isfinite(value):
        raise ValueError(f"{value} {unit} cannot be written; only finite values can.")
    metric = _metric(value, unit)
    if len(metric) > 8 or 0 < abs(value) < 1e-12:
        return _level(value, unit) or _other_unit(value, unit) or metric
    return metric


def unit_pattern(unit: str) -> str:
    """A regular expression for quantities of this unit, for the JSON schema."""
    dimension = DIMENSIONS[unit]
    prefixes = "|".join(prefix for prefix in PREFIXES if prefix)
    symbols = [f"(?:{prefixes})?{re.escape(symbol)}" for symbol in dimension.prefixed]
    symbols += [re.escape(symbol) for symbol in (*dimension.plain, *dimension.levels)]
    return rf"^\s*{NUMBER}\s*(?:{'|'.join(symbols)})\s*$"


def _finite(number: str, symbol: str, unit: str, given: str) -> float:
    try:
        value = _convert(Decimal(number), symbol, unit, given)
    except (OverflowError, ArithmeticError):
        value = math.inf
    if not math.isfinite(value):
        raise UnitError(given, " (too large for a computer's number); write a finite value")
    return value


def _convert(number: Decimal, symbol: str, unit: str, given: str) -> float:
    dimension = DIMENSIONS[unit]
    if symbol in dimension.levels:
        return 10.0 ** ((float(number) - dimension.levels[symbol]) / 10.0)
    if symbol in dimension.plain:
        return float(number * dimension.plain[symbol])
    for base, factor in dimension.prefixed.items():
        prefix = symbol.removesuffix(base)
        if symbol.endswith(base) and prefix in PREFIXES:
            return float(number.scaleb(PREFIXES[prefix]) * factor)
    raise UnitError(given, _wrong_unit(number, symbol, unit))


def _wrong_unit(number: Decimal, symbol: str, unit: str) -> str:
    wanted = f'{DIMENSIONS[unit].meaning} is needed, for instance "{_example(number, unit)}"'
    for name, other in DIMENSIONS.items():
        if name != unit and symbol in _symbols(name):
            return f" ({other.meaning}); {wanted}"
    lower = [s.lower() for s in _symbols(unit)]
    near = difflib.get_close_matches(symbol.lower(), lower, n=1, cutoff=0.7)
    same = [s for s in _symbols(unit) if s.lower() in near]
    hint = f"did you mean {' or '.join(same)}?" if same else wanted
    return f' (unknown unit "{symbol[:20]}"); {hint}'


def _symbols(unit: str) -> list[str]:
    dimension = DIMENSIONS[unit]
    return [
        *(p + s for s in dimension.prefixed for p in PREFIXES),
        *dimension.plain,
        *dimension.levels,
    ]


def _example(number: object, unit: str) -> str:
    """The number in the unit that it probably has: 25 ms, but 0.025 s; 20 MHz, but 20000000 Hz."""
    digits, size = str(number)[:25], abs(float(str(number)))
    in_si = size >= 1e4 or (0.0 < float(str(number)) < 1.0 and unit in ("s", "W", "W/Hz"))
    return f"{digits} {unit if in_si or not size else DIMENSIONS[unit].example}"


def _quoted(value: object) -> str:
    return f'"{value[:40]}"' if isinstance(value, str) else str(value)


def _metric(value: float, unit: str) -> str:
    number = Decimal(repr(float(value)))
    if not DIMENSIONS[unit].prefixed or number == 0:
        return f"{_plain(number)} {unit}"
    exponent = min(12, max(-12, 3 * (number.adjusted() // 3)))
    prefix = next(name for name, shift in PREFIXES.items() if shift == exponent)
    return f"{_plain(number.scaleb(-exponent))} {prefix}{unit}"


def _other_unit(value: float, unit: str) -> str | None:
    """The value in km/h, min or h, where a few digits give it back exactly."""
    for symbol, factor in DIMENSIONS[unit].plain.items():
        number = value / float(factor)
        text = f"{number:.6g} {symbol}"
        if "e" not in text and math.isfinite(number) and parse(text, unit) == value:
            return text
    return None


def _plain(number: Decimal) -> str:
    text = str(number.normalize())
    digits = f"{number.normalize():f}"
    return digits if len(digits) <= len(text) + 4 else text


def _level(value: float, unit: str) -> str | None:
    """The value in dBm (dBm/Hz), where six decimals give it back exactly."""
    for symbol, offset in DIMENSIONS[unit].levels.items():
        # no level there: zero, negative, or it would overflow on the way back
        if not 1e-300 < value < 1e300:
            return None
        text = f"{_plain(Decimal(repr(round(10.0 * math.log10(value) + offset, 6))))} {symbol}"
        if parse(text, unit) == value:
            return text
    return None
