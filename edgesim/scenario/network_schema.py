"""The scenario keys of the physical world: network and devices. Equations and units: docs/models.md.

Field names carry the SI unit; the YAML key is the alias without it. Cross-checks between sections are in scenario.py.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from edgesim.scenario.distributions import Draw, Noise, NoiseReader, constant
from edgesim.scenario.fields import Quantity, Whole, Word, fault, refuse
from edgesim.scenario.section import OURS, PER_SECTION, OrWord, Part, key, spread


class Uplink(Part):
    share: Annotated[str, Word(("fixed", "reclaim"))] = key(
        "share",
        "fixed: b_k for the whole round; reclaim: freed band goes to those still sending",
        "fixed",
        "fixed",
        "Liu, eq. (9)",
    )


class Downlink(Part):
    mode: Annotated[str, Word(("ideal", "broadcast"))] = key(
        "mode",
        "ideal: the model arrives at once; broadcast: at the rate of the worst listener",
        "broadcast",
    )
    tx_power_w: Annotated[float | None, Quantity("W")] = key(
        "tx_power",
        "transmit power of the base station",
        "46 dBm",
        None,
        "not set: needed for broadcast only",
    )
    bandwidth_hz: Annotated[float | None, Quantity("Hz")] = key(
        "bandwidth",
        "band of the broadcast",
        "20 MHz",
        None,
        f"{OURS}: the cell's network.bandwidth",
    )

    @model_validator(mode="after")
    def _powered(self) -> Downlink:
        if self.mode == "broadcast" and self.tx_power_w is None:
            raise refuse(
                "broadcast", " without tx_power; write {mode: broadcast, tx_power: 46 dBm}", "mode"
            )
        if self.mode == "ideal" and self.tx_power_w is not None:
            raise refuse(
                "ideal", ", which reads no tx_power; remove it or write mode: broadcast", "mode"
            )
        if self.mode == "ideal" and self.bandwidth_hz is not None:
            raise refuse(
                "ideal", ", which reads no bandwidth; remove it or write mode: broadcast", "mode"
            )
        return self


class Constant(Part):
    model: Literal["constant"] = key(
        "model", "constant: the same loss whatever the distance", "constant"
    )
    loss_db: Annotated[Draw, spread("dB", -200.0, 1000.0)] = key(
        "loss", "path loss; a list has one value for every device of the cell", "100 dB"
    )


class LogDistance(Part):
    model: Literal["log-distance"] = key(
        "model", "log-distance: loss = reference_loss + 10 exponent log10(d / d0)", "log-distance"
    )
    reference_loss_db: Annotated[float, Quantity("dB", -200.0, 1000.0)] = key(
        "reference_loss", "path loss at the reference distance", "38.5 dB"
    )
    reference_distance_m: Annotated[float, Quantity("m")] = key(
        "reference_distance",
        "distance d0 of the reference loss",
        "1 m",
        1.0,
        "3GPP TR 38.901, Table 7.4.1-1: losses are referred to 1 m",
    )
    exponent: Annotated[float, Quantity(high=10.0)] = key(
        "exponent", "path loss exponent; 2 in free space", 3.0
    )


class Fading(Part):
    kind: Annotated[str, Word(("none", "rayleigh"))] = key(
        "kind", "small-scale fading, redrawn for every coherence block", "rayleigh"
    )
    coherence_s: Annotated[float | None, Quantity("s")] = key(
        "coherence", "length of a coherence block", "5 ms", None, "not set: needed with fading only"
    )

    @model_validator(mode="after")
    def _timed(self) -> Fading:
        if self.kind != "none" and self.coherence_s is None:
            raise refuse(
                self.kind,
                f" without coherence; write {{kind: {self.kind}, coherence: 5 ms}}",
                "kind",
            )
        if self.kind == "none" and self.coherence_s is not None:
            raise refuse(
                "none", ", which reads no coherence; remove it or write kind: rayleigh", "kind"
            )
        return self


class Channel(Part):
    path_loss: Annotated[Constant | LogDistance, Field(discriminator="model")] = key(
        "path_loss",
        "large-scale loss between device and base station",
        "{model: constant, loss: 100 dB}",
    )
    shadowing_db: Annotated[float, Quantity("dB", above=False, none=True, absent=0.0)] = key(
        "shadowing",
        "standard deviation of log-normal shadowing, drawn once per device and run",
        "8 dB",
        0.0,
        "Liu, eq. (9): the gain is given",
    )
    fading: Annotated[Fading, OrWord("none", "kind", "{kind: rayleigh, coherence: 5 ms}")] = key(
        "fading",
        "none, or small-scale fading",
        "none",
        Fading(kind="none"),
        "Liu, eq. (9): constant within a round",
    )


class Network(Part):
    bandwidth_hz: Annotated[float, Quantity("Hz")] = key(
        "bandwidth", "band B shared by all devices", "20 MHz"
    )
    noise: Annotated[Noise, NoiseReader()] = key(
        "noise",
        "receiver noise: a power (fixed, Liu (9)) or a density over the band in use",
        "-110 dBm",
    )
    uplink: Uplink = key(
        "uplink", "how devices share the band", "{share: fixed}", Uplink(), PER_SECTION
    )
    downlink: Annotated[
        Downlink, OrWord("ideal", "mode", "{mode: broadcast, tx_power: 46 dBm}")
    ] = key(
        "downlink",
        "how the model reaches the devices",
        "ideal",
        Downlink(mode="ideal"),
        "Liu, Section II: not charged",
    )
    channel: Channel = key(
        "channel", "path loss, shadowing, fading", "{path_loss: {model: constant, loss: 100 dB}}"
    )

    @model_validator(mode="before")
    @classmethod
    def _cell_band(cls, given: Any) -> Any:
        """A broadcast without a band of its own uses the cell's."""
        down = given.get("downlink") if isinstance(given, dict) else None
        if isinstance(down, dict) and down.get("mode") == "broadcast" and "bandwidth" in given:
            return {**given, "downlink": {"bandwidth": given["bandwidth"], **down}}
        return given


class Cpu(Part):
    frequency_hz: Annotated[Draw, spread("Hz")] = key(
        "frequency", "clock f_k of the processor", "3 GHz"
    )
    min_frequency_hz: Annotated[Draw, spread("Hz", above=False)] = key(
        "min_frequency",
        "least clock f_min that the solver energy may choose; f_k is the largest",
        "500 MHz",
        constant(0.0),
        "Yang et al., Energy Efficient FL Over Wireless Communication Networks, IEEE TWC 2021: 0 <= f_k <= f_k^max",
    )
    cycles_per_weight: Annotated[Draw | None, spread("1")] = key(
        "cycles_per_weight",
        "cycles per weight and SGD step, C_k of Liu (8)",
        5,
        None,
        "not set: this or flops_per_cycle",
    )
    flops_per_cycle: Annotated[Draw | None, spread("1")] = key(
        "flops_per_cycle",
        "floating point operations per cycle",
        4,
        None,
        "not set: this or cycles_per_weight",
    )
    capacitance: Annotated[Draw, spread("1", above=False)] = key(
        "capacitance",
        "kappa in J s^2: a cycle at f costs kappa f^2 joule",
        1e-28,
        constant(1e-28),
        "Yang et al., Energy Efficient FL Over Wireless Communication Networks, IEEE TWC 2021, Section V",
    )

    @model_validator(mode="after")
    def _one_cost(self) -> Cpu:
        if self.cycles_per_weight is not None and self.flops_per_cycle is not None:
            raise fault(
                "stands beside cycles_per_weight; keep exactly one of the two", "flops_per_cycle"
            )
        if self.cycles_per_weight is None and self.flops_per_cycle is None:
            raise fault(
                "has no cost of computing; write cycles_per_weight: 5 or flops_per_cycle: 4"
            )
        return self


class DeviceClass(Part):
    count: Annotated[int, Whole(1, 10_000_000)] = key(
        "count", "number of devices of this class", 10
    )
    tx_power_w: Annotated[Draw, spread("W")] = key("tx_power", "transmit power p_k", "28 dBm")
    cpu: Cpu = key("cpu", "the processor", "{frequency: 3 GHz, cycles_per_weight: 5}")
    distance_m: Annotated[Draw | None, spread("m")] = key(
        "distance",
        "distance to the base station",
        "{uniform: [20 m, 200 m]}",
        None,
        "not set: needed with path_loss model log-distance only",
    )
    idle_power_w: Annotated[Draw, spread("W", above=False)] = key(
        "idle_power",
        "power while waiting",
        "100 mW",
        constant(0.0),
        "Liu et al.: energy is not considered",
    )
    receive_power_w: Annotated[Draw, spread("W", above=False)] = key(
        "receive_power",
        "power while receiving",
        "300 mW",
        constant(0.0),
        "Liu et al.: the downlink is not charged",
    )
    availability: Annotated[Draw, spread("1", high=1.0)] = key(
        "availability",
        "probability of being there when a round starts",
        0.9,
        constant(1.0),
        "Liu, Algorithm 1",
    )
    failure_rate: Annotated[Draw, spread("Hz", above=False)] = key(
        "failure_rate",
        "failures per second while taking part",
        "0.1 Hz",
        constant(0.0),
        "Liu, Algorithm 1",
    )
    capability: Annotated[Draw, spread("1", high=1.0)] = key(
        "capability",
        "share z_k of its processor that a device gives; its clock is cpu.frequency times this",
        "{choice: [1, 0.5, 0.25, 0.125, 0.0625]}",
        constant(1.0),
        "Liu, eq. (8): the whole processor",
    )
    capability_drawn: Annotated[str, Word(("run", "round"))] = key(
        "capability_drawn",
        "run: a device keeps its capability; round: all are drawn anew every round (dynamic in FedLPS)",
        "round",
        "run",
        "Liu, eq. (8): f_k does not change",
    )
    model_budget: Annotated[Draw, spread("1", high=1.0)] = key(
        "model_budget",
        "largest share gamma_k of the model's parameters that a device can hold; read by methods with submodels",
        "{choice: [1, 0.25, 0.0625]}",
        constant(1.0),
        "Liu: every device holds the whole model",
    )

    @model_validator(mode="after")
    def _something_to_draw(self) -> DeviceClass:
        if self.capability_drawn == "round" and self.capability.kind not in ("uniform", "choice"):
            rest = ", but capability is given, not drawn; write capability: {choice: [1, 0.5]}, or remove this key"
            raise refuse("round", rest, "capability_drawn")
        return self
