"""Battery and modem of a device."""

from __future__ import annotations

from typing import Annotated

from pydantic import model_validator

from edgesim.scenario.fields import Quantity
from edgesim.scenario.per_device_values import Draw, constant, per_device
from edgesim.scenario.section import OURS, Section, ValueRefusedError, key, refuse
from edgesim.scenario.units import format_quantity

TR38840 = "relative power of 3GPP TR 38.840 at 1 mW a unit"


class ChargingSection(Section):
    power_w: Annotated[Draw, per_device("W", high=1e6, above=False)] = key(
        "power into the battery, by plug or harvest", "5 W"
    )
    period_s: Annotated[float | None, Quantity("s", 1.0, above=False, none=True)] = key(
        "time from one window of charging to the next; none: it is charged all the time",
        "24 h",
        None,
        f"{OURS}: harvested all the time",
    )
    from_s: Annotated[float, Quantity("s", above=False)] = key(
        "start of the first window", "22 h", 0.0, f"{OURS}: at once"
    )
    lasts_s: Annotated[float | None, Quantity("s")] = key(
        "length of a window", "8 h", None, "not set: needed with period only"
    )

    @model_validator(mode="after")
    def _one_window(self) -> ChargingSection:
        if self.period_s is None:
            for name, given in (("from", self.from_s), ("lasts", self.lasts_s)):
                if given:
                    problem = "is not read without period; write period: 24 h"
                    raise ValueRefusedError(problem, keys=[name])
        elif self.lasts_s is None:
            raise ValueRefusedError("is missing; with period write lasts: 8 h", keys=["lasts"])
        elif not self.lasts_s < self.period_s:
            problem = "; allowed is less than period, or remove both to charge all the time"
            raise refuse(format_quantity(self.lasts_s, "s"), problem, "lasts")
        return self


class BatterySection(Section):
    capacity_j: Annotated[Draw, per_device("J", 1.0)] = key(
        "energy that it holds when it is full", "15.4 Wh"
    )
    start: Annotated[Draw, per_device("1", high=1.0)] = key(
        "share of it at the start", {"uniform": [0.2, 1]}, constant(1.0), f"{OURS}: full"
    )
    resume: Annotated[float, Quantity(low=0.01, high=1.0, above=False)] = key(
        "share of it at which a device that died returns", 0.2, 0.2, OURS
    )
    charging: ChargingSection | None = key(
        "when it is charged, and how fast",
        "{power: 5 W, period: 24 h, from: 22 h, lasts: 8 h}",
        None,
        f"{OURS}: never; a device that died stays away",
    )


class RadioSection(Section):
    circuit_power_w: Annotated[float, Quantity("W", above=False)] = key(
        "power P_c of the circuits while the modem sends, beside the amplifier", "100 mW"
    )
    efficiency: Annotated[float, Quantity(high=1.0)] = key(
        "eta of the power amplifier: sending at p draws circuit_power + p / eta", 0.35
    )
    tail_s: Annotated[float, Quantity("s", above=False)] = key(
        "how long the modem listens on after its last bit (inactivity timer)",
        "100 ms",
        0.1,
        f"{OURS}: a usual inactivity timer",
    )
    tail_power_w: Annotated[float, Quantity("W", above=False)] = key(
        "power while it listens on", "100 mW", 0.1, f"{TR38840}: PDCCH only, 100"
    )
    sleep_power_w: Annotated[float, Quantity("W", above=False)] = key(
        "power while it sleeps, also beside computing", "1 mW", 1e-3, f"{TR38840}: deep sleep, 1"
    )
