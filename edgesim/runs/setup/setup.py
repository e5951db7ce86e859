"""The parts of a run before it starts, and its cell and clock made of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import simpy

from edgesim.clocks.clock_choice import make_rules
from edgesim.clocks.rules import Overlapping
from edgesim.clocks.rules import Rules as ClockRules
from edgesim.clocks.server_failures import ServerFailures, failing
from edgesim.clocks.speed_tiers import job_seconds
from edgesim.engine.stop_rule import StopRule
from edgesim.hierarchy.edge_cells import EdgeCell, rows_of
from edgesim.hierarchy.make_hierarchy import Hierarchy
from edgesim.network.band.link_choice import make_links
from edgesim.network.cell import Cell
from edgesim.network.channel import Channel
from edgesim.network.device import Fleet, capability_by_round
from edgesim.network.downlink.downlink_choice import network_downlink
from edgesim.network.hardware.clock_levels import ClockLevels
from edgesim.network.hardware.device_hardware import DeviceHardware
from edgesim.network.interference.make_network import make_network
from edgesim.network.interference.network_uplink import NetworkUplink
from edgesim.network.interference.sector_channel import SectorChannel
from edgesim.network.planned_gains import make_planned_gains
from edgesim.network.planning.planner import Allocator
from edgesim.network.subnetwork import PartChannel, SharedAir
from edgesim.presence.absences import Absences
from edgesim.records.event_log import EventLog
from edgesim.runs.setup.data_source import DataSource
from edgesim.scenario.loader import Scenario
from fl.contracts import Array, RoundPlan, Streams
from fl.data import datasets
from fl.learned_selection.learning_rule import LearningRule
from fl.method_base.method import Method
from fl.repeated_call import RepeatedCall
from fl.task import LearningTask
from fl.training_cache.cache import TrainingCache
from solvers import allocate
from solvers.allocators.equal import equal


@dataclass(frozen=True)
class Setup:
    """Everything that a run is made of, before it starts; made without torch and images.

    Args:
        scenario: the checked scenario, with every parameter that its method reads.
        seed: of all random streams.
        seeds: the random streams.
        fleet: the devices.
        channel: gains and rates of the devices.
        task: model, divided data, accounting.
        method: the method with its parameters.
        allocator: the solver.
        source: where the data came from.
        hardware: device -> what it is made of, of devices whose state changes as they work.
        processes: threads that may train, or evaluate, at once; None: one per core.
        reuse: what other runs have trained already.
        hierarchy: the edges of a scenario with tiers; None: one server.
        capability: g -> z [K] in round g; None: by the scenario's device classes.
        absences: how devices come, go and crash; None: by availability and failures alone.
        selector: chooses the devices; None: the method, by a rule without a memory.
        air: of an edge whose sectors are part of a network; None: a band of its own.
        levels: clocks that the processors have; None: every one.
        plans: the last plan of its cells: the first round has that by which the run was checked.
    """

    scenario: Scenario
    seed: int
    seeds: Streams
    fleet: Fleet
    channel: Channel
    task: LearningTask
    method: Method
    allocator: Allocator
    source: DataSource
    hardware: dict[int, DeviceHardware]
    processes: int | None = None
    reuse: TrainingCache | None = None
    hierarchy: Hierarchy | None = None
    capability: Callable[[int], Array] | None = None
    absences: Absences | None = None
    selector: LearningRule | None = None
    air: SharedAir | None = None
    levels: ClockLevels | None = None
    plans: RepeatedCall[RoundPlan] = field(default_factory=RepeatedCall)

    def cell(self, env: simpy.Environment, uplink: NetworkUplink | None = None) -> Cell:
        """The cell of this scenario at the time of ``env``.

        Args:
            env: the simulation environment.
            uplink: of the network that an edge is part of; None: nobody sends beside it.
        """
        return self._cell(env, self._solver, self.keeps_promises, uplink, self.plans)

    def _cell(
        self,
        env: simpy.Environment,
        allocator: Allocator,
        keeps_promises: bool,
        uplink: NetworkUplink | None = None,
        plans: RepeatedCall[RoundPlan] | None = None,
    ) -> Cell:
        network, allocation = self.scenario.network, self.scenario.allocation
        threshold_s = self.scenario.budget.latency_threshold_s
        budget_s = float("inf") if threshold_s is None else threshold_s
        options: dict[str, Any] = {
            "fleet": self.fleet,
            "allocator": allocator,
            "budget_s": budget_s,
            "when_infeasible": allocation.when_infeasible,
            "samples": self.task.samples,
            "capability": self.capability
            or capability_by_round(self.scenario.devices, self.fleet, self.seeds),
            "hardware": self.hardware,
            "absences": self.absences,
            "levels": self.levels,
            "plans": plans,
        }
        if self.air is not None and isinstance(self.channel, PartChannel):
            shared = uplink or self.air.uplink(env)
            return self.air.cell(shared, self.channel, self.seeds, **options)
        if isinstance(self.channel, SectorChannel):
            sent = partial(network_downlink, env, network, allocation)
            about = network, allocation, self.channel, self.seeds, sent
            return make_network(env, *about, **options)
        up, down = make_links(env, network, self.channel, self.seeds, budget_s)
        gains = make_planned_gains(allocation, self.channel)
        options |= {"uplink": up, "downlink": down, "planned_gains": gains}
        options["keeps_promises"] = keeps_promises
        return Cell(env=env, channel=self.channel, streams=self.seeds, **options)

    def server_failures(self) -> ServerFailures | None:
        """When the server fails; None: never."""
        given = self.scenario.server
        if given is None:
            return None
        return ServerFailures(failing(given.up_s, given.repair_s, self.seeds), given.save_every)

    def stop_rule(self) -> StopRule:
        """What ends the run before its last round."""
        stop = self.scenario.stop
        if stop is None:
            return StopRule()
        time_s = math.inf if stop.time_s is None else stop.time_s
        return StopRule(time_s, math.inf if stop.jobs is None else stop.jobs)

    def add_presence(self, log: EventLog) -> None:
        """Write into a log when devices were there, until the end of its last round."""
        if self.absences is not None:
            end_s = float(log.columns("rounds")["time_s"][-1])
            log.add({"presence": self.absences.presence.table(end_s)})

    def with_rounds(self, rounds: int) -> Setup:
        """The same run with another number of rounds; what followed from it stays (`by_length`)."""
        return replace(self, scenario=self.scenario.with_rounds(rounds))

    @cached_property
    def clock(self) -> ClockRules:
        """The rules of the clock."""
        asked = self.method.participants
        return make_rules(self.scenario.clock, asked, len(self.fleet), self._job_seconds)

    def _job_seconds(self, slots: int) -> Array:
        """Time of a job of each device in a slot of the band [K], s."""
        return job_seconds(
            self._cell(simpy.Environment(), self.allocator, False), self.method, slots
        )

    @cached_property
    def edges(self) -> tuple[Setup, ...]:
        """What is run at each edge of a scenario with tiers: a cell of its own; else nothing."""
        return tuple(map(self._edge, self.hierarchy.edges)) if self.hierarchy else ()

    def _edge(self, edge: EdgeCell) -> Setup:
        threshold_s = edge.threshold_s if math.isfinite(edge.threshold_s) else None
        scenario = self.scenario.with_keys("budget", latency_threshold_s=threshold_s)
        scenario = scenario.model_copy(update={"network": edge.network, "tiers": None})
        return replace(
            self,
            scenario=scenario,
            seeds=edge.streams,
            fleet=edge.fleet,
            channel=edge.channel,
            task=edge.method.task,
            method=edge.method,
            hierarchy=None,
            capability=edge.capability,
            absences=self.absences.of(edge.members) if self.absences else None,
            air=edge.air,
            levels=rows_of(self.levels, edge.members) if self.levels else None,
            plans=RepeatedCall(),
        )

    @property
    def keeps_promises(self) -> bool:
        """Do newcomers divide what those at work leave of the band, and have no slots?"""
        return self.clock.overlapping and self.scenario.allocation.solver != "equal"

    @property
    def _solver(self) -> Allocator:
        """The scenario's, or that of equal slots."""
        if not isinstance(self.clock, Overlapping) or self.keeps_promises:
            return self.allocator
        return partial(allocate, method=partial(equal, slots=self.clock.slots))

    @property
    def counts_only(self) -> bool:
        """True where nothing is trained: only time, bits and joules are counted."""
        return self.scenario.learning.dataset == datasets.NONE

    @cached_property
    def executor(self) -> Any:
        """What trains; evaluation is divided among its threads."""
        from fl.executors.executor_choice import choose

        return choose(self.task, self.scenario.learning.executor, self.processes)

    def arithmetic(self) -> str:
        """How sums are taken while training, which the last bits of a result depend on."""
        if self.counts_only:
            return "none"
        from fl.executors.arithmetic import arithmetic

        return arithmetic(self.task, self.scenario.learning.executor)
