"""A run before it starts: everything that its scenario names, resolved, drawn and divided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import simpy

from edgesim.network.cell import Cell
from edgesim.network.channel import Channel, channel
from edgesim.network.device import Fleet, capability, fleet
from edgesim.network.link import links
from edgesim.records.run_folder import Checkpoint
from edgesim.runs.builders import check_gains, make_allocator, make_method, make_task, said_of
from edgesim.runs.fingerprint import of_learning, of_results
from edgesim.scenario.loader import Scenario
from edgesim.seeds import Seeds
from fl.contracts import Scores, State
from fl.data import datasets
from fl.method_base.method import Method
from fl.task import LearningTask
from fl.timing_only import Counted, NoTrainer, Rounds
from fl.training_cache.array_store import ArrayStore
from fl.training_cache.cache import CachingExecutor, KeyingMethod, TrainingCache


@dataclass(frozen=True)
class Setup:
    """Everything that a run is made of, before it starts. Building it needs neither torch nor the images."""

    scenario: Scenario
    seed: int
    seeds: Seeds
    fleet: Fleet
    channel: Channel
    task: LearningTask
    method: Method
    allocator: Callable
    data: str | Path | None = None  # folder of the data files, else EDGESIM_DATA
    processes: int | None = None  # that may train, or evaluate, at once; None: one per core
    reuse: TrainingCache | None = None  # what other runs have trained already

    def cell(self, env: simpy.Environment) -> Cell:
        """The cell of this scenario at the time of ``env``."""
        uplink, downlink = links(env, self.scenario.network, self.channel)
        return Cell(
            env=env,
            channel=self.channel,
            fleet=self.fleet,
            allocator=self.allocator,
            budget_s=self.budget_s,
            when_infeasible=self.scenario.allocation.when_infeasible,
            uplink=uplink,
            downlink=downlink,
            samples=self.task.samples,
            streams=self.seeds,
            capability=capability(self.scenario.devices, self.fleet, self.seeds),
        )

    @property
    def budget_s(self) -> float:
        threshold_s = self.scenario.budget.latency_threshold_s
        return float("inf") if threshold_s is None else threshold_s

    @property
    def counts_only(self) -> bool:
        """Is nothing trained, but time, bits and joules counted?"""
        return self.scenario.learning.dataset == datasets.NONE

    def rules(self) -> Any:
        """The method as the rounds ask it."""
        if self.counts_only:
            return Counted(self.method)
        return KeyingMethod(self.method, self.reuse) if self.reuse else self.method

    def trainer(self) -> Any:
        """Promises of training on this task, one torch thread per process: more would change the last bits."""
        if self.counts_only:
            return NoTrainer()
        import torch

        from fl.executors.trainer import Trainer

        torch.set_num_threads(1)
        executor = CachingExecutor(self.executor, self.reuse) if self.reuse else self.executor
        return Trainer(self.task, executor, self.method.encode, self.method.charged)

    @cached_property
    def executor(self) -> Any:
        """What trains; evaluation is divided among its processes."""
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

    def sharing(self, folder: str | Path | None) -> Setup:
        """The same run, which gives what it trains to others by ``folder`` and takes theirs; see `fl.training_cache.cache`."""
        identity = None if folder is None else self.learning()
        if identity is None:
            return self
        return replace(
            self,
            reuse=TrainingCache(
                ArrayStore(Path(folder) / identity[:16]), identity, self.task.tensor
            ),
        )

    def restored(self, saved: Checkpoint) -> State:
        """The method's state of a checkpoint."""
        if self.counts_only:
            return Rounds.from_arrays(saved.arrays, saved.facts["state"])
        from fl.method_base.state import State as Learned

        return Learned.from_arrays(saved.arrays, saved.facts["state"], self.task.device)

    def check_before_training(self) -> None:
        """What only the training would notice: damaged images, an accelerator that is not there."""
        if self.counts_only:
            return
        import torch

        name = self.scenario.learning.device
        try:
            torch.zeros(1, device=name).cpu()
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise self.scenario.error(
                "learning.device", f"is {name}, which torch cannot use here: {reason}"
            ) from error
        with said_of(self.scenario, "learning.dataset"):
            self.task.data.x_train  # noqa: B018 (reads the images)

    def fingerprint(self) -> str:
        """What decides the bytes of the results."""
        return of_results(self)

    def learning(self) -> str | None:
        """What decides training and evaluation beside states and orders; None where that cannot be told."""
        return of_learning(self)


def set_up(
    scenario: Scenario,
    seed: int | None = None,
    data: str | None = None,
    allow_code: bool = False,
    processes: int | None = None,
) -> Setup:
    """Resolve every name of a scenario, draw its devices and channel, divide its data.

    processes: that may train at once; None: one per core.

    Raises:
        RunError, ScenarioError: what is missing or does not fit, in one sentence.
    """
    seed = scenario.seed if seed is None else seed
    seeds = Seeds(seed)
    task = make_task(scenario, seeds, data)
    with said_of(scenario, "devices"):
        devices = fleet(scenario.devices, seeds)
    air = channel(scenario.network, devices, seeds)
    check_gains(air)
    method = make_method(scenario, task, allow_code)
    return Setup(
        scenario=scenario,
        seed=seed,
        seeds=seeds,
        fleet=devices,
        channel=air,
        task=method.task,
        method=method,
        allocator=make_allocator(scenario, allow_code),
        data=data,
        processes=processes,
    )
