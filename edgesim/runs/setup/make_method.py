"""The method that a scenario names, built and checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field
from difflib import get_close_matches
from functools import lru_cache
from inspect import Parameter, Signature, isabstract, isfunction, signature
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from edgesim.clocks.clock_conflicts import CHOOSE_CLOCKS
from edgesim.errors import ScenarioKeyError
from edgesim.extensions.entry_points import added_names, find_object, more_names
from edgesim.scenario.hardware.device_schema import DeviceClass
from edgesim.scenario.loader import Scenario
from fl import methods
from fl.data import datasets
from fl.errors import MethodError, did_you_mean
from fl.method_base.hyperparameter_declaration import in_full
from fl.method_base.method import PRUNING, Method, bind, with_length
from fl.models.architectures import Architecture, size_of
from fl.task import LearningTask
from fl.timing_only import check_countable

METHOD_NAME = ("learning", "method", "name")
LITTLE_SHARED = 0.1  # of the weights: a module with less of them shared is a warning
NEARLY = 0.85  # alike are a hook and a misspelt one: personalise and personalize 0.91


def make_method(
    scenario: Scenario, task: LearningTask, allow_code: bool
) -> tuple[Method, dict[str, Any]]:
    """The scenario's method with its parameters checked, and all those that it reads.

    Args:
        scenario: the checked scenario.
        task: model and data; the method may exchange its model.
        allow_code: the method may be the user's own, ``./file.py:name``.

    Raises:
        MethodError: the method, or a parameter of it, cannot be used.
        ScenarioKeyError: the user's code cannot be loaded, or a key has no effect.
    """
    name, params = scenario.learning.method.name, scenario.learning.method.params
    cls = find_object("methods", scenario, name, METHOD_NAME, allow_code)
    if cls is None:
        if name not in methods.available():
            raise unknown_method(name)
        cls = methods.resolve(name)
    if not (isinstance(cls, type) and issubclass(cls, Method) and not isabstract(cls)):
        problem = f"is {name}, no complete subclass of fl.method_base.method.Method, or of FedAvg"
        lacks = ", ".join(sorted(getattr(cls, "__abstractmethods__", ())))
        raise MethodError("name", f"{problem}; it lacks {lacks}" if lacks else problem)
    for each in cls.__mro__:
        for attribute, value in vars(each).items():
            if isinstance(value, Field):  # a decorator puts the default in its place
                problem = f"is {name}, whose {attribute} is a param, but which has no decorator"
                raise MethodError("name", f"{problem} @dataclass(frozen=True, eq=False)")
    check_hooks(name, cls)
    params = with_length(cls, params, scenario.method_rounds, task.devices)
    method = bind(cls, task, params)
    if not task.objective.plain and method.own_loss():
        problem = f"is {name}, which {method.own_loss()}; use another method, or cross entropy"
        raise MethodError("name", problem)
    check_architecture(name, task.architecture, method.task.architecture)
    if scenario.learning.dataset == datasets.NONE:
        check_countable(method)
    size = method.layout.size
    for hook in ("personal", "prunable"):
        mask = np.asarray(getattr(method, hook)())
        if mask.shape != (size,) or mask.dtype != bool:
            raise MethodError("name", f"is {name}, whose {hook}() is no mask bool [{size}]")
    if scenario.scheme is None:  # schemes share a file: its keys are the comparison's conventions
        check_read(scenario, method)
    return method, in_full(cls, params)


def sharing_warnings(scenario: Scenario, method: Method) -> list[str]:
    """The warning about a module of the user's own of which hardly anything is shared, if it is so.

    What is shared follows from what is called the classifier, the last layer where nobody says.
    """
    count, own = method.weights(), method.task.architecture
    little = 0 < count["global"] < LITTLE_SHARED * count["total"]
    # What is shared beside the weights of the module, such as thresholds, has no part in it.
    little = little and bool(method.shared[: own.layout.size].any())
    if own.in_layers or scenario.learning.classifier or not little:
        return []
    name = scenario.learning.method.name
    return [
        f"learning.classifier: is not given, so that {name} shares {count['global']:,} of "
        f"{count['total']:,} weights, and all others stay at their device; name the modules of "
        f"{scenario.learning.model} that are the classifier, such as [hidden, head]"
    ]


def hook_warnings(name: str, cls: type[Method]) -> list[str]:
    """Warnings about functions that nothing calls and that are called nearly as a hook is."""
    return [
        f"learning.method.name: is {name}, whose {key} nothing calls; did you mean {near}?"
        for key, near in _nearly_hooks(cls)
    ]


@lru_cache(maxsize=64)
def _nearly_hooks(cls: type[Method]) -> list[tuple[str, str]]:
    """Functions of a class that nothing calls, and the hooks whose names are nearly theirs."""
    found, functions = list[tuple[str, str]](), dict[str, FunctionType]()
    for owner in reversed(cls.__mro__[:-1]):
        more = {key: each for key, each in vars(owner).items() if isfunction(each)}
        for key in sorted(more.keys() - functions.keys()):
            near = get_close_matches(key, functions, n=1, cutoff=NEARLY)
            if near and not _is_mentioned(key, owner, cls):
                found.append((key, near[0]))
        functions |= more
    return found


def _is_mentioned(name: str, owner: type, cls: type) -> bool:
    """Is a function of a class used by it, by its relatives behind ``cls``, or beside it?"""
    wrapped = ("__func__", "fget", "func")  # of static methods, of properties, of cached ones
    members = [each for relative in cls.__mro__[:-1] for each in vars(relative).values()]
    members += [getattr(each, inner, None) for each in members for inner in wrapped]
    for each in filter(isfunction, list(vars(owner).values())):
        members += each.__globals__.values()
    codes = [each.__code__ for each in members if isfunction(each)]
    for code in codes:  # which gets longer: comprehensions, generators and lambdas within
        if name in (*code.co_names, *code.co_consts):
            return True
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
    return False


def unknown_method(name: str) -> MethodError:
    """The sentence about a method that is neither shipped nor installed."""
    known, added = methods.available(), added_names("methods")
    allowed = f"{', '.join(known)} or ./file.py:class{more_names('methods')}"
    near = did_you_mean(name, [*known, *added])
    return MethodError("name", f'is "{name}"; allowed are {allowed}{near}')


def check_hooks(name: str, cls: type[Method]) -> None:
    """Refuse hooks that cannot be called as those that they stand for, in any class behind it."""
    ancestors = cls.__mro__[:-1]
    for place, owner in enumerate(ancestors):
        for hook in vars(owner):
            base = next((each for each in ancestors[place + 1 :] if hook in vars(each)), None)
            if hook.startswith("_") or base is None or not callable(getattr(base, hook)):
                continue
            given, asked = getattr(owner, hook), getattr(base, hook)
            if not callable(given):
                raise MethodError("name", f"is {name}, whose {hook} is no method")
            try:
                signature(given).bind(*signature(asked).parameters)
            except TypeError:
                problem = (
                    f"is {name}, whose {_shown(hook, given)} is called as {_shown(hook, asked)}"
                )
                raise MethodError("name", problem) from None


def _shown(hook: str, function: Callable) -> str:
    """A hook with the names of its parameters, without annotations."""
    plain = signature(function)
    params = [each.replace(annotation=Parameter.empty) for each in plain.parameters.values()]
    return f"{hook}{plain.replace(parameters=params, return_annotation=Signature.empty)}"


def check_architecture(name: str, given: Architecture, made: Architecture) -> None:
    """Refuse what a method's architecture() made where it is none, or is for other data."""
    if not isinstance(made, Architecture):
        raise MethodError(
            "name", f"is {name}, whose architecture() gives no fl.models.architectures.Architecture"
        )
    if (made.input_shape, made.classes) != (given.input_shape, given.classes):
        found, allowed = (
            f"{size_of(each.input_shape)} and {each.classes} classes" for each in (made, given)
        )
        raise MethodError(
            "name", f"is {name}, whose architecture() is for {found}; the data have {allowed}"
        )


def check_read(scenario: Scenario, method: Method) -> None:
    """Refuse keys without effect."""
    accounting, name = scenario.accounting, scenario.learning.method.name
    for key in PRUNING:
        value = getattr(accounting, key)
        if value != getattr(type(accounting)(), key) and key not in method.read_keys():
            problem = f"is {value}, which {name} does not read; remove it"
            raise ScenarioKeyError(("accounting", key), problem)
    solver, ideal = scenario.allocation.solver, scenario.network.downlink.mode == "ideal"
    for i, each in enumerate(scenario.devices):
        if any(each.cpu.min_frequency_hz.values) and solver not in CHOOSE_CLOCKS:
            problem = f"is not read by the solver {solver}; remove it, or use energy"
            raise ScenarioKeyError(("devices", i, "cpu", "min_frequency"), problem)
        if solver in CHOOSE_CLOCKS:
            _refuse_uncounted(each, solver, ("devices", i))
        hands_over = each.mobility is not None and scenario.network.layout.kind != "single"
        if any(each.receive_power_w.values) and ideal and not hands_over:
            problem = "is not read with downlink: ideal; remove it"
            raise ScenarioKeyError(("devices", i, "receive_power"), problem)


def _refuse_uncounted(each: DeviceClass, solver: str, path: tuple[str | int, ...]) -> None:
    """Refuse what a solver that chooses clocks and powers for their joules does not count."""
    cpu = each.cpu
    uncounted = {
        ("cpu", "static_power"): any(cpu.static_power_w.values),
        ("cpu", "background"): cpu.background is not None,
        ("cpu", "governor"): cpu.governor != "performance",
        ("radio",): each.radio is not None,
    }
    for key, given in uncounted.items():
        if given:
            problem = f"is not counted by the solver {solver}, which chooses clocks and powers"
            raise ScenarioKeyError((*path, *key), f"{problem}; remove it, or use another solver")
