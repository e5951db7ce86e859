"""Numbers as texts: fixed decimals, significant figures, shares in percent, means of counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

THIN = "\N{THIN SPACE}"


@dataclass(frozen=True)
class NumberFormat:
    """How numbers are shown: times a scale, as a text."""

    scale: float
    text: Callable[[float], str]

    def __call__(self, value: float) -> str:
        return self.text(value * self.scale)


def decimals(n: int, scale: float = 1.0) -> NumberFormat:
    """Fixed decimals after scaling, e.g. decimals(1, 1e3) shows seconds as milliseconds."""
    return NumberFormat(scale, lambda value: f"{value:.{n}f}")


def percent_of_rare() -> NumberFormat:
    """Shares in percent with one decimal, below 0.1 % with one figure: rare is not never, and
    nearly all are not all.
    """

    def show(value: float) -> str:
        if 0 < value < 0.1:
            return significant(1)(value)
        text = f"{value:.1f}"
        if text == "100.0" and value < 100 * (1 - 1e-12):
            text = f"{value:.{-math.floor(math.log10(100 - value))}f}"
        return text

    return NumberFormat(100, show)


def shortest(scale: float = 1.0) -> NumberFormat:
    """As many decimals as the number has, for what a scenario gives: 80, 35.4."""
    return NumberFormat(scale, lambda value: f"{value:g}")


def significant(n: int, scale: float = 1.0) -> NumberFormat:
    """n significant figures, thousands apart, no exponent between 1e-4 and 1e9."""

    def show(value: float) -> str:
        value = float(f"{value:.{n - 1}e}")
        if value == 0:
            return "0"
        if not 1e-4 <= abs(value) < 1e9:
            return f"{value:.{n - 1}e}"
        places = max(0, n - 1 - math.floor(math.log10(abs(value))))
        return f"{value:,.{places}f}".replace(",", THIN)

    return NumberFormat(scale, show)


def half_interval(half: float, places: int) -> str:
    """Half of an interval with so many decimals, with one figure where these are all zero."""
    text = f"{half:,.{places}f}"
    return text.replace(",", THIN) if float(text.replace(",", "")) else significant(1)(half)


def _mean_count(value: float) -> str:
    is_whole = math.isclose(value, round(value), rel_tol=1e-12, abs_tol=1e-12)
    if not is_whole and abs(value) < 0.1:
        return significant(1)(value)
    return f"{value:,.{0 if is_whole else 1}f}".replace(",", THIN)


# whole numbers as such, thousands apart, and what a mean over seeds divides with one decimal
MEAN_COUNT = NumberFormat(1.0, _mean_count)
