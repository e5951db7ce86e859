"""A run before it starts: everything that its scenario names, resolved, drawn and divided."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from numbers import Integral
from pathlib import Path
from typing import Any

import simpy

from edgesim.clocks.clock_choice import check_clock, make_rules
from edgesim.clocks.rules import Overlapping
from edgesim.clocks.rules import Rules as ClockRules
from edgesim.clocks.server_failures import ServerFailures, failing
from edgesim.clocks.speed_tiers import SpeedTiers, job_seconds
from edgesim.clocks.tier_models import TierModels
from edgesim.engine.stop_rule import StopRule
from edgesim.errors import RunError, ScenarioKeyError
from edgesim.extensions.device_presence import check_absences, find_absences
from edgesim.extensions.own_channel import find_channel
from edgesim.extensions.selection_costs import expected_costs, spent_energy
from edgesim.extensions.selection_rule import check_selection, find_selection
from edgesim.hierarchy.edge_cells import EdgeCell
from edgesim.hierarchy.edge_trainers import EdgeTrainers
from edgesim.hierarchy.make_hierarchy import Hierarchy, check_method_of_tiers, make_hierarchy
from edgesim.hierarchy.tiered_state import TieredState, joined_scores
from edgesim.network.band.link_choice import make_links
from edgesim.network.cell import Cell
from edgesim.network.channel import Channel
from edgesim.network.device import Fleet, capability_by_round, draw_fleet
from edgesim.network.downlink.downlink_choice import network_downlink
from edgesim.network.hardware.clock_levels import make_clock_levels
from edgesim.network.hardware.device_state import DeviceHardware
from edgesim.network.hardware.drawn_hardware import draw_hardware
from edgesim.network.interference.make_network import make_network
from edgesim.network.interference.network_uplink import NetworkUplink
from edgesim.network.interference.sector_channel import SectorChannel
from edgesim.network.layout.cell_drop import make_drop
from edgesim.network.mobility.movement import make_movement
from edgesim.network.planned_gains import make_planned_gains
from edgesim.network.planning.planner import Allocator
from edgesim.network.subnetwork import PartChannel, SharedAir
from edgesim.presence.absences import Absences
from edgesim.records.event_log import EventLog
from edgesim.records.run_checkpoint import Checkpoint
from edgesim.runs.error_sentences import locate_user_errors
from edgesim.runs.learning_task import (
    KEPT_DATA,
    DataSource,
    data_warnings,
    find_data,
    find_model,
    make_task,
)
from edgesim.runs.method_and_allocator import make_allocator, make_method, sharing_warnings
from edgesim.scenario.loader import Scenario
from edgesim.scenario.network_schema import AMONG_SENDERS
from edgesim.seeds import Seeds
from fl.contracts import Array, RoundPlan, Scores, State, Streams
from fl.data import datasets
from fl.data.array_files import check_values, is_array_file
from fl.learned_selection.choosing_method import ChoosingMethod
from fl.learned_selection.learning_rule import LearningRule
from fl.method_base.hyperparameter_declaration import in_full
from fl.method_base.method import Method
from fl.repeated_call import RepeatedCall
from fl.task import LearningTask
from fl.timing_only import Counted, NoTrainer, Rounds
from fl.training_cache.cache import CachingExecutor, KeyingMethod, TrainingCache
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
            "levels": make_clock_levels(self.scenario.devices, self.hardware),
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
        scenario = with_keys(self.scenario, "budget", latency_threshold_s=threshold_s)
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
            plans=RepeatedCall(),
        )

    @property
    def keeps_promises(self) -> bool:
        """Do newcomers divide what those at work leave of the band, and have no slots?"""
        return self.clock.overlapping and self.scenario.allocation.solver != "equal"

    def meaning_of_shares(self) -> str:
        """What a planned share is where jobs overlap; "": the share of a round."""
        if not isinstance(self.clock, Overlapping):
            return ""
        if self.keeps_promises:
            return "later devices divide what those at work leave of the band"
        slot = f"1 / {self.clock.slots} of the band"
        if self.scenario.network.uplink.share in AMONG_SENDERS:
            return f"plans count with {slot} each, and those that send divide all of it"
        return f"shares are slots: {slot} while a device is at work"

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

    def rules(self) -> Any:
        """The method's hooks as the rounds call them."""
        method: Any = self.method
        if self.counts_only:
            method = Counted(method)
        elif isinstance(self.clock, SpeedTiers):
            method = TierModels(method, self.clock.tier_of, method.shared_mask)
        elif self.reuse:
            method = KeyingMethod(method, self.reuse)
        if self.selector is None:
            return method
        told = expected_costs(self.fleet), spent_energy(self.fleet), not self.counts_only
        return ChoosingMethod(method, self.selector, self.method.participants, self.seeds, *told)

    def trainer(self) -> Any:
        """What trains the jobs of this task."""
        if self.edges:
            return EdgeTrainers([edge.trainer() for edge in self.edges])
        if self.counts_only:
            return NoTrainer()
        import torch

        from fl.executors.deferred_training import Trainer

        torch.set_num_threads(1)  # more would change the last bits of sums
        executor: Any = CachingExecutor(self.executor, self.reuse) if self.reuse else self.executor
        return Trainer(self.task, executor, self.method.encode, self.method.charged)

    @cached_property
    def executor(self) -> Any:
        """What trains; evaluation is divided among its threads."""
        from fl.executors import choose

        return choose(self.task, self.scenario.learning.executor, self.processes)

    def arithmetic(self) -> str:
        """How sums are taken while training, which the last bits of a result depend on."""
        if self.counts_only:
            return "none"
        from fl.executors import arithmetic

        return arithmetic(self.task, self.scenario.learning.executor)

    def evaluate(self, state: State) -> Scores | None:
        """Personalised loss and accuracy of every device; None where nothing is learned."""
        if self.counts_only:
            return None
        if self.edges:
            scores = [edge.evaluate(own) for edge, own in zip(self.edges, state.edges, strict=True)]
            return joined_scores([each for each in scores if each], state.members)
        from fl.evaluation.evaluate import evaluate

        def of_state(state: State) -> Scores:
            return evaluate(self.task, self.method, state, self.executor.threads)

        return self.reuse.scores(state, of_state) if self.reuse else of_state(state)

    def restored(self, saved: Checkpoint) -> State:
        """The method's state of a checkpoint."""
        return self.state_of(saved.arrays, saved.facts["state"])

    def state_of(self, arrays: dict[str, Array], record: dict[str, Any]) -> State:
        """The state that `fl.contracts.State.to_arrays` wrote."""
        if self.hierarchy:
            members = [edge.members for edge in self.hierarchy.edges]
            restore = [edge.state_of for edge in self.edges]
            return TieredState.from_arrays(arrays, record, members, restore)
        if self.counts_only:
            return Rounds.from_arrays(arrays, record)
        from fl.method_base.state import State as MethodState

        return MethodState.from_arrays(arrays, record, self.task.device)

    def learning_warnings(self) -> list[str]:
        """What a user should know of how the data are divided and of what is shared."""
        data = data_warnings(self.scenario, self.source.samples, self.task.data)
        return data + sharing_warnings(self.scenario, self.method)

    def check_own_data(self) -> None:
        """Find what a run would refuse of the values of the user's own samples, without a run.

        Raises:
            DataError: a value is not finite, or a code is negative; or they cannot be read.
        """
        name = self.scenario.learning.dataset
        if self.source.in_memory:
            self.task.data.x_train  # noqa: B018 (reads the samples)
        elif self.source.samples is not None and is_array_file(name):
            check_values(self.scenario.folder / name)

    def check_before_training(self) -> None:
        """Find damaged images, and an accelerator that is absent, before the first round.

        Raises:
            ScenarioKeyError: torch cannot use the device.
            DataError: the images cannot be read.
        """
        if self.counts_only:
            return
        import torch

        name = self.scenario.learning.device
        try:
            torch.zeros(1, device=name).cpu()
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            problem = f"is {name}, which torch cannot use here: {reason}"
            raise ScenarioKeyError(("learning", "device"), problem) from error
        self.task.data.x_train  # noqa: B018 (reads the images)


@locate_user_errors
def set_up(
    scenario: Scenario,
    seed: int | None = None,
    data: Any = None,
    allow_code: bool = False,
    processes: int | None = None,
    model: Any = None,
) -> Setup:
    """Resolve every name of a scenario, draw its devices and channel, divide its data.

    Args:
        scenario: the checked scenario.
        seed: of every random stream; None: the scenario's.
        data: folder of the data files, or data of the user's own; None: EDGESIM_DATA.
        allow_code: code of the user's own, ``./file.py:name``, may run.
        processes: threads that may train at once; None: one per core.
        model: a `torch.nn.Module` of the user's own; None: the one that the scenario names.

    Raises:
        RunError, ScenarioError: what is missing or does not fit, with file, line and key.
    """
    seed = scenario.seed if seed is None else seed
    if not isinstance(seed, Integral) or not 0 <= seed < 2**63:
        raise RunError(f"seed is {seed}; give a whole number from 0 to {2**63 - 1}")
    seed = int(seed)
    seeds = Seeds(seed)
    source = find_data(scenario, data, allow_code)
    if data is not None and not isinstance(data, str | Path):
        scenario = with_keys(scenario, "learning", dataset=KEPT_DATA)
    own_model = find_model(scenario, model, allow_code)
    if model is not None:
        scenario = with_keys(scenario, "learning", model=model_name(model))
    task, selector = make_task(scenario, seeds, source, own_model, allow_code), None
    selection = find_selection(scenario, allow_code)
    if isinstance(selection, LearningRule):
        selector = selection
    else:
        task = replace(task, selection=selection)
    fleet = draw_fleet(scenario.devices, seeds, make_drop(scenario.network, seeds))
    movement = make_movement(scenario.devices, fleet, seeds, scenario.folder)
    fleet = movement.placed(fleet) if movement else fleet
    method, parameters = make_method(scenario, task, allow_code)
    check_selection(scenario, method)
    check_clock(scenario, method)
    allocator = make_allocator(scenario, allow_code)
    hardware = draw_hardware(scenario.devices, fleet, seeds)
    hierarchy = None
    if scenario.tiers is None:
        channel = find_channel(scenario, fleet, seeds, allow_code, movement)
    else:
        check_method_of_tiers(scenario.learning.method.name, method)
        if hardware:
            problem = "have heat, other load, a battery or a modem, which tiers do not know"
            raise ScenarioKeyError(("devices",), f"{problem}; remove those keys, or tiers")
        if movement is not None:
            problem = "have a mobility, and devices stay with their edge servers so far"
            raise ScenarioKeyError(("devices",), f"{problem}; remove it, or tiers")
        hierarchy = make_hierarchy(scenario, scenario.tiers, seeds, fleet, method, allocator)
        channel = hierarchy.edges[0].channel  # not used: every edge has its own
    # what is written into the run's folder, and what a run is recognised by, has the defaults too
    scenario = scenario.with_method(parameters)
    if selector is not None:
        spec = scenario.learning.selection
        in_words = replace(spec, params=in_full(type(selector), spec.params))
        scenario = with_keys(scenario, "learning", selection=in_words)
    check_absences(scenario, hardware)
    drawn = seed, seeds, fleet, channel
    return Setup(
        scenario,
        *drawn,
        method.task,
        method,
        allocator,
        source,
        hardware,
        processes,
        hierarchy=hierarchy,
        absences=find_absences(scenario, seeds),
        selector=selector,
    )


def model_name(model: Any) -> str:
    """What the scenario of a run calls a model that came from Python."""
    return getattr(model, "__qualname__", type(model).__qualname__).rpartition(".")[2]


def with_keys(scenario: Scenario, section: str, **values: Any) -> Scenario:
    """The scenario with other values of some keys of a section."""
    changed = getattr(scenario, section).model_copy(update=values)
    return scenario.model_copy(update={section: changed})
