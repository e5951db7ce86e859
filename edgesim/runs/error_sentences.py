"""Errors that users can cause, as one sentence with the file, line and key that they are about."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from edgesim.errors import EdgesimError, InfeasibleScenarioError, RunError, ScenarioKeyError
from edgesim.extensions.entry_points import package_code
from edgesim.extensions.user_code import failure_in, user_code
from edgesim.network.device import FleetError
from edgesim.records.checkpoint.usable_folder import DISK_FULL
from edgesim.scenario.loader import Scenario
from fl import methods
from fl.errors import (
    ClassifierError,
    DataError,
    InputsError,
    LearningError,
    MethodError,
    ModelError,
    ObjectiveError,
)
from fl.method_base.method import Method, parameters
from fl.out_of_memory import is_out_of_memory
from solvers import InfeasibleError, InvalidAllocationError, NumberRangeError, SolverError

RESUME = "make room, and the same command resumes where it stopped"
METHOD = ("learning", "method")
# A solver's words on a bound -> the parameter of the method that sets it, and what to say before
# its key: rho is to be "set", as rho_min can be raised only where rho was not given.
BOUNDS = {
    "pruned to rho_max": ("rho_max", "pruned to"),
    "raise rho_max": ("rho_max", "raise"),
    "raise rho_min": ("rho", "set"),
}
P = ParamSpec("P")
T = TypeVar("T")


class PartitionError(DataError):
    """The data cannot be divided as asked."""


# The key that an error is about; a subclass stands before its base.
KEY_OF_ERROR: dict[type[Exception], str] = {
    PartitionError: "learning.partition",
    DataError: "learning.dataset",
    ClassifierError: "learning.classifier",
    ModelError: "learning.model",
    FleetError: "devices",
    InvalidAllocationError: "allocation.solver",
    NumberRangeError: "allocation.solver",
}


@contextmanager
def user_errors(scenario: Scenario) -> Iterator[None]:
    """Raise what a scenario, its data, the user's code or a full machine causes as an EdgesimError.

    Raises:
        ScenarioError: a key has a value that cannot be used.
        InfeasibleScenarioError: the latency threshold cannot be met.
        RunError: anything else that the user can mend.
    """
    try:
        yield
    except (Exception, SystemExit) as error:  # sys.exit in the user's code would end in silence
        sentence = _sentence(error, scenario)
        if sentence is None:
            raise
        raise sentence from error


def locate_user_errors(function: Callable[Concatenate[Scenario, P], T]) -> Callable[..., T]:
    """A function of a scenario that raises its errors by `user_errors`."""

    @wraps(function)
    def call(scenario: Scenario, *args: P.args, **kwargs: P.kwargs) -> T:
        with user_errors(scenario):
            return function(scenario, *args, **kwargs)

    return call


def _sentence(error: BaseException, scenario: Scenario) -> EdgesimError | None:
    """The error to raise instead; None where it stays what it is."""
    cause = error.__cause__
    if type(cause) is type(error) and cause.args == error.args:
        # SimPy raises a copy of what ends a process that nobody waits for: the traceback, and with
        # it the user's line, is that of the original
        error = cause
    error = failure_in(error, [*user_code(scenario), *package_code(scenario)]) or error
    if isinstance(error, ScenarioKeyError):
        return scenario.error(error.key, error.problem)
    if isinstance(error, MethodError):
        return scenario.error((*METHOD, error.key), error.problem)
    if isinstance(error, ObjectiveError | InputsError):
        return scenario.error(("learning", error.key), error.problem)
    for kind, key in KEY_OF_ERROR.items():
        if isinstance(error, kind):
            return RunError(f"{scenario.where(key)}: {key}: {error}")
    if isinstance(error, InfeasibleError):
        name = scenario.learning.method.name
        method = methods.resolve(name) if name in methods.available() else None
        return InfeasibleScenarioError(infeasible_sentence(error, method))
    if isinstance(error, SolverError | LearningError):
        return RunError(str(error))
    return _machine_is_full(error)


def infeasible_sentence(error: InfeasibleError, method: type[Method] | None) -> str:
    """The solver's sentence, with the keys that allow more time, or prune more.

    Args:
        error: of the solver.
        method: whose devices do not fit; None: code of the user's own.
    """
    sentence = str(error).rstrip(".")
    known = {each.name for each in parameters(method)} if method else set()
    for words, (name, instead) in BOUNDS.items():
        if name in known:
            sentence = sentence.replace(words, f"{instead} learning.method.{name}")
    if math.isinf(error.extra_s):
        return sentence
    also = "or " if ";" in sentence else ""  # beside what it proposes itself
    return f"{sentence}; {also}write allocation.when_infeasible: stretch"


def first_ten(devices: list[int]) -> str:
    """The numbers of devices in a sentence: not more than ten of them."""
    return ", ".join(str(k) for k in devices[:10]) + (", ..." if len(devices) > 10 else "")


def named_devices(devices: list[int]) -> str:
    """``device 3`` or ``devices 3, 4`` in a sentence; at most ten of them."""
    return f"device{'s' * (len(devices) != 1)} {first_ten(devices)}"


def _machine_is_full(error: BaseException) -> RunError | None:
    """The error where memory or disk are full; None for others."""
    if isinstance(error, MemoryError | RuntimeError) and is_out_of_memory(error):
        known = isinstance(error, MemoryError) and str(error)
        return RunError(f"{error if known else 'the memory is full'}; {RESUME}")
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        place = f"{error.filename}: " if error.filename else ""
        return RunError(f"{place}{error.strerror}; {RESUME}")
    return None
