"""The sections network and devices of a scenario: the radio cell and what is in it.

Equations and units: docs/models.md. Checks between sections are in validation.py.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import ConfigDict, ValidationError, model_validator

from edgesim.scenario.fields import Quantity, WholeNumber, Word
from edgesim.scenario.per_device_values import Draw, Noise, NoiseReader, constant, per_device
from edgesim.scenario.radio.adaptation_schema import AdaptationSection
from edgesim.scenario.radio.carrier_schema import CarrierSection
from edgesim.scenario.radio.channel_schema import ChannelSection
from edgesim.scenario.radio.fidelity import RUNGS
from edgesim.scenario.radio.own_loss_schema import ChannelForms
from edgesim.scenario.radio.placement import Placement, PlacementReader
from edgesim.scenario.section import (
    OURS,
    PER_SECTION,
    Section,
    ValueRefusedError,
    WordOrSection,
    key,
    refuse,
    yaml_key,
)
from edgesim.scenario.units import format_quantity

THERMAL_DBM = -174.0  # per hertz: k T at 290 K is -173.975


class UplinkSection(Section):
    share: Annotated[str, Word(("fixed", "reclaim"))] = key(
        "fixed: b_k for the whole round; reclaim: freed band goes to those still sending",
        "fixed",
        "fixed",
        "Liu, eq. (9)",
    )


class DownlinkSection(Section):
    mode: Annotated[str, Word(("ideal", "broadcast"))] = key(
        "ideal: the model arrives at once; broadcast: at the rate of the worst listener",
        "broadcast",
    )
    tx_power_w: Annotated[float | None, Quantity("W")] = key(
        "transmit power of the base station", "46 dBm", None, "not set: needed for broadcast only"
    )
    bandwidth_hz: Annotated[float | None, Quantity("Hz")] = key(
        "band of the broadcast", "20 MHz", None, f"{OURS}: the cell's network.bandwidth"
    )

    @model_validator(mode="after")
    def _fits_the_mode(self) -> DownlinkSection:
        if self.mode == "broadcast" and self.tx_power_w is None:
            problem = " without tx_power; write {mode: broadcast, tx_power: 46 dBm}"
            raise refuse(self.mode, problem, "mode")
        for name in ("tx_power_w", "bandwidth_hz"):
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
        "carrier and its modulation and coding schemes; errors: lost blocks too, drawn",
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
    adaptation: AdaptationSection | None = key(
        "which rate follows from a signal-to-noise ratio",
        "{rate: mcs, implementation_loss: 2 dB}",
        None,
        "not set: log2(1 + g), Liu, eq. (9)",
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
        """The cell's band is that of its carrier, and a broadcast's without its own the cell's."""
        if isinstance(given, dict) and "bandwidth" not in given:
            occupied = _occupied(given.get("carrier"))
            given = given if occupied is None else {**given, "bandwidth": occupied}
        if isinstance(given, dict) and "noise" not in given:
            figure_db = _noise_figure_db(given.get("carrier"))
            given = given if figure_db is None else {**given, "noise": density(figure_db)}
        down = given.get("downlink") if isinstance(given, dict) else None
        if isinstance(down, dict) and down.get("mode") == "broadcast" and "bandwidth" in given:
            return {**given, "downlink": {"bandwidth": given["bandwidth"], **down}}
        return given

    @model_validator(mode="after")
    def _band_of_the_carrier(self) -> NetworkSection:
        occupied_hz = self.carrier.occupied_hz if self.carrier else None
        if occupied_hz not in (None, self.bandwidth_hz):
            problem = "stands beside carrier.bandwidth, whose resource blocks give the band"
            raise ValueRefusedError(f"{problem}; remove one of the two", keys=["bandwidth"])
        figure_db = self.carrier.noise_figure_db if self.carrier else None
        expected = None if figure_db is None else NoiseReader().read(density(figure_db))
        given_w = self.noise.density_w_per_hz or 0.0
        if expected and not math.isclose(given_w, expected.density_w_per_hz or 0.0, rel_tol=1e-9):
            problem = "stands beside carrier.noise_figure, which gives the noise"
            raise ValueRefusedError(f"{problem}; remove one of the two", keys=["noise"])
        return self


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


class CpuSection(Section):
    frequency_hz: Annotated[Draw, per_device("Hz")] = key("clock f_k of the processor", "3 GHz")
    min_frequency_hz: Annotated[Draw, per_device("Hz", above=False)] = key(
        "least clock f_min that the solver energy may choose; f_k is the largest",
        "500 MHz",
        constant(0.0),
        "Yang et al., Energy Efficient FL Over Wireless Communication Networks, IEEE TWC 2021: "
        "0 <= f_k <= f_k^max",
    )
    cycles_per_weight: Annotated[Draw | None, per_device("1")] = key(
        "cycles per weight and SGD step, C_k of Liu (8)",
        5,
        None,
        "not set: this or flops_per_cycle",
    )
    flops_per_cycle: Annotated[Draw | None, per_device("1")] = key(
        "floating point operations per cycle", 4, None, "not set: this or cycles_per_weight"
    )
    capacitance: Annotated[Draw, per_device("1", above=False)] = key(
        "kappa in J s^2: a cycle at f costs kappa f^2 joule",
        1e-28,
        constant(1e-28),
        "Yang et al., Energy Efficient FL Over Wireless Communication Networks, IEEE TWC 2021, "
        "Section V",
    )

    @model_validator(mode="after")
    def _one_cost(self) -> CpuSection:
        if self.cycles_per_weight is not None and self.flops_per_cycle is not None:
            problem = "stands beside cycles_per_weight; keep exactly one of the two"
            raise ValueRefusedError(problem, keys=["flops_per_cycle"])
        if self.cycles_per_weight is None and self.flops_per_cycle is None:
            problem = "has no cost of computing; write cycles_per_weight: 5 or flops_per_cycle: 4"
            raise ValueRefusedError(problem)
        return self


class DeviceClass(Section):
    count: Annotated[int, WholeNumber(1, 10_000_000)] = key("number of devices of this class", 10)
    tx_power_w: Annotated[Draw, per_device("W")] = key("transmit power p_k", "28 dBm")
    cpu: CpuSection = key("the processor", "{frequency: 3 GHz, cycles_per_weight: 5}")
    distance_m: Annotated[Draw | None, per_device("m")] = key(
        "distance to the base station",
        "{uniform: [20 m, 200 m]}",
        None,
        "not set: this or position, with a path_loss model that needs it",
    )
    position: Annotated[Placement | None, PlacementReader()] = key(
        "where the devices stand, the base station at the origin: drawn in a disc, ring or "
        "hexagon, or listed; instead of distance",
        "{ring: [35 m, 250 m]}",
        None,
        "not set: this or distance, with a path_loss model that needs it",
    )
    height_m: Annotated[Draw | None, per_device("m", high=1000.0)] = key(
        "height h_UT of the device above ground; read by path_loss models of TR 38.901",
        "1.5 m",
        None,
        "not set: 1.5 m, inh 1 m, 3GPP TR 38.901, Tables 7.2-1 to 7.2-3",
    )
    idle_power_w: Annotated[Draw, per_device("W", above=False)] = key(
        "power while waiting", "100 mW", constant(0.0), "Liu et al.: energy is not considered"
    )
    receive_power_w: Annotated[Draw, per_device("W", above=False)] = key(
        "power while receiving", "300 mW", constant(0.0), "Liu et al.: the downlink is not charged"
    )
    availability: Annotated[Draw, per_device("1", high=1.0)] = key(
        "probability of being there when a round starts", 0.9, constant(1.0), "Liu, Algorithm 1"
    )
    failure_rate: Annotated[Draw, per_device("Hz", above=False)] = key(
        "failures per second while taking part", "0.1 Hz", constant(0.0), "Liu, Algorithm 1"
    )
    capability: Annotated[Draw, per_device("1", high=1.0)] = key(
        "share z_k of its processor that a device gives; its clock is cpu.frequency times this",
        "{choice: [1, 0.5, 0.25, 0.125, 0.0625]}",
        constant(1.0),
        "Liu, eq. (8): the whole processor",
    )
    capability_drawn: Annotated[str, Word(("run", "round"))] = key(
        "run: a device keeps its capability; round: all are drawn anew every round "
        "(dynamic in FedLPS)",
        "round",
        "run",
        "Liu, eq. (8): f_k does not change",
    )
    model_budget: Annotated[Draw, per_device("1", high=1.0)] = key(
        "largest share gamma_k of the model's parameters that a device can hold; "
        "read by methods with submodels",
        "{choice: [1, 0.25, 0.0625]}",
        constant(1.0),
        "Liu: every device holds the whole model",
    )

    @model_validator(mode="after")
    def _something_to_draw(self) -> DeviceClass:
        if self.capability_drawn == "round" and self.capability.kind not in ("uniform", "choice"):
            problem = (
                ", but capability is given, not drawn; write capability: {choice: [1, 0.5]}, "
                "or remove this key"
            )
            raise refuse("round", problem, "capability_drawn")
        return self
