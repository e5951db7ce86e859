"""Builds what a scenario names: devices, channel, task, method, allocator. The only file that knows every room."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from inspect import isabstract
from pathlib import Path
from typing import Any

import numpy as np
import simpy

import solvers
from edgesim.cell import Cell
from edgesim.channel import Channel, channel
from edgesim.contracts import Scores, State
from edgesim.device import Fleet, FleetError, capability, fleet
from edgesim.errors import RunError
from edgesim.explain import KeyInfo
from edgesim.link import links
from edgesim.results import versions
from edgesim.runfolder import Checkpoint
from edgesim.scenario import Scenario
from edgesim.seeds import Seeds
from edgesim.usercode import blamed, guarded, user_code, user_files
from fl import data as datasets
from fl import methods, models
from fl.accounting import Accounting
from fl.method import Method, MethodError, bind, parameters
from fl.reuse import Reuse
from fl.store import Store
from fl.task import Task
from fl.timing import ABOUT as ABOUT_NONE
from fl.timing import Counted, NoTrainer, Rounds, Unseen, check_countable, unseen
from solvers import allocate

NO_DEADLINE = {"equal", "proportional", "latency", "convex-latency"}  # solvers that do without a threshold


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
    processes: int | None = None  # that may train at once; None: one per core
    reuse: Reuse | None = None  # what other runs have trained already

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
        return self.reuse.watch(self.method) if self.reuse else self.method

    def trainer(self) -> Any:
        """Promises of training on this task, one torch thread per process: more would change the last bits."""
        if self.counts_only:
            return NoTrainer()
        import torch

        from fl.executors import choose
        from fl.trainer import Trainer

        torch.set_num_threads(1)
        executor = choose(self.task, self.scenario.learning.executor, self.processes)
        executor = self.reuse.share(executor) if self.reuse else executor
        return Trainer(self.task, executor, self.method.encode, self.method.charged)

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
        from fl.evaluate import evaluate

        if self.reuse:
            return self.reuse.scores(state, lambda state: evaluate(self.task, self.method, state))
        return evaluate(self.task, self.method, state)

    def sharing(self, folder: str | Path | None) -> Setup:
        """The same run, which gives what it trains to others by ``folder`` and takes theirs; see `fl.reuse`."""
        identity = None if folder is None else self.learning()
        if identity is None:
            return self
        return replace(self, reuse=Reuse(Store(Path(folder) / identity[:16]), identity, self.task.tensor))

    def restored(self, saved: Checkpoint) -> State:
        """The method's state of a checkpoint."""
        if self.counts_only:
            return Rounds.from_arrays(saved.arrays, saved.facts["state"])
        from fl.state import State as Learned

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
            raise self.scenario.error("learning.device", f"is {name}, which torch cannot use here: {reason}") from error
        with said_of(self.scenario, "learning.dataset"):
            self.task.data.x_train  # noqa: B018 (reads the images)

    def fingerprint(self) -> str:
        """What decides the bytes of the results: scenario, seed, data, user code, versions, where torch computes."""
        where = [self.scenario.learning.device, self.arithmetic()]
        parts = [self.scenario.digest(), str(self.seed), *where, *map(str, versions().items())]
        total = hashlib.sha256("\n".join(parts).encode())
        for path in [*user_files(self.scenario), *datasets.locate(self.scenario.learning.dataset, self.data)]:
            total.update(file_digest(path))
        for labels in (self.task.data.y_train, self.task.data.y_test):
            total.update(labels.tobytes())
        return total.hexdigest()

    def learning(self) -> str | None:
        """What decides training and evaluation beside states and orders: data and who holds them, model, method,
        seed, arithmetic, code. None where nothing is trained, or by code of the user's own, which could read anything.
        """
        if self.counts_only or ".py:" in self.scenario.learning.method.name:
            return None
        import torch

        place = [self.scenario.learning.device, self.arithmetic(), torch.backends.cpu.get_cpu_capability()]
        parts = [
            self.scenario.digest(("learning", "accounting")),
            str(self.seed),
            *place,
            *map(str, versions().items()),
        ]
        total = hashlib.sha256("\n".join(parts).encode())
        data, room = self.task.data, Path(datasets.__file__).parent
        for path in [*sorted(room.rglob("*.py")), *datasets.locate(self.scenario.learning.dataset, self.data)]:
            total.update(file_digest(path))
        for array in (data.y_train, data.y_test, self.task.samples, *data.train_index, *data.test_index):
            total.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
        return total.hexdigest()


def file_digest(path: Path) -> bytes:
    """SHA-256 of a file; asked again, it is read again only if it has changed."""
    found = path.stat()
    return _file_digest(path, found.st_size, found.st_mtime_ns, found.st_ino)


@lru_cache(maxsize=1024)
def _file_digest(path: Path, *stamp: int) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


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


def check_gains(air: Channel) -> None:
    """Refuse gains that no radio has: they come from absurd distances or losses."""
    odd = np.flatnonzero(~np.isfinite(air.path_gain))
    if odd.size:
        raise RunError(f"the path loss and shadowing of device {odd[0]} give a gain of {air.path_gain[odd[0]]}")


def make_task(scenario: Scenario, seeds: Seeds, data: str | Path | None) -> Task:
    """The learning task: model, divided data, accounting; a complaint names the line of the key."""
    learning, accounting = scenario.learning, scenario.accounting
    held = divided(scenario, seeds, data)
    with said_of(scenario, "learning.model"):
        architecture = models.build(learning.model, held.input_shape, len(held.classes))
        architecture.input_shapes  # noqa: B018 (does the model fit the images?)
    return Task(
        architecture=architecture,
        data=held,
        batch_size=learning.batch_size,
        streams=seeds,
        accounting=Accounting(**accounting.model_dump()),
        device=learning.device,
    )


def divided(scenario: Scenario, seeds: Seeds, data: str | Path | None) -> datasets.Federated | Unseen:
    """The data set and who holds what; without a data set D_k samples each, one batch unless the scenario says so."""
    learning = scenario.learning
    with said_of(scenario, "learning.dataset"):
        if learning.dataset == datasets.NONE:
            size = learning.samples_per_device or learning.batch_size
            return unseen(learning.model, scenario.device_count, size)
        datasets.locate(learning.dataset, data)
        samples = datasets.load(learning.dataset, data)
    with said_of(scenario, "learning.partition"):
        given = learning.partition.model_dump(exclude_none=True)
        options = {**given, "samples_per_device": learning.samples_per_device}
        return datasets.spread(samples, scenario.device_count, seeds, **options)


@contextmanager
def said_of(scenario: Scenario, key: str) -> Iterator[None]:
    """Complaints of another room with the file, line and key that they are about."""
    try:
        yield
    except (datasets.DataError, models.ModelError, FleetError) as error:
        raise RunError(f"{scenario.where(key)}: {key}: {error}") from error


def make_method(scenario: Scenario, task: Task, allow_code: bool) -> Method:
    """The scenario's method with its parameters checked; a complaint names the line of the key."""
    spec = scenario.learning.method
    at = ("learning", "method")
    try:
        cls = user_code(scenario, spec.name, (*at, "name"), allow_code) or methods.resolve(spec.name)
        if not (isinstance(cls, type) and issubclass(cls, Method) and not isabstract(cls)):
            raise MethodError("name", f"is {spec.name}, no complete subclass of fl.method.Method, or of FedAvg")
        with blamed(scenario):
            method = bind(cls, task, spec.params)
        if not isinstance(method.task.architecture, models.Architecture):
            raise MethodError("name", f"is {spec.name}, whose architecture() gives no fl.models.Architecture")
        if scenario.learning.dataset == datasets.NONE:
            check_countable(method)
    except MethodError as error:
        raise scenario.error((*at, error.key), error.problem) from error
    with blamed(scenario):
        personal, size = np.asarray(method.personal()), method.layout.size
    if personal.shape != (size,) or personal.dtype != bool:
        raise scenario.error((*at, "name"), f"is {spec.name}, whose personal() is no mask bool [{size}]")
    check_read(scenario, method)
    return method


def check_read(scenario: Scenario, method: Method) -> None:
    """Refuse keys without effect. A file with schemes may hold them: they are the conventions of its comparison."""
    if scenario.scheme is not None:
        return
    accounting, defaults = scenario.accounting, type(scenario.accounting)()
    for key in ("mask_overhead", "sparse_efficiency"):
        value = getattr(accounting, key)
        if value != getattr(defaults, key) and not method.prunable().any():
            problem = f"is {value}, which {scenario.learning.method.name} does not read: it prunes nothing; remove it"
            raise scenario.error(("accounting", key), problem)
    if scenario.allocation.solver not in ("energy", "convex-energy"):
        for i, each in enumerate(scenario.devices):
            if any(each.cpu.min_frequency_hz.values):
                problem = f"is not read by the solver {scenario.allocation.solver}; remove it, or use energy"
                raise scenario.error(("devices", i, "cpu", "min_frequency"), problem)
    if scenario.network.downlink.mode == "ideal":
        for i, each in enumerate(scenario.devices):
            if any(each.receive_power_w.values):
                raise scenario.error(("devices", i, "receive_power"), "is not read with downlink: ideal; remove it")


def make_allocator(scenario: Scenario, allow_code: bool) -> Callable:
    """problem -> Allocation, by the solver that the scenario names."""
    name, at = scenario.allocation.solver, ("allocation", "solver")
    solver = user_code(scenario, name, at, allow_code)
    if solver is not None:
        if not callable(solver):
            raise scenario.error(at, f"is {name}, which is no function of a problem")
        return partial(allocate, method=guarded(solver, name, user_files(scenario)[-1]))
    solver = name
    if solver == "printed":
        raise scenario.error(at, "is printed, which breaks its bounds and is for comparison only; use kkt")
    if solver not in solvers.METHODS or solver == "levels":
        allowed = ", ".join(name for name in solvers.METHODS if name not in ("printed", "levels"))
        raise scenario.error(at, f"is {solver}; allowed are {allowed} or ./file.py:function")
    if scenario.network.noise.density_w_per_hz is not None and solver == "convex-energy":
        raise scenario.error(at, f"is {solver}, which needs a noise power (dBm); with a noise density use energy")
    if scenario.budget.latency_threshold_s is None and solver not in NO_DEADLINE:
        free = ", ".join(sorted(NO_DEADLINE))
        raise scenario.error(at, f"is {solver}, which needs budget.latency_threshold; give one, or use one of {free}")
    return partial(allocate, method=solver)


def catalog(kind: str) -> list[tuple[str, str, str]]:
    """(name, one line, source) of everything of a kind: methods, solvers, datasets, models."""
    if kind == "methods":
        return [(name, *methods.describe(name)) for name in methods.available()]
    if kind == "solvers":
        return [(name, *about) for name, about in solvers.ABOUT.items()]
    table = {"datasets": datasets.DATASETS, "models": models.MODELS}[kind]
    rows = [(name, line, source) for name, (_, line, source) in table.items()]
    return [*rows, ABOUT_NONE] if kind == "datasets" else rows


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
