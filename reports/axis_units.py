"""Units of the axes of figures, which the option `units` of a report chooses."""

from __future__ import annotations

from dataclasses import dataclass

from edgesim.scenario.units import in_unit

SI_UNITS = {"latency": "s", "time": "s", "bits": "bit", "energy": "J"}


@dataclass(frozen=True)
class AxisUnits:
    """A unit for every quantity of `SI_UNITS`.

    latency: of a round and its phases.     time: simulated, from the start on.
    bits: payload.     energy: of all devices.
    """

    latency: str = "ms"
    time: str = "s"
    bits: str = "Mbit"
    energy: str = "J"

    def axis(self, title: str, unit: str) -> tuple[float, str]:
        """What values in SI are multiplied by, and the title with the unit.

        Args:
            title: without a unit.
            unit: a quantity of `SI_UNITS`; "%" of shares, "" of plain numbers.
        """
        if unit not in SI_UNITS:
            return (100.0, f"{title} (%)") if unit == "%" else (1.0, title)
        symbol = getattr(self, unit)
        return in_unit(1.0, symbol, SI_UNITS[unit]), f"{title} ({symbol})"


USUAL_UNITS = AxisUnits()
