"""The devices of a cell: their CPU, radio and reliability. Work -> cycles -> seconds.

Cycles follow Liu, eq. (8), where a device states ``cycles_per_weight`` (C_k), and operations over
``flops_per_cycle`` where it states that. Of its clock f_k a device gives the share z_k, its capability (FedLPS, 6.3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from fl.contracts import Array, Streams, Work


class FleetError(ValueError):
    """Quantities of a device that do not go together."""


@dataclass(frozen=True, slots=True)
class Device:
    """One device. Exactly one of ``cycles_per_weight`` and ``flops_per_cycle`` is a number, the other is nan."""

    k: int
    cpu_hz: float  # f_k, of the whole processor
    cycles_per_weight: float
    flops_per_cycle: float

    def cycles(self, work: Work) -> float:
        """CPU cycles of ``work``: C_k times weights times steps, Liu, eq. (8), or operations by their rate."""
        if self.cycles_per_weight == self.cycles_per_weight:
            return float(work.weight_steps) * self.cycles_per_weight
        return float(work.flops) / self.flops_per_cycle

    def seconds(self, work: Work, cpu_hz: float) -> float:
        """Time of ``work`` at a clock of ``cpu_hz``, s: a term of Liu, eq. (24)."""
        return self.cycles(work) / cpu_hz


@dataclass(frozen=True)
class Fleet:
    """All devices of a run, one array [K] per quantity; nan where a device does not state the quantity."""

    tx_power_w: Array
    cpu_hz: Array  # f_k, of the whole processor
    cycles_per_weight: Array
    flops_per_cycle: Array
    capacitance: Array  # kappa: joule = kappa f^2 cycles
    min_cpu_hz: (
        Array  # f_min, of the whole processor: the least clock that the solver energy may choose
    )
    distance_m: Array
    idle_power_w: Array
    receive_power_w: Array
    availability: Array  # probability of being there in a round
    failure_rate_hz: Array  # hazard while taking part
    capability: Array  # z_k in (0, 1]: share of the processor that is given; of round 0 where it is drawn anew
    model_budget: Array  # gamma_k in (0, 1]: largest share of the model's parameters that fits

    def __post_init__(self) -> None:
        if len({getattr(self, field.name).shape for field in fields(self)}) != 1:
            raise ValueError(
                "the arrays of a fleet differ in length; each needs one value per device"
            )
        if not np.all(np.isnan(self.cycles_per_weight) != np.isnan(self.flops_per_cycle)):
            raise ValueError(
                "each device needs exactly one of cycles_per_weight and flops_per_cycle"
            )
        if np.any(self.min_cpu_hz > self.cpu_hz):
            k = int(np.argmax(self.min_cpu_hz > self.cpu_hz))
            low, clock = self.min_cpu_hz[k], self.cpu_hz[k]
            raise FleetError(
                f"device {k} has a least clock of {low:g} Hz, above its clock of {clock:g} Hz"
            )

    def __len__(self) -> int:
        return len(self.cpu_hz)

    def device(self, k: int) -> Device:
        return Device(
            k,
            float(self.cpu_hz[k]),
            float(self.cycles_per_weight[k]),
            float(self.flops_per_cycle[k]),
        )

    def cycles(self, devices: Array, work: Work) -> Array:
        """Cycles [S] of ``work`` (scalars or arrays [S]) on ``devices`` [S]."""
        per_weight, per_cycle = self.cycles_per_weight[devices], self.flops_per_cycle[devices]
        return np.where(
            np.isnan(per_weight), work.flops / per_cycle, work.weight_steps * per_weight
        )

    def seconds(self, devices: Array, work: Work, cpu_hz: Array) -> Array:
        """Time [S] of ``work`` on ``devices`` [S] at the clocks ``cpu_hz`` [K] of a round, s."""
        return self.cycles(devices, work) / cpu_hz[devices]


def make_fleet(
    tx_power_w: Any,
    cpu_hz: Any,
    cycles_per_weight: Any = np.nan,
    flops_per_cycle: Any = np.nan,
    capacitance: Any = 1e-28,
    min_cpu_hz: Any = 0.0,
    distance_m: Any = np.nan,
    idle_power_w: Any = 0.0,
    receive_power_w: Any = 0.0,
    availability: Any = 1.0,
    failure_rate_hz: Any = 0.0,
    capability: Any = 1.0,
    model_budget: Any = 1.0,
) -> Fleet:
    """A fleet from plain numbers and arrays [K], broadcast to one length.

    Example:
        >>> two = make_fleet(tx_power_w=0.5, cpu_hz=[1e9, 3e9], cycles_per_weight=5)
        >>> two.seconds([0, 1], Work(6e6), two.cpu_hz)
        array([0.03, 0.01])
    """
    given = (tx_power_w, cpu_hz, cycles_per_weight, flops_per_cycle, capacitance, min_cpu_hz)
    given += (
        distance_m,
        idle_power_w,
        receive_power_w,
        availability,
        failure_rate_hz,
        capability,
        model_budget,
    )
    columns = np.broadcast_arrays(
        *(np.atleast_1d(np.asarray(value, dtype=float)) for value in given)
    )
    return Fleet(*(column.copy() for column in columns))


def draw(spec: Any, count: int, stream: np.random.Generator) -> Array:
    """``count`` values [count] of a quantity that a scenario gives as a number, a list or a distribution.

    ``spec`` is None (nan), a number, or has ``kind`` and ``values`` in SI: constant (v), list and trace (one value per
    device), uniform (a, b), choice (the values). Prefix stable, see `edgesim.seeds`.
    """
    if spec is None:
        return np.full(count, np.nan)
    if isinstance(spec, int | float):
        return np.full(count, float(spec))
    values = np.asarray(spec.values, dtype=float)
    if spec.kind == "constant":
        return np.full(count, values[0])
    if spec.kind in ("list", "trace"):
        if len(values) < count or (spec.kind == "list" and len(values) > count):
            raise ValueError(
                f"a {spec.kind} gives {len(values)} values for {count} devices; give one per device"
            )
        return values[:count].copy()
    if spec.kind == "uniform":
        return values[0] + (values[1] - values[0]) * stream.random(count)
    if spec.kind == "choice":
        return values[(stream.random(count) * len(values)).astype(int)]
    raise ValueError(
        f"a quantity of kind {spec.kind}; allowed are constant, list, uniform, choice and trace"
    )


def fleet(classes: Sequence[Any], streams: Streams) -> Fleet:
    """The fleet of a scenario's ``devices``; each (class, quantity) has its own stream, so that a device added at the
    end of the last class moves nobody else's draw."""
    rows = [_columns(cls, index, streams) for index, cls in enumerate(classes)]
    return Fleet(*(np.concatenate(column) for column in zip(*rows, strict=True)))


def capability(classes: Sequence[Any], fleet: Fleet, streams: Streams) -> Callable[[int], Array]:
    """g -> z_k in round g, all devices [K]: drawn for the run, or anew in every round where a class says so.

    A pure function of the seed and the round: a resumed run needs nothing else, and a device added at the end of the
    last class moves nobody else's draw.
    """
    starts = np.cumsum([0, *(cls.count for cls in classes)])
    anew = [(index, cls) for index, cls in enumerate(classes) if cls.capability_drawn == "round"]

    def of_round(g: int) -> Array:
        z = fleet.capability.copy() if anew else fleet.capability
        for index, cls in anew:
            stream = streams.stream(_stream_name(index, "capability"), round=g)
            z[starts[index] : starts[index + 1]] = draw(cls.capability, cls.count, stream)
        return z

    return of_round


def _stream_name(index: int, quantity: str) -> str:
    return f"devices/{index}/{quantity}"


def _columns(cls: Any, index: int, streams: Streams) -> list[Array]:
    """The columns of one device class, in the order of Fleet's fields."""
    quantities = {
        "tx_power_w": cls.tx_power_w,
        "cpu_hz": cls.cpu.frequency_hz,
        "cycles_per_weight": cls.cpu.cycles_per_weight,
        "flops_per_cycle": cls.cpu.flops_per_cycle,
        "capacitance": cls.cpu.capacitance,
        "min_cpu_hz": cls.cpu.min_frequency_hz,
        "distance_m": cls.distance_m,
        "idle_power_w": cls.idle_power_w,
        "receive_power_w": cls.receive_power_w,
        "availability": cls.availability,
        "failure_rate_hz": cls.failure_rate,
        "capability": cls.capability,
        "model_budget": cls.model_budget,
    }
    rounds = {"capability": 0} if cls.capability_drawn == "round" else {}
    return [
        draw(
            quantities[name],
            cls.count,
            streams.stream(_stream_name(index, name), round=rounds.get(name)),
        )
        for name in (field.name for field in fields(Fleet))
    ]
