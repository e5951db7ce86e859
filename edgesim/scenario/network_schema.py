"""The section network of a scenario: the radio cell.

Equations and units: docs/models.md. Checks between sections are in checks.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import ConfigDict, Field, ValidationError, model_validator

from edgesim.scenario.cells.handover_schema import HandoverSection
from edgesim.scenario.cells.interference_schema import Interference, InterferenceReader
from edgesim.scenario.fields import Quantity, Word
from edgesim.scenario.per_device_values import Noise, NoiseReader
from edgesim.scenario.radio.adaptation_schema import AdaptationSection
from edgesim.scenario.radio.carrier_schema import CarrierSection
from edgesim.scenario.radio.channel_schema import ChannelSection
from edgesim.scenario.radio.fidelity import RUNGS
from edgesim.scenario.radio.layout_schema import Layout, PowerControlSection, SingleLayout
from edgesim.scenario.radio.own_loss_schema import ChannelForms
from edgesim.scenario.section import (
    OURS,
    PER_SECTION,
    NoneOrSection,
    Section,
    ValueRefusedError,
    WordOrSection,
    key,
    refuse,
    yaml_key,
)
from edgesim.scenario.units import format_quantity

THERMAL_DBM = -174.0  # per hertz: k T at 290 K is -173.975

SENT = ("broadcast", "unicast")  # downlinks that take time
AMONG_SENDERS = ("fair", "edf")  # shares of the band that only those have who send


class UplinkSection(Section):
    share: Annotated[str, Word(("fixed", "reclaim", "slots", *AMONG_SENDERS))] = key(
        "fixed: b_k from start to end of a device's part; reclaim: freed band goes to those still "
        "sending; slots: 1 / in_flight each, with clocks whose jobs overlap; fair: all of the band "
        "to those that send, in proportion to b_k; edf: all of it to the upload that is due first",
        "fixed",
        "fixed",
        "Liu, eq. (9)",
    )


class DownlinkSection(Section):
    mode: Annotated[str, Word(("ideal", "broadcast", "unicast"))] = key(
        "ideal: the model arrives at once; broadcast: at the rate of the worst listener of a "
        "sector; unicast: to each device at its own rate, in turns of equal time",
        "broadcast",
    )
    tx_power_w: Annotated[float | None, Quantity("W")] = key(
        "transmit power of a sector of the base station",
        "46 dBm",
        None,
        "not set: needed for broadcast and unicast only",
    )
    bandwidth_hz: Annotated[float | None, Quantity("Hz")] = key(
        "band of the downlink", "20 MHz", None, f"{OURS}: the cell's network.bandwidth"
    )
    noise_figure_db: Annotated[float | None, Quantity("dB", 0.0, 40.0, above=False)] = key(
        "noise figure of the devices' receivers: their noise is -174 dBm/Hz plus it",
        "9 dB",
        None,
        f"{OURS}: the noise is that of the uplink; 3GPP TR 38.901, Table 7.8-1, has 9 dB",
        written=False,
    )

    @model_validator(mode="after")
    def _fits_the_mode(self) -> DownlinkSection:
        if self.mode != "ideal" and self.tx_power_w is None:
            problem = f" without tx_power; write {{mode: {self.mode}, tx_power: 46 dBm}}"
            raise refuse(self.mode, problem, "mode")
        for name in ("tx_power_w", "bandwidth_hz", "noise_figure_db"):
            if self.mode == "ideal" and getattr(self, name) is not None:
                problem = f", which reads no {yaml_key(name)}; remove it or write mode: broadcast"
                raise refuse(self.mode, problem, "mode")
        return self


def _without_required(schema: dict[str, Any]) -> None:
    """A rung, or a carrier, stands for the keys that must be given without one."""
    schema.pop("required", None)


class NetworkSection(Section):
    model_config = ConfigDict(json_schema_extra=_without_required)

    fidelity: Annotated[str | None, Word(RUNGS)] = key(
        "a rung of the ladder, which gives defaults to the other keys. paper: Liu's cell; cell: "
        "3GPP TR 38.901 with fading from 3 km/h, planned for the 5 % quantile; adapted: an NR "
        "carrier and its modulation and coding schemes; errors: lost blocks too, drawn; network: "
        "57 sectors that disturb each other, with power control",
        "cell",
        None,
        f"{OURS}: every key stands for itself",
    )
    bandwidth_hz: Annotated[float, Quantity("Hz")] = key("band B shared by all devices", "20 MHz")
    carrier: CarrierSection | None = key(
        "the carrier, needed with a path loss by frequency and with fading by speed",
        "{frequency: 3.5 GHz}",
        None,
        "not set: Liu, eq. (9), needs no carrier",
    )
    noise: Annotated[Noise, NoiseReader()] = key(
        "receiver noise: a power (fixed, Liu (9)) or a density over the band in use", "-110 dBm"
    )
    adaptation: Annotated[AdaptationSection | None, NoneOrSection()] = key(
        "which rate follows from a signal-to-noise ratio; none: log2(1 + g), whatever a rung says",
        "{rate: mcs, implementation_loss: 2 dB}",
        None,
        "not set: log2(1 + g), Liu, eq. (9)",
    )
    layout: Annotated[
        Annotated[Layout, Field(discriminator="kind")],
        WordOrSection("single", "kind", "{kind: hex}"),
    ] = key(
        "where the base stations stand, and their sectors",
        "{kind: hex, rings: 2, isd: 500 m}",
        SingleLayout(kind="single"),
        "Liu, Section II: one cell",
        written=False,
    )
    power_control: Annotated[PowerControlSection | None, NoneOrSection()] = key(
        "fractional uplink power control, 3GPP TS 38.213, clause 7.1.1: the density that a device "
        "sends with, up to tx_power in all; none: tx_power, whatever a rung says",
        "{p0: -85 dBm, alpha: 0.8}",
        None,
        "not set: tx_power whatever the share, Liu, eq. (9)",
        written=False,
    )
    interference: Annotated[Interference | None, InterferenceReader()] = key(
        "of whom an upload hears. none: nobody; full: everybody who takes part, all the time; "
        "load: everybody, for the part of the threshold that its upload takes; {refresh: 10 ms}: "
        "who was sending at the last multiple of this; events: who is sending; resolved: who is "
        "sending in the same resource blocks of network.carrier.bandwidth",
        "events",
        None,
        "not set: events where network.layout has several cells, which changes at every event",
        written=False,
    )
    handover: HandoverSection | None = key(
        "when devices that move go to another sector of network.layout",
        "{offset: 3 dB, time_to_trigger: 160 ms}",
        None,
        "not set: with the defaults of its keys where devices move between several cells",
    )
    uplink: UplinkSection = key(
        "how devices share the band", "{share: fixed}", UplinkSection(), PER_SECTION
    )
    downlink: Annotated[
        DownlinkSection, WordOrSection("ideal", "mode", "{mode: broadcast, tx_power: 46 dBm}")
    ] = key(
        "how the model reaches the devices",
        "ideal",
        DownlinkSection(mode="ideal"),
        "Liu, Section II: not charged",
    )
    channel: Annotated[ChannelSection, ChannelForms()] = key(
        "path loss, shadowing, fading; or ./file.py:function, or {trace: rates.csv}",
        "{path_loss: {model: constant, loss: 100 dB}}",
    )

    @model_validator(mode="before")
    @classmethod
    def _cell_band(cls, given: Any) -> Any:
        """The cell's band is that of its carrier, and a downlink's without its own the cell's."""
        if isinstance(given, dict) and "bandwidth" not in given:
            occupied = _occupied(given.get("carrier"))
            given = given if occupied is None else {**given, "bandwidth": occupied}
        if isinstance(given, dict) and "noise" not in given:
            figure_db = _noise_figure_db(given.get("carrier"))
            given = given if figure_db is None else {**given, "noise": density(figure_db)}
        down = given.get("downlink") if isinstance(given, dict) else None
        if isinstance(down, dict) and down.get("mode") in SENT and "bandwidth" in given:
            return {**given, "downlink": {"bandwidth": given["bandwidth"], **down}}
        return given

    @model_validator(mode="after")
    def _band_of_the_carrier(self) -> NetworkSection:
        occupied_hz = self.carrier.occupied_hz if self.carrier else None
        if occupied_hz not in (None, self.bandwidth_hz):
            problem = "stands beside carrier.bandwidth, whose resource blocks give the band"
            raise ValueRefusedError(f"{problem}; remove one of the two", keys=["bandwidth"])
        if self.downlink.noise_figure_db is not None and self.noise.density_w_per_hz is None:
            problem = "needs a noise density; write for instance noise: -169 dBm/Hz, or remove it"
            raise ValueRefusedError(problem, keys=["downlink", "noise_figure"])
        figure_db = self.carrier.noise_figure_db if self.carrier else None
        expected = None if figure_db is None else NoiseReader().read(density(figure_db))
        given_w = self.noise.density_w_per_hz or 0.0
        if expected and not math.isclose(given_w, expected.density_w_per_hz or 0.0, rel_tol=1e-9):
            problem = "stands beside carrier.noise_figure, which gives the noise"
            raise ValueRefusedError(f"{problem}; remove one of the two", keys=["noise"])
        return self

    @property
    def downlink_power_w(self) -> float:
        """Power of a sector, W, with which the uplink's noise does what that of devices does.

        P g / (W (N + I)) with I in proportion to P stays the same if P and N are divided alike.
        """
        down, uplink = self.downlink, self.noise.density_w_per_hz
        power_w = down.tx_power_w or 0.0
        if down.noise_figure_db is None or uplink is None:
            return power_w
        device = NoiseReader().read(density(down.noise_figure_db)).density_w_per_hz
        return power_w * uplink / float(device or uplink)


def density(figure_db: float) -> str:
    """Noise density -174 dBm/Hz plus a noise figure in dB, as one would write it."""
    density_w_per_hz = NoiseReader().read(f"{THERMAL_DBM + figure_db!r} dBm/Hz").density_w_per_hz
    return format_quantity(float(density_w_per_hz or 0.0), "W/Hz")


def _noise_figure_db(carrier: object) -> float | None:
    """The noise figure of a carrier that is otherwise right, dB."""
    try:
        return CarrierSection.model_validate(carrier).noise_figure_db
    except ValidationError:  # of which the section itself reports
        return None


def _occupied(carrier: object) -> str | None:
    """The band that a carrier's resource blocks occupy, as one would write it."""
    try:
        occupied_hz = CarrierSection.model_validate(carrier).occupied_hz
    except ValidationError:
        # The section itself reports what is wrong with its band, and not that this is missing.
        has_band = isinstance(carrier, dict) and "bandwidth" in carrier
        return "1 Hz" if has_band else None
    return None if occupied_hz is None else format_quantity(occupied_hz, "Hz")
