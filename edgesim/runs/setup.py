"""A run before it starts: everything that its scenario names, resolved, drawn and divided."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import simpy

from edgesim.clocks.clock_choice import check_clock, make_rules
from edgesim.clocks.rules import Overlapping
from edgesim.clocks.rules import Rules as ClockRules
from edgesim.errors import ScenarioKeyError
from edgesim.extensions.own_channel import find_channel
from edgesim.extensions.selection_rule import check_selection, find_selection
from edgesim.network.cell import Cell
from edgesim.network.channel import Channel
from edgesim.network.device import Fleet, capability_by_round, draw_fleet
from edgesim.network.fluid_links import make_links
from edgesim.network.planned_gains import make_planned_gains
from edgesim.network.planner import Allocator
from edgesim.records.run_checkpoint import Checkpoint
from edgesim.runs.error_sentences import locate_user_errors
from edgesim.runs.learning_task import (
    KEPT_DATA,
    DataSource,
    find_data,
    find_model,
    make_task,
)
from edgesim.runs.method_and_allocator import make_allocator, make_method
from edgesim.scenario.loader import Scenario
from edgesim.seeds import Seeds
from fl.contracts import Scores, State
from fl.data import datasets
from fl.method_base.hyperparameter_declaration import in_full
from fl.method_base.method import Method
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
        processes: threads that may train, or evaluate, at once; None: one per core.
        reuse: what other runs have trained already.
    """

    scenario: Scenario
    seed: int
    seeds: Seeds
    fleet: Fleet
    channel: Channel
    task: LearningTask
    method: Method
    allocator: Allocator
    source: DataSource
    processes: int | None = None
    reuse: TrainingCache | None = None

    def cell(self, env: simpy.Environment) -> Cell:
        """The cell of this scenario at the time of ``env``."""
        uplink, downlink = make_links(env, self.scenario.network, self.channel, self.seeds)
        threshold_s = self.scenario.budget.latency_threshold_s
        return Cell(
            env=env,
            channel=self.channel,
            fleet=self.fleet,
            allocator=self._solver,
            budget_s=float("inf") if threshold_s is None else threshold_s,
            when_infeasible=self.scenario.allocation.when_infeasible,
            uplink=uplink,
            downlink=downlink,
            samples=self.task.samples,
            streams=self.seeds,
            capability=capability_by_round(self.scenario.devices, self.fleet, self.seeds),
            planned_gains=make_planned_gains(self.scenario.allocation, self.channel),
        )

    @cached_property
    def clock(self) -> ClockRules:
        """The rules of the clock."""
        section, devices = self.scenario.clock, self.scenario.device_count
        return make_rules(section, self.method.participants, devices)

    @property
    def _solver(self) -> Allocator:
        """The scenario's, or, where jobs overlap, that of equal slots."""
        if not isinstance(self.clock, Overlapping):
            return self.allocator
        return partial(allocate, method=partial(equal, slots=self.clock.slots))

    @property
    def counts_only(self) -> bool:
        """True where nothing is trained: only time, bits and joules are counted."""
        return self.scenario.learning.dataset == datasets.NONE

    def rules(self) -> Any:
        """The method's hooks as the rounds call them."""
        if self.counts_only:
            return Counted(self.method)
        return KeyingMethod(self.method, self.reuse) if self.reuse else self.method

    def trainer(self) -> Any:
        """What trains the jobs of this task."""
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
        from fl.evaluation.evaluate import evaluate

        if self.reuse:
            return self.reuse.scores(
                state, lambda state: evaluate(self.task, self.method, state, self.executor)
            )
        return evaluate(self.task, self.method, state, self.executor)

    def restored(self, saved: Checkpoint) -> State:
        """The method's state of a checkpoint."""
        if self.counts_only:
            return Rounds.from_arrays(saved.arrays, saved.facts["state"])
        from fl.method_base.state import State as MethodState

        return MethodState.from_arrays(saved.arrays, saved.facts["state"], self.task.device)

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
    seeds = Seeds(seed)
    source = find_data(scenario, data, allow_code)
    if data is not None and not isinstance(data, str | Path):
        scenario = with_keys(scenario, "learning", dataset=KEPT_DATA)
    own_model = find_model(scenario, model, allow_code)
    if model is not None:
        scenario = with_keys(scenario, "learning", model=model_name(model))
    selection = find_selection(scenario, allow_code)
    task = replace(make_task(scenario, seeds, source, own_model, allow_code), selection=selection)
    fleet = draw_fleet(scenario.devices, seeds)
    channel = find_channel(scenario, fleet, seeds, allow_code)
    method = make_method(scenario, task, allow_code)
    check_selection(scenario, method)
    check_clock(scenario, method)
    allocator = make_allocator(scenario, allow_code)
    # what is written into the run's folder, and what a run is recognised by, has the defaults too
    scenario = scenario.with_method(in_full(type(method), scenario.learning.method.params))
    return Setup(
        scenario, seed, seeds, fleet, channel, method.task, method, allocator, source, processes
    )


def model_name(model: Any) -> str:
    """What the scenario of a run calls a model that came from Python."""
    return getattr(model, "__qualname__", type(model).__qualname__).rpartition(".")[2]


def with_keys(scenario: Scenario, section: str, **values: Any) -> Scenario:
    """The scenario with other values of some keys of a section."""
    changed = getattr(scenario, section).model_copy(update=values)
    return scenario.model_copy(update={section: changed})
