"""The parts of a run, each from what the scenario says of it; complaints name file, line and key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from inspect import isabstract, signature
from pathlib import Path

import numpy as np

import solvers
from edgesim.errors import RunError
from edgesim.network.channel import Channel
from edgesim.network.device import FleetError
from edgesim.runs.user_code import blamed, guarded, user_code, user_files
from edgesim.scenario.loader import Scenario
from edgesim.seeds import Seeds
from fl import methods
from fl.accounting import Accounting
from fl.data import datasets
from fl.errors import MethodError
from fl.method_base.method import PRUNING, Method, bind
from fl.models import architectures as models
from fl.task import LearningTask
from fl.timing_only import Unseen, check_countable, unseen
from solvers import allocate

NO_DEADLINE = {
    "equal",
    "proportional",
    "latency",
    "convex-latency",
}  # solvers that do without a threshold


def make_task(scenario: Scenario, seeds: Seeds, data: str | Path | None) -> LearningTask:
    """The learning task: model, divided data, accounting; a complaint names the line of the key."""
    learning, accounting = scenario.learning, scenario.accounting
    held = divided(scenario, seeds, data)
    with said_of(scenario, "learning.model"):
        architecture = models.build(learning.model, held.input_shape, len(held.classes))
        architecture.input_shapes  # noqa: B018 (does the model fit the images?)
    return LearningTask(
        architecture=architecture,
        data=held,
        batch_size=learning.batch_size,
        streams=seeds,
        accounting=Accounting(**accounting.model_dump()),
        device=learning.device,
    )


def divided(
    scenario: Scenario, seeds: Seeds, data: str | Path | None
) -> datasets.Federated | Unseen:
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


def check_gains(air: Channel) -> None:
    """Refuse gains that no radio has: they come from absurd distances or losses."""
    odd = np.flatnonzero(~np.isfinite(air.path_gain))
    if odd.size:
        raise RunError(
            f"the path loss and shadowing of device {odd[0]} give a gain of {air.path_gain[odd[0]]}"
        )


def make_method(scenario: Scenario, task: LearningTask, allow_code: bool) -> Method:
    """The scenario's method with its parameters checked; a complaint names the line of the key."""
    spec = scenario.learning.method
    at = ("learning", "method")
    try:
        cls = user_code(scenario, spec.name, (*at, "name"), allow_code) or methods.resolve(
            spec.name
        )
        if not (isinstance(cls, type) and issubclass(cls, Method) and not isabstract(cls)):
            raise MethodError(
                "name",
                f"is {spec.name}, no complete subclass of fl.method_base.method.Method, or of FedAvg",
            )
        check_hooks(spec.name, cls)
        with blamed(scenario):
            method = bind(cls, task, spec.params)
        check_architecture(spec.name, task.architecture, method.task.architecture)
        if scenario.learning.dataset == datasets.NONE:
            check_countable(method)
    except MethodError as error:
        raise scenario.error((*at, error.key), error.problem) from error
    with blamed(scenario):
        personal, size = np.asarray(method.personal()), method.layout.size
    if personal.shape != (size,) or personal.dtype != bool:
        raise scenario.error(
            (*at, "name"), f"is {spec.name}, whose personal() is no mask bool [{size}]"
        )
    check_read(scenario, method)
    return method


def check_hooks(name: str, cls: type[Method]) -> None:
    """Refuse hooks that cannot be called as those that they stand for, in any class behind it."""
    ancestors = cls.__mro__[:-1]
    for place, owner in enumerate(ancestors):
        for hook in vars(owner):
            base = next((each for each in ancestors[place + 1 :] if hook in vars(each)), None)
            if hook.startswith("_") or base is None or not callable(getattr(base, hook)):
                continue
            given, asked = getattr(owner, hook), signature(getattr(base, hook))
            if not callable(given):
                raise MethodError("name", f"is {name}, whose {hook} is no method")
            try:
                signature(given).bind(*asked.parameters)
            except TypeError:
                problem = f"is {name}, whose {hook}{signature(given)} is called as {hook}{asked}"
                raise MethodError("name", problem) from None


def check_architecture(name: str, given: models.Architecture, made: models.Architecture) -> None:
    """Refuse what a method's architecture() made where it is none, or is for other data."""
    if not isinstance(made, models.Architecture):
        raise MethodError(
            "name", f"is {name}, whose architecture() gives no fl.models.architectures.Architecture"
        )
    if (made.input_shape, made.classes) != (given.input_shape, given.classes):
        found, allowed = (
            f"{models.size_of(each.input_shape)} and {each.classes} classes"
            for each in (made, given)
        )
        raise MethodError(
            "name", f"is {name}, whose architecture() is for {found}; the data have {allowed}"
        )


def check_read(scenario: Scenario, method: Method) -> None:
    """Refuse keys without effect. A file with schemes may hold them: they are the conventions of its comparison."""
    if scenario.scheme is not None:
        return
    accounting, defaults = scenario.accounting, type(scenario.accounting)()
    for key in PRUNING:
        value = getattr(accounting, key)
        if value != getattr(defaults, key) and key not in method.read_keys():
            problem = f"is {value}, which {scenario.learning.method.name} does not read; remove it"
            raise scenario.error(("accounting", key), problem)
    if scenario.allocation.solver not in ("energy", "convex-energy"):
        for i, each in enumerate(scenario.devices):
            if any(each.cpu.min_frequency_hz.values):
                problem = f"is not read by the solver {scenario.allocation.solver}; remove it, or use energy"
                raise scenario.error(("devices", i, "cpu", "min_frequency"), problem)
    if scenario.network.downlink.mode == "ideal":
        for i, each in enumerate(scenario.devices):
            if any(each.receive_power_w.values):
                raise scenario.error(
                    ("devices", i, "receive_power"), "is not read with downlink: ideal; remove it"
                )


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
        raise scenario.error(
            at, "is printed, which breaks its bounds and is for comparison only; use kkt"
        )
    if solver not in solvers.METHODS or solver == "levels":
        allowed = ", ".join(name for name in solvers.METHODS if name not in ("printed", "levels"))
        raise scenario.error(at, f"is {solver}; allowed are {allowed} or ./file.py:function")
    if scenario.budget.latency_threshold_s is None and solver not in NO_DEADLINE:
        free = ", ".join(sorted(NO_DEADLINE))
        raise scenario.error(
            at, f"is {solver}, which needs budget.latency_threshold; give one, or use one of {free}"
        )
    return partial(allocate, method=solver)
