"""A class of devices in the section devices of a scenario.

Equations and units: docs/models.md. Checks between sections are in checks.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import field_validator, model_validator

from edgesim.scenario.fields import Quantity, WholeNumber, Word
from edgesim.scenario.hardware.power_schema import BatterySection, RadioSection
from edgesim.scenario.hardware.processor_schema import CpuSection
from edgesim.scenario.per_device_values import Draw, constant, per_device
from edgesim.scenario.presence.presence_schema import IS_DEFAULT, AnyPresence
from edgesim.scenario.radio.mobility_schema import MobilitySection
from edgesim.scenario.radio.placement import Placement, PlacementReader
from edgesim.scenario.section import (
    OURS,
    NoneOrSection,
    Section,
    ValueRefusedError,
    key,
    refuse,
)

JOB_ENDS = ("lost", "restart", "resume")


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
    mobility: MobilitySection | None = key(
        "how the devices move, within position or by a trace; with path losses by place",
        "{waypoint: {speed: {uniform: [0.5 m/s, 1.5 m/s]}}}",
        None,
        f"{OURS}: they stand still",
    )
    height_m: Annotated[Draw | None, per_device("m", high=1000.0)] = key(
        "height h_UT of the device above ground; read by path_loss models of TR 38.901 and code",
        "1.5 m",
        None,
        "not set: 1.5 m, inh 1 m, 3GPP TR 38.901, Tables 7.2-1 to 7.2-3",
    )
    idle_power_w: Annotated[Draw, per_device("W", above=False)] = key(
        "power while waiting", "100 mW", constant(0.0), "Liu et al.: energy is not considered"
    )
    receive_power_w: Annotated[Draw, per_device("W", above=False)] = key(
        "power while receiving, also in a handover",
        "300 mW",
        constant(0.0),
        "Liu et al.: the downlink is not charged",
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
    battery: BatterySection | None = key(
        "energy that the device has: it dies when it is used up",
        "{capacity: 15.4 Wh, start: {uniform: [0.2, 1]}}",
        None,
        "not set: Liu et al.: energy is not considered",
        written=False,
    )
    radio: RadioSection | None = key(
        "what the modem draws beside its transmit power",
        "{circuit_power: 100 mW, efficiency: 0.35}",
        None,
        "not set: the transmit power alone is charged, Yang et al., IEEE TWC 2021",
        written=False,
    )
    presence: Annotated[AnyPresence | None, NoneOrSection()] = key(
        "when devices are there, as a process in time; instead of availability; none: no process",
        "{kind: onoff, on: 300 s, off: 100 s}",
        None,
        f"{OURS}: always, or by availability",
        written=False,
    )
    on_leave: Annotated[str, Word(JOB_ENDS)] = key(
        "a job whose device leaves is lost; or starts again, or goes on, when the device is back",
        "resume",
        "lost",
        f"{OURS}: the server does not know whether it will come back",
        written=False,
    )
    on_failure: Annotated[str, Word(JOB_ENDS)] = key(
        "a job whose device crashes is lost; or starts again, or goes on, after repair",
        "restart",
        "lost",
        "Liu, Algorithm 1",
        written=False,
    )
    repair_s: Annotated[float, Quantity("s", above=False)] = key(
        "time from a crash until the job starts again or goes on; read by on_failure restart and "
        "resume",
        "30 s",
        0.0,
        f"{OURS}: at once",
        written=False,
    )

    @property
    def has_state(self) -> bool:
        """Do its devices change as they work: by heat, other load, a battery or a modem?"""
        parts = (self.cpu.thermal, self.cpu.background, self.battery, self.radio)
        return any(part is not None for part in parts)

    @field_validator("presence", mode="before")
    @classmethod
    def _always_is_no_process(cls, given: object) -> object:
        if given == "always":
            raise refuse(given, IS_DEFAULT)
        return given

    @model_validator(mode="after")
    def _comes_and_goes(self) -> DeviceClass:
        if self.presence is not None and self.availability != constant(1.0):
            problem = "stands beside availability; keep one of the two"
            raise ValueRefusedError(problem, keys=["presence"])
        if self.presence is None and self.on_leave != "lost":
            problem = ", but without presence no device leaves; remove it, or give presence"
            raise refuse(self.on_leave, problem, "on_leave")
        if self.on_failure != "lost" and not any(self.failure_rate.values):
            problem = ", but without failure_rate no device crashes; remove it, or give one"
            raise refuse(self.on_failure, problem, "on_failure")
        if self.on_failure == "lost" and "repair_s" in self.model_fields_set:
            problem = "is not read with on_failure: lost; remove it, or write restart or resume"
            raise ValueRefusedError(problem, keys=["repair"])
        return self

    @model_validator(mode="after")
    def _something_to_draw(self) -> DeviceClass:
        if self.capability_drawn == "round" and self.capability.kind not in ("uniform", "choice"):
            problem = (
                ", but capability is given, not drawn; write capability: {choice: [1, 0.5]}, "
                "or remove this key"
            )
            raise refuse("round", problem, "capability_drawn")
        return self
