"""Interference between the sectors of a layout: the values of ``network.interference``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from edgesim.scenario.fields import Quantity
from edgesim.scenario.section import Reader, ValueRefusedError, one_key_of, refuse
from edgesim.scenario.units import format_quantity, unit_pattern

NONE, FULL, LOAD, REFRESH, EVENTS = "none", "full", "load", "refresh", "events"
RESOLVED, MEASURED = "resolved", "measured"
WORDS = (NONE, FULL, LOAD, EVENTS, RESOLVED)
PLANNED = (FULL, LOAD, MEASURED)  # words of allocation.interference
TIME = Quantity("s", 1e-5, 1e4, above=False)  # from below a symbol to beyond any round


@dataclass(frozen=True)
class Interference:
    """Of whom a link hears.

    Args:
        mode: none; full, everybody all the time; load, for a part of the time; refresh, who was
            sending at the last multiple of ``refresh_s``; events, who is sending; resolved, who is
            sending in the same resource blocks.
        refresh_s: of the mode refresh, s.
    """

    mode: str = EVENTS
    refresh_s: float = math.inf


class InterferenceReader(Reader[Interference]):
    """A word, or {refresh: time}."""

    allowed = "none, full, load, events, resolved or {refresh: 10 ms}"

    def read(self, given: object) -> Interference:
        if isinstance(given, str) and given in WORDS:
            return Interference(given)
        if not isinstance(given, dict) or list(given) != [REFRESH]:
            raise refuse(given, f"; write {self.allowed}")
        try:
            return Interference(REFRESH, TIME.number(given[REFRESH]))
        except ValueRefusedError as problem:
            raise problem.below(REFRESH) from None

    def write(self, value: Any) -> Any:
        if value is None:
            return None
        if value.mode == REFRESH:
            return {REFRESH: format_quantity(value.refresh_s, "s")}
        return value.mode

    def json_schema(self) -> dict[str, Any]:
        refresh = one_key_of({REFRESH: {"type": "string", "pattern": unit_pattern("s")}})
        return {"anyOf": [{"enum": list(WORDS)}, *refresh], "description": self.allowed}
