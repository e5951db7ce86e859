"""Builds a run from a scenario, carries it through, and keeps its folder. The only file that knows every room."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from inspect import isabstract
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import simpy

import solvers
from edgesim import rounds as servers
from edgesim.cell import Cell
from edgesim.channel import Channel, channel
from edgesim.device import Fleet, fleet
from edgesim.eventlog import EventLog
from edgesim.explain import KeyInfo
from edgesim.feasibility import Feasibility, feasibility_table
from edgesim.link import StalledLink, links
from edgesim.recorder import Progress, Recorder, scheme_of
from edgesim.results import keep, versions
from edgesim.runfolder import Checkpoint, FolderError, RunFolder
from edgesim.scenario import Scenario
from edgesim.seeds import Seeds
from edgesim.summary import summarise
from edgesim.usercode import UserCodeError, guarded, user_code, user_files
from fl import data as datasets
from fl import methods, models
from fl.accounting import Accounting
from fl.method import Method, MethodError, bind, parameters
from fl.task import Task
from solvers import Infeasible, InvalidAllocation, Uncertified, allocate

if TYPE_CHECKING:
    import pandas as pd


class RunError(Exception):
    """The scenario asks for something that is not there or does not fit: one sentence; exit code 2."""


class InfeasibleScenario(Exception):
    """No device can meet the latency threshold: one sentence with the least that would do; exit code 3."""


@dataclass(frozen=True)
class Setup:
    """Everything that a run is made of, before it starts. Building it needs neither torch nor the images."""

    scenario: Scenario
    seed: int
    seeds: Seeds
    fleet: Fleet
    channel: Channel
    task: Task
    method: Method
    allocator: Callable
    data: str | Path | None = None  # folder of the data files, else EDGESIM_DATA

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
        )

    @property
    def budget_s(self) -> float:
        threshold_s = self.scenario.budget.latency_threshold_s
        return float("inf") if threshold_s is None else threshold_s

    def fingerprint(self) -> str:
        """What decides the bytes of the results: scenario, seed, data, user code, versions, where torch computes."""
        parts = [self.scenario.digest(), str(self.seed), self.scenario.learning.device, *map(str, versions().items())]
        total = hashlib.sha256("\n".join(parts).encode())
        for path in [*user_files(self.scenario), *datasets.locate(self.scenario.learning.dataset, self.data)]:
            total.update(hashlib.sha256(path.read_bytes()).digest())
        for labels in (self.task.data.y_train, self.task.data.y_test):
            total.update(labels.tobytes())
        return total.hexdigest()


def set_up(scenario: Scenario, seed: int | None = None, data: str | None = None, allow_code: bool = False) -> Setup:
    """Resolve every name of a scenario, draw its devices and channel, divide its data.

    Raises:
        RunError, ScenarioError: what is missing or does not fit, in one sentence.
    """
    seed = scenario.seed if seed is None else seed
    seeds = Seeds(seed)
    task = make_task(scenario, seeds, data)
    devices = fleet(scenario.devices, seeds)
    air = channel(scenario.network, devices, seeds)
    check_gains(air)
    return Setup(
        scenario=scenario,
        seed=seed,
        seeds=seeds,
        fleet=devices,
        channel=air,
        task=task,
        method=make_method(scenario, task, allow_code),
        allocator=make_allocator(scenario, allow_code),
        data=data,
    )


def check_gains(air: Channel) -> None:
    """Refuse gains that no radio has: they come from absurd distances or losses."""
    odd = np.flatnonzero(~np.isfinite(air.path_gain))
    if odd.size:
        raise RunError(f"the path loss and shadowing of device {odd[0]} give a gain of {air.path_gain[odd[0]]}")


def make_task(scenario: Scenario, seeds: Seeds, data: str | Path | None) -> Task:
    """The learning task: model, divided data, accounting; a complaint names the line of the key."""
    learning, accounting = scenario.learning, scenario.accounting
    with said_of(scenario, "learning.dataset"):
        datasets.locate(learning.dataset, data)
        samples = datasets.load(learning.dataset, data)
    with said_of(scenario, "learning.partition"):
        options = {**learning.partition.model_dump(), "samples_per_device": learning.samples_per_device}
        held = datasets.spread(samples, scenario.device_count, seeds, **options)
    with said_of(scenario, "learning.model"):
        architecture = models.build(learning.model, held.input_shape, len(held.classes))
        architecture.input_shapes  # noqa: B018 (does the model fit the images?)
    return Task(
        architecture=architecture,
        data=held,
        batch_size=learning.batch_size,
        streams=seeds,
        accounting=Accounting(accounting.bits_per_weight, accounting.mask_overhead, accounting.sparse_efficiency),
        device=learning.device,
    )


@contextmanager
def said_of(scenario: Scenario, key: str) -> Iterator[None]:
    """Complaints of the learning room with the file, line and key that they are about."""
    try:
        yield
    except (datasets.DataError, models.ModelError) as error:
        raise RunError(f"{scenario.where(key)}: {key}: {error}") from error


def make_method(scenario: Scenario, task: Task, allow_code: bool) -> Method:
    """The scenario's method with its parameters checked; a complaint names the line of the key."""
    spec = scenario.learning.method
    at = ("learning", "method")
    try:
        cls = user_code(scenario, spec.name, (*at, "name"), allow_code) or methods.resolve(spec.name)
        if not (isinstance(cls, type) and issubclass(cls, Method) and not isabstract(cls)):
            raise MethodError("name", f"is {spec.name}, no complete subclass of fl.method.Method, or of FedAvg")
        method = bind(cls, task, spec.params)
    except MethodError as error:
        raise scenario.error((*at, error.key), error.problem) from error
    personal = np.asarray(method.personal())
    if personal.shape != (task.layout.size,) or personal.dtype != bool:
        raise scenario.error((*at, "name"), f"is {spec.name}, whose personal() is no mask bool [{task.layout.size}]")
    return method


def make_allocator(scenario: Scenario, allow_code: bool) -> Callable:
    """problem -> Allocation, by the solver that the scenario names."""
    name, at = scenario.allocation.solver, ("allocation", "solver")
    solver = user_code(scenario, name, at, allow_code)
    if solver is not None:
        if not callable(solver):
            raise scenario.error(at, f"is {name}, which is no function of a problem")
        return partial(allocate, method=guarded(solver, name))
    solver = name
    if solver == "printed":
        raise scenario.error(at, "is printed, which breaks its bounds and is for comparison only; use kkt")
    if solver not in solvers.METHODS:
        raise scenario.error(at, f"is {solver}; allowed are kkt, convex, equal or ./file.py:function")
    density = scenario.network.noise.density_w_per_hz is not None
    if density and solver in ("kkt", "convex"):
        raise scenario.error(at, f"is {solver}, which needs a noise power (dBm); with a noise density use equal")
    if scenario.budget.latency_threshold_s is None and solver in ("kkt", "convex"):
        raise scenario.error(at, f"is {solver}, which needs budget.latency_threshold; give one, or use equal")
    return partial(allocate, method=solver)


def feasibility(
    scenario: Scenario, seed: int | None = None, data: str | None = None, allow_code: bool = False
) -> Feasibility:
    """What each device can achieve at best in round 0, and what would be planned for it."""
    return _feasibility(set_up(scenario, seed, data, allow_code))


def _feasibility(setup: Setup) -> Feasibility:
    with in_one_sentence():
        return feasibility_table(setup.cell(simpy.Environment()), setup.method)


@dataclass
class Run:
    """A finished run: its summary, its tables (pandas), its folder (None: kept in memory only).

    spent: wall seconds by purpose, wall_s, train_s, evaluate_s, engine_s; empty where the run had ended before.
    """

    folder: Path | None
    summary: dict
    log: EventLog
    spent: dict[str, float] = field(default_factory=dict)

    @cached_property
    def rounds(self) -> pd.DataFrame:
        return self.log.rounds

    @cached_property
    def device_rounds(self) -> pd.DataFrame:
        return self.log.device_rounds

    @cached_property
    def spans(self) -> pd.DataFrame:
        return self.log.spans


def simulate(
    scenario: Scenario,
    seed: int | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
    data: str | None = None,
    allow_code: bool = False,
    progress: Progress | None = None,
) -> Run:
    """Run a scenario to its end and return its tables; with ``out`` also write, resume and keep its folder.

    Args:
        seed: of every random stream; None takes the scenario's.   out: the run's folder; None keeps all in memory.
        fresh: replace what an earlier run left in ``out``.        data: folder of data files, else EDGESIM_DATA.
        allow_code: a method or solver may be ``./file.py:name``.  progress: called with a dict after each round.
    Raises:
        ScenarioError, RunError: bad input.                        InfeasibleScenario: nobody can meet the threshold.
    """
    setup = set_up(scenario, seed, data, allow_code)
    table = _feasibility(setup)
    if not table.feasible:
        raise InfeasibleScenario(table.note)
    folder = None if out is None else RunFolder(Path(out), setup.fingerprint())
    with in_one_sentence():
        if folder is None or not folder.is_finished():
            check_before_training(setup)
        try:
            saved = folder.open(fresh) if folder else None
            if folder and folder.is_finished():
                return finished_run(folder, saved)
            return carry_out(setup, folder, saved, progress, table.warnings)
        finally:
            if folder is not None:
                folder.close()


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """What a scenario, its data or the user's code can cause, as the two errors that the command line knows."""
    try:
        yield
    except Infeasible as error:
        raise InfeasibleScenario(f"{error}; or write allocation.when_infeasible: stretch") from error
    except (
        FolderError,
        InvalidAllocation,
        Uncertified,
        UserCodeError,
        StalledLink,
        datasets.DataError,
        servers.NobodyTakesPart,
        servers.WrongSelection,
    ) as error:
        raise RunError(str(error)) from error


def check_before_training(setup: Setup) -> None:
    """What only the training would notice, before a folder is written: damaged images, a missing accelerator."""
    import torch

    name = setup.scenario.learning.device
    try:
        torch.zeros(1, device=name).cpu()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise setup.scenario.error("learning.device", f"is {name}, which torch cannot use here: {reason}") from error
    setup.task.data.x_train  # noqa: B018 (reads the images)


def carry_out(setup: Setup, folder: RunFolder | None, saved, progress: Progress | None, warnings: list[str]) -> Run:
    """Simulate from the start, or from a checkpoint, to the last round."""
    import torch

    from fl.evaluate import evaluate
    from fl.method import State as Learned
    from fl.trainer import Trainer

    torch.set_num_threads(1)  # more threads change the last bits, and two processes use two cores better
    env, state, first = simpy.Environment(), None, 0
    if saved is not None:
        env, first = simpy.Environment(initial_time=saved.time_s), saved.g + 1
        state = Learned.from_arrays(saved.arrays, saved.facts["state"], setup.task.device)
    log = EventLog()
    log.restore(saved.tables if saved else ())
    trainer = Trainer(setup.task, encode=setup.method.encode)
    recorder = Recorder(setup.scenario, log, partial(evaluate, setup.task, setup.method), folder, progress)
    recorder.tell("start", round=first)
    server = getattr(servers, setup.scenario.clock.mode)
    cell, turns = setup.cell(env), range(first, setup.scenario.rounds)
    state = env.run(env.process(server(env, cell, setup.method, trainer, log, recorder, turns, state)))
    log.freeze()
    summary = summary_of(setup, log, warnings)
    spent = {"wall_s": recorder.wall_s, "train_s": trainer.seconds, "evaluate_s": recorder.evaluate_s}
    spent["engine_s"] = spent["wall_s"] - spent["train_s"] - spent["evaluate_s"]
    if folder is not None:
        keep(folder.path, setup, log, state, summary, spent)
    recorder.tell("end", round=setup.scenario.rounds - 1)
    return Run(folder.path if folder else None, summary, log, spent)


def finished_run(folder: RunFolder, saved: Checkpoint) -> Run:
    """A run that had ended before: nothing is computed again."""
    import json

    log = EventLog()
    log.restore(saved.tables)
    try:
        summary = json.loads((folder.path / "summary.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise FolderError(f"{folder.path}/summary.json is damaged ({error}); use --fresh to start again") from error
    return Run(folder.path, summary, log)


def summary_of(setup: Setup, log: EventLog, warnings: list[str]) -> dict:
    """summary.json: what was run, and the figures that follow from the event log."""
    scenario = setup.scenario
    return {
        "scenario": scenario.name,
        "scheme": scheme_of(scenario),
        "method": scenario.learning.method.name,
        "solver": scenario.allocation.solver,
        "seed": setup.seed,
        "rounds": scenario.rounds,
        "devices": len(setup.fleet),
        "weights": setup.method.weights(),
        "warnings": warnings,
        "stretched_rounds": log.stretched_rounds,
        **summarise(log.tables["rounds"], scenario.evaluate.targets, scenario.budget.latency_threshold_s),
    }


def default_folder(scenario: Scenario, seed: int | None = None) -> Path:
    """Where `edgesim run` keeps a run: named by what it is, so that a changed scenario is another run."""
    seed = scenario.seed if seed is None else seed
    label = re.sub(r"\W+", "-", scheme_of(scenario)).strip("-")
    return Path("runs") / scenario.name / f"{label}-{scenario.digest()[:8]}-s{seed}"


def catalog(kind: str) -> list[tuple[str, str, str]]:
    """(name, one line, source) of everything of a kind: methods, solvers, datasets, models."""
    if kind == "methods":
        return [(name, *methods.describe(name)) for name in methods.available()]
    if kind == "solvers":
        return [(name, *about) for name, about in solvers.ABOUT.items()]
    table = {"datasets": datasets.DATASETS, "models": models.MODELS}[kind]
    return [(name, line, source) for name, (_, line, source) in table.items()]


def method_keys() -> list[KeyInfo]:
    """The parameters of all methods as scenario keys; what differs between methods is said per method."""
    found: dict[str, list[KeyInfo]] = {}
    for name in methods.available():
        for p in parameters(methods.resolve(name)):
            info = KeyInfo(
                key=f"learning.method.{p.name}",
                meaning=p.meaning,
                unit="",
                allowed=p.allowed,
                default=written(p.default),
                source=p.source,
                example=written(p.default),
                section=False,
            )
            same = found.setdefault(p.name, [])
            known = next((i for i in same if replace(i, meaning=info.meaning) == info), None)
            if known is None:
                same.append(replace(info, meaning=f"{p.meaning} (of {name})"))
            else:
                same[same.index(known)] = replace(known, meaning=f"{known.meaning[:-1]}, {name})")
    return [info for infos in found.values() for info in infos]


def written(value: object) -> str:
    """A default as one would write it in YAML."""
    return {"None": "none", "True": "true", "False": "false"}.get(str(value), str(value))
