"""The processor of a device: clock, levels, cost of computing, heat, and other programs on it."""

from __future__ import annotations

from typing import Annotated

from pydantic import model_validator

from edgesim.scenario.fields import Quantity, QuantityList, Word
from edgesim.scenario.per_device_values import Draw, constant, per_device
from edgesim.scenario.section import OURS, Section, ValueRefusedError, key, refuse
from edgesim.scenario.units import format_quantity


class ThermalSection(Section):
    resistance_k_per_w: Annotated[float, Quantity("K/W", 1e-3, 1e6, above=False)] = key(
        "thermal resistance R from the processor to the air", "10 K/W"
    )
    capacity_j_per_k: Annotated[float, Quantity("J/K", 1e-3, 1e9, above=False)] = key(
        "heat capacity C of what the processor warms", "5 J/K"
    )
    ambient_c: Annotated[float, Quantity("degC", -100.0, 100.0, above=False)] = key(
        "temperature of the air, and of the processor at the start",
        "25 degC",
        25.0,
        f"{OURS}: a room",
    )
    limit_c: Annotated[float, Quantity("degC", -100.0, 1000.0, above=False)] = key(
        "temperature at which the processor is throttled", "75 degC"
    )
    hysteresis_k: Annotated[float, Quantity("K", 0.1, 1000.0, above=False)] = key(
        "how much cooler it is when the throttling ends", "5 K", 5.0, OURS
    )
    throttled_hz: Annotated[float, Quantity("Hz")] = key(
        "highest clock while it is throttled", "1 GHz"
    )

    @model_validator(mode="after")
    def _can_cool(self) -> ThermalSection:
        if not self.limit_c - self.hysteresis_k > self.ambient_c:
            problem = (
                f"; less hysteresis it must lie above ambient = {self.ambient_c:g} degC, or the "
                "processor never cools down to it"
            )
            raise refuse(format_quantity(self.limit_c, "degC"), problem, "limit")
        return self


class BackgroundSection(Section):
    to_busy_hz: Annotated[float, Quantity("Hz", high=1e6)] = key(
        "rate at which a free processor becomes busy, lambda: 1 / mean free time",
        "0.2 Hz",
    )
    to_idle_hz: Annotated[float, Quantity("Hz", high=1e6)] = key(
        "rate at which it becomes free again, mu: 1 / mean busy time", "0.5 Hz"
    )
    busy_share: Annotated[float, Quantity(low=0.0, high=1.0, above=False)] = key(
        "share of the processor that they leave while they run", 0.4
    )

    @model_validator(mode="after")
    def _takes_something(self) -> BackgroundSection:
        if self.busy_share == 1.0:
            problem = ": nothing is taken away; write less than 1, or remove background"
            raise refuse(1, problem, "busy_share")
        return self


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

    levels_hz: Annotated[tuple[float, ...] | None, QuantityList("Hz")] = key(
        "clocks that the processor has, ascending; the last is cpu.frequency. What a solver or the "
        "governor asks for is rounded up to one of them",
        ["600 MHz", "1.2 GHz", "2 GHz"],
        None,
        "not set: every clock up to cpu.frequency, Yang et al., IEEE TWC 2021",
        written=False,
    )
    governor: Annotated[str, Word(("performance", "powersave", "deadline"))] = key(
        "the clock of a job where no solver chooses it: performance: the highest; powersave: the "
        "lowest of levels; deadline: the lowest with which the plan meets the threshold",
        "deadline",
        "performance",
        "Liu, eq. (8): f_k does not change",
        written=False,
    )
    static_power_w: Annotated[Draw, per_device("W", above=False)] = key(
        "power of the processor while it computes, beside kappa f^3: without it a lower clock "
        "always saves energy",
        "200 mW",
        constant(0.0),
        "Yang et al., IEEE TWC 2021: dynamic power only",
        written=False,
    )
    thermal: ThermalSection | None = key(
        "heating and throttling",
        "{resistance: 10 K/W, capacity: 5 J/K, limit: 75 degC, throttled: 1 GHz}",
        None,
        "not set: Liu, eq. (8): f_k does not change",
        written=False,
    )
    background: BackgroundSection | None = key(
        "other programs that take a share of the processor, on and off",
        "{to_busy: 0.2 Hz, to_idle: 0.5 Hz, busy_share: 0.4}",
        None,
        "not set: Liu, eq. (8): the whole processor",
        written=False,
    )

    @property
    def governed_hz(self) -> Draw:
        """The clock of a device where no solver chooses it: f_k, or the lowest of its levels."""
        if self.levels_hz is not None and self.governor == "powersave":
            return constant(self.levels_hz[0])
        return self.frequency_hz

    @model_validator(mode="after")
    def _clocks_fit(self) -> CpuSection:
        fastest_hz = max(self.frequency_hz.values)
        levels_hz, given = self.levels_hz, format_quantity(fastest_hz, "Hz")
        if levels_hz is not None and set(self.frequency_hz.values) != {levels_hz[-1]}:
            problem = f", but the last of levels must be cpu.frequency ({given}); write the same"
            raise refuse(format_quantity(levels_hz[-1], "Hz"), problem, "levels")
        if levels_hz is None and self.governor != "performance":
            problem = f", which chooses among levels; write for instance levels: [500 MHz, {given}]"
            raise refuse(self.governor, problem, "governor")
        throttled_hz = self.thermal.throttled_hz if self.thermal else None
        if throttled_hz is not None and throttled_hz >= min(self.frequency_hz.values):
            shown = format_quantity(throttled_hz, "Hz")
            problem = "; allowed is less than cpu.frequency, or nothing is throttled"
            raise refuse(shown, problem, "thermal", "throttled")
        if throttled_hz is not None and levels_hz is not None and throttled_hz not in levels_hz:
            shown = format_quantity(throttled_hz, "Hz")
            raise refuse(shown, "; with levels it must be one of them", "thermal", "throttled")
        return self

    @model_validator(mode="after")
    def _one_cost(self) -> CpuSection:
        if self.cycles_per_weight is not None and self.flops_per_cycle is not None:
            problem = "stands beside cycles_per_weight; keep exactly one of the two"
            raise ValueRefusedError(problem, keys=["flops_per_cycle"])
        if self.cycles_per_weight is None and self.flops_per_cycle is None:
            problem = "has no cost of computing; write cycles_per_weight: 5 or flops_per_cycle: 4"
            raise ValueRefusedError(problem)
        return self
