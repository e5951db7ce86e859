"""Text whose numbers stay in one line with their units."""

from __future__ import annotations

import re

from edgesim.scenario.units import DIMENSIONS, PREFIXES

NO_BREAK = "\N{NO-BREAK SPACE}"


def _blank_before_unit() -> re.Pattern[str]:
    symbols = {"%"}
    for dimension in DIMENSIONS.values():
        symbols |= {f"{prefix}{unit}" for prefix in PREFIXES for unit in dimension.prefixed}
        symbols |= {*dimension.plain, *dimension.levels}
    units = "|".join(re.escape(symbol) for symbol in sorted(symbols))
    return re.compile(rf"(?<=\d) (?=(?:{units})(?![\w/]))")


BLANK_BEFORE_UNIT = _blank_before_unit()


def unbroken(text: str, blank: str = NO_BREAK) -> str:
    """The text with another blank between each number and its unit: "10 MHz", "-110 dBm/Hz".

    Args:
        text: of any length.
        blank: at which no line is broken.
    """
    return BLANK_BEFORE_UNIT.sub(blank, text)
