"""The section mobility of a device class: how its devices move."""

from __future__ import annotations

from typing import Annotated

from pydantic import model_validator

from edgesim.scenario.fields import Quantity, Word
from edgesim.scenario.per_device_values import Draw, constant, per_device
from edgesim.scenario.section import OURS, Section, ValueRefusedError, key, refuse

KINDS = ("waypoint", "gauss_markov", "trace")


class WaypointSection(Section):
    speed: Annotated[Draw, per_device("m/s", high=1000.0, above=False)] = key(
        "speed of every leg, or {uniform: [v0, v1]}, drawn for each; v0 is more than 0",
        "{uniform: [0.5 m/s, 1.5 m/s]}",
    )
    pause: Annotated[Draw, per_device("s", above=False)] = key(
        "time between two legs, or {uniform: [a, b]}, drawn for each",
        "10 s",
        constant(0.0),
        f"{OURS}: no pause",
    )

    @model_validator(mode="after")
    def _drawn_per_leg(self) -> WaypointSection:
        for name in ("speed", "pause"):
            kind = getattr(self, name).kind
            if kind not in ("constant", "uniform"):
                unit = "m/s" if name == "speed" else "s"
                problem = f"; it is drawn for every leg, write {{uniform: [1 {unit}, 2 {unit}]}}"
                raise refuse(kind, problem, name)
        if not self.speed.values[0] > 0.0:
            problem = (
                "; the slowest speed must be more than 0, or the devices come to rest for ever"
            )
            raise refuse(f"{self.speed.values[0]:g} m/s", problem, "speed")
        return self


class GaussMarkovSection(Section):
    speed_m_per_s: Annotated[float, Quantity("m/s", high=1000.0, above=False)] = key(
        "length of the mean velocity of a device; its direction is drawn, and turns at the walls",
        "1 m/s",
    )
    deviation_m_per_s: Annotated[float, Quantity("m/s", high=1000.0)] = key(
        "standard deviation of each component of the velocity", "0.3 m/s"
    )
    memory: Annotated[float, Quantity(high=1.0, above=False)] = key(
        "alpha, correlation of the velocity from step to step; less than 1",
        0.9,
        0.75,
        "Camp, Boleng and Davies, Wireless Communications and Mobile Computing 2002",
    )
    step_s: Annotated[float, Quantity("s", 1e-3, 1e6, above=False)] = key(
        "time between two velocities", "1 s", 1.0, f"{OURS}: one second"
    )

    @model_validator(mode="after")
    def _forgets(self) -> GaussMarkovSection:
        if self.memory == 1.0:
            raise refuse(self.memory, "; allowed is at least 0 and less than 1", "memory")
        return self


class MobilitySection(Section):
    waypoint: WaypointSection | None = key(
        "random waypoint within position, in its stationary state from the start; paths between "
        "points of a ring cross its hole",
        "{speed: {uniform: [0.5 m/s, 1.5 m/s]}, pause: 10 s}",
        None,
        "not set: this, gauss_markov or trace",
    )
    gauss_markov: GaussMarkovSection | None = key(
        "velocities with a memory within position, whose edge reflects",
        "{speed: 1 m/s, deviation: 0.3 m/s}",
        None,
        "not set: this, waypoint or trace",
    )
    trace: Annotated[str | None, Word(looks="the path of a CSV file")] = key(
        "CSV with the columns device,time_s,x_m,y_m, the devices of the class numbered from 0; "
        "between two lines a device goes straight",
        "walks.csv",
        None,
        "not set: this, waypoint or gauss_markov",
    )
    end: Annotated[str, Word(("stop", "hold"))] = key(
        "behind the last line of a trace: stop is an error; hold: the device stays there",
        "hold",
        "stop",
        f"{OURS}: a trace covers the run",
        written=False,
    )

    @model_validator(mode="after")
    def _one_kind(self) -> MobilitySection:
        given = [name for name in KINDS if getattr(self, name) is not None]
        if not given:
            problem = "does not say how; write waypoint: {speed: 1 m/s}, gauss_markov or trace"
            raise ValueRefusedError(problem)
        if len(given) > 1:
            raise ValueRefusedError(
                f"stands beside {given[0]}; keep one of the two", keys=given[1:2]
            )
        if self.trace is None and self.end != "stop":
            raise refuse(self.end, ", which is read with trace only; remove it", "end")
        return self
