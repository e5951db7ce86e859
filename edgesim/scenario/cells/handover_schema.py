"""The section handover of a scenario: when a device that moves goes to another sector."""

from __future__ import annotations

from typing import Annotated

from pydantic import model_validator

from edgesim.scenario.fields import Quantity, WholeNumber, Word
from edgesim.scenario.section import OURS, Section, key, refuse
from edgesim.scenario.units import format_quantity

# of 3GPP TS 38.331: TimeToTrigger, and FilterCoefficient
SHORT_MS, LONG_MS = (0, 40, 64, 80, 100, 128, 160, 256), (320, 480, 512, 640, 1024, 1280)
TIMES_TO_TRIGGER_MS = (*SHORT_MS, *LONG_MS, 2560, 5120)
FILTERS = (*range(10), 11, 13, 15, 17, 19)


class HandoverSection(Section):
    event: Annotated[str, Word(("a3", "none"))] = key(
        "a3: a neighbour is better by an offset, 3GPP TS 38.331, clause 5.5.4.4; none: a device "
        "stays with the sector that serves it at the start",
        "a3",
        "a3",
        "3GPP TS 38.331, clause 5.5.4.4",
    )
    offset_db: Annotated[float, Quantity("dB", -15.0, 15.0, above=False)] = key(
        "by how much a neighbour must be better, in steps of 0.5 dB",
        "2 dB",
        3.0,
        f"{OURS}, in the range of 3GPP TS 38.331, a3-Offset",
    )
    hysteresis_db: Annotated[float, Quantity("dB", 0.0, 15.0, above=False)] = key(
        "beyond the offset, in steps of 0.5 dB",
        "2 dB",
        1.0,
        f"{OURS}, in the range of 3GPP TS 38.331, Hysteresis",
    )
    time_to_trigger_s: Annotated[float, Quantity("s", above=False)] = key(
        "for how long that must hold, one of the values of 3GPP TS 38.331",
        "320 ms",
        0.16,
        f"{OURS}, of 3GPP TS 38.331, TimeToTrigger",
    )
    filter: Annotated[int, WholeNumber(0, 19)] = key(
        "coefficient q of the layer 3 filter of received powers, a = 2^(-q / 4) every 200 ms",
        8,
        4,
        "3GPP TS 38.331, clause 5.5.3.2: fc4",
    )
    sample_s: Annotated[float, Quantity("s", 1e-3, 10.0, above=False)] = key(
        "time between two samples of the received powers", "40 ms", 0.04, f"{OURS}: 40 ms"
    )
    interruption_s: Annotated[float, Quantity("s", high=60.0, above=False)] = key(
        "time without a link while a device is handed over",
        "0 ms",
        0.05,
        "3GPP TR 36.881: 49.5 ms",
    )
    lost_below_db: Annotated[float, Quantity("dB", -100.0, 100.0)] = key(
        "the link fails where the serving sector's signal is below this against that of all others",
        "-10 dB",
        -8.0,
        f"{OURS}: as out-of-sync, 3GPP TS 38.133",
    )
    lost_after_s: Annotated[float, Quantity("s")] = key(
        "for how long that must hold; an upload then fails", "500 ms", 1.0, "3GPP TS 38.331, T310"
    )

    @model_validator(mode="after")
    def _of_the_standard(self) -> HandoverSection:
        given_ms = round(self.time_to_trigger_s * 1e3, 9)
        if given_ms not in TIMES_TO_TRIGGER_MS:
            values = ", ".join(map(str, TIMES_TO_TRIGGER_MS))
            shown = format_quantity(self.time_to_trigger_s, "s")
            raise refuse(shown, f"; TS 38.331 has {values} ms", "time_to_trigger")
        for name in ("offset", "hysteresis"):
            value = getattr(self, f"{name}_db")
            if (2.0 * value) % 1.0:
                raise refuse(f"{value:g} dB", "; TS 38.331 has steps of 0.5 dB", name)
        if self.filter not in FILTERS:
            values = ", ".join(map(str, FILTERS))
            raise refuse(self.filter, f"; TS 38.331 has {values}", "filter")
        return self
