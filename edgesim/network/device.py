"""The devices of a cell: CPU, radio and reliability; cycles and seconds of their work.

Cycles follow Liu, eq. (8), where a device states ``cycles_per_weight`` (C_k), and are operations
over ``flops_per_cycle`` where it states that. Of its clock f_k a device gives the share z_k, its
capability (FedLPS, Section VI-C).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np

from edgesim.errors import RunError, counted
from edgesim.network.device_positions import around, draw_positions
from edgesim.scenario.hardware.device_schema import DeviceClass
from edgesim.scenario.per_device_values import Draw
from fl.contracts import Array, Streams, Work


class FleetError(RunError):
    """Quantities of a device contradict each other."""


@dataclass(frozen=True, slots=True)
class Device:
    """One device; one of ``cycles_per_weight`` and ``flops_per_cycle`` is a number, one is nan."""

    k: int
    cpu_hz: float  # f_k, of the whole processor
    cycles_per_weight: float
    flops_per_cycle: float

    def cycles(self, work: Work) -> float:
        """CPU cycles of ``work``: C_k x weights x steps (Liu, eq. (8)), or FLOPs by their rate."""
        if not math.isnan(self.cycles_per_weight):
            return float(work.weight_steps) * self.cycles_per_weight
        return float(work.flops) / self.flops_per_cycle

    def seconds(self, work: Work, cpu_hz: float) -> float:
        """Time of ``work`` at a clock of ``cpu_hz``, s: one term of Liu, eq. (24)."""
        return self.cycles(work) / cpu_hz


@dataclass(frozen=True)
class Fleet:
    """All devices of a run, one array [K] per quantity; nan where a device does not state it.

    Raises:
        FleetError: a least clock above the clock, named with its device.
    """

    tx_power_w: Array
    cpu_hz: Array  # f_k, of the whole processor
    cycles_per_weight: Array  # C_k
    flops_per_cycle: Array
    capacitance: Array  # kappa, J s^2: a cycle at clock f costs kappa f^2
    min_cpu_hz: Array  # f_min, of the whole processor: least clock that solvers may choose
    distance_m: Array
    x_m: Array  # position, the base station at the origin
    y_m: Array
    height_m: Array  # h_UT
    idle_power_w: Array
    receive_power_w: Array
    static_power_w: Array  # of the processor while it computes, beside kappa f^3
    availability: Array  # probability of being there when a round starts
    failure_rate_hz: Array  # hazard while taking part
    capability: Array  # z_k in (0, 1], share of the processor; of round 0 where drawn per round
    model_budget: Array  # gamma_k in (0, 1], largest share of the model's parameters that fits

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
                f"device {k} has cpu.min_frequency {low:g} Hz, above its cpu.frequency {clock:g} Hz"
            )

    def __len__(self) -> int:
        return len(self.cpu_hz)

    def device(self, k: int) -> Device:
        """Device k with plain numbers."""
        columns = (self.cpu_hz, self.cycles_per_weight, self.flops_per_cycle)
        return Device(k, *(float(column[k]) for column in columns))

    def cycles(self, devices: Array, work: Work) -> Array:
        """Cycles [S] of ``work`` (scalars or arrays [S]) on ``devices`` [S]."""
        per_weight, per_cycle = self.cycles_per_weight[devices], self.flops_per_cycle[devices]
        return np.where(
            np.isnan(per_weight), work.flops / per_cycle, work.weight_steps * per_weight
        )

    def seconds(self, devices: Array, work: Work, cpu_hz: Array) -> Array:
        """Time [S] of ``work`` on ``devices`` [S] at the clocks ``cpu_hz`` [K] of a round, s."""
        return self.cycles(devices, work) / cpu_hz[devices]


def draw(quantity: Draw | float | None, count: int, stream: np.random.Generator) -> Array:
    """Values [count] of a quantity of a scenario; prefix stable, see `edgesim.seeds`.

    Args:
        quantity: a number, None (nan), or a `Draw`: constant, list and trace (one value per
            device), uniform between two values, or one of the values (choice).
        count: number of devices.
        stream: the random stream of this quantity.

    Raises:
        ValueError: a list or trace with too few values, or a list with too many.
    """
    if quantity is None or isinstance(quantity, int | float):
        return np.full(count, np.nan if quantity is None else float(quantity))
    values = np.asarray(quantity.values, dtype=float)
    if quantity.kind == "constant":
        return np.full(count, values[0])
    if quantity.kind in ("list", "trace"):
        if len(values) < count or (quantity.kind == "list" and len(values) > count):
            raise ValueError(
                f"a {quantity.kind} gives {counted(len(values), 'value')} for "
                f"{counted(count, 'device')}; give one per device"
            )
        return values[:count].copy()
    if quantity.kind == "uniform":
        return values[0] + (values[1] - values[0]) * stream.random(count)
    if quantity.kind == "choice":
        return values[(stream.random(count) * len(values)).astype(int)]
    raise ValueError(
        f"a quantity of kind {quantity.kind}; allowed are constant, list, uniform, choice and trace"
    )


# (least distance to a site, or None; count; purpose of the streams) -> positions [count, 2], m
Drop = Callable[[float | None, int, str], Array]


def draw_fleet(classes: Sequence[DeviceClass], streams: Streams, drop: Drop | None = None) -> Fleet:
    """The fleet of a scenario's ``devices``.

    Each (class, quantity) has its own stream, so that a device added at the end of the last class
    changes nobody else's values.

    Args:
        classes: of devices.
        streams: random streams of the run.
        drop: positions over the cells of a layout, for classes that stand there.
    """
    rows = [_columns(cls, index, streams, drop) for index, cls in enumerate(classes)]
    return Fleet(*(np.concatenate(column) for column in zip(*rows, strict=True)))


def capability_by_round(
    classes: Sequence[DeviceClass], fleet: Fleet, streams: Streams
) -> Callable[[int], Array]:
    """g -> z [K] in round g: drawn for the run, or per round where a class says so.

    The values are a pure function of the seed and the round: a resumed run needs nothing else, and
    a device added at the end of the last class changes nobody else's values.
    """
    starts = np.cumsum([0, *(cls.count for cls in classes)])
    redrawn = [(i, cls) for i, cls in enumerate(classes) if cls.capability_drawn == "round"]

    @lru_cache(maxsize=4)  # of the rounds at work: hot devices ask at every computation
    def capability(g: int) -> Array:
        z = fleet.capability.copy() if redrawn else fleet.capability
        for index, cls in redrawn:
            stream = streams.stream(f"devices/{index}/capability", round=g)
            z[starts[index] : starts[index + 1]] = draw(cls.capability, cls.count, stream)
        return z

    return capability


def place_of(
    cls: DeviceClass, index: int, streams: Streams, drop: Drop | None = None
) -> dict[str, Array]:
    """The columns distance_m, x_m and y_m of a class: a distance lies in a random direction."""
    purpose = f"devices/{index}/position"
    placement, no_distance = cls.position, cls.distance_m is None
    if drop and no_distance and (placement is None or placement.kind == "cells"):
        position_m = drop(placement.inner_m if placement else None, cls.count, purpose)
    elif cls.position is not None:
        position_m = draw_positions(cls.position, cls.count, streams.stream(purpose))
    else:
        distance_m = draw(cls.distance_m, cls.count, streams.stream(f"devices/{index}/distance_m"))
        turn = streams.stream(f"devices/{index}/direction").random(cls.count)
        position_m = around(distance_m, turn)
        return {"distance_m": distance_m, "x_m": position_m[:, 0], "y_m": position_m[:, 1]}
    x, y = position_m.T
    return {"distance_m": np.hypot(x, y), "x_m": x, "y_m": y}


def _columns(cls: DeviceClass, index: int, streams: Streams, drop: Drop | None) -> list[Array]:
    """The columns of one device class, in the order of Fleet's fields."""
    own_names = {  # of quantities that the scenario calls otherwise
        "cpu_hz": cls.cpu.governed_hz,
        "min_cpu_hz": cls.cpu.min_frequency_hz,
        "cycles_per_weight": cls.cpu.cycles_per_weight,
        "flops_per_cycle": cls.cpu.flops_per_cycle,
        "capacitance": cls.cpu.capacitance,
        "static_power_w": cls.cpu.static_power_w,
        "failure_rate_hz": cls.failure_rate,
    }
    place, columns = place_of(cls, index, streams, drop), []
    for name in (field.name for field in fields(Fleet)):
        if name in place:
            columns.append(place[name])
            continue
        quantity = own_names[name] if name in own_names else getattr(cls, name)
        # A capability drawn per round has one stream a round: the fleet holds that of round 0.
        per_round = name == "capability" and cls.capability_drawn == "round"
        stream = streams.stream(f"devices/{index}/{name}", round=0 if per_round else None)
        columns.append(draw(quantity, cls.count, stream))
    return columns
