"""The selection rule that a scenario names, and a check of what a rule of the user's chooses."""

from __future__ import annotations

import pickle
import random
import sys
from types import ModuleType

import numpy as np

from edgesim.errors import ScenarioKeyError, counted
from edgesim.extensions.entry_points import find_function, more_names
from edgesim.scenario.clock.clock_schema import OVERLAPPING
from edgesim.scenario.loader import Scenario
from fl.contracts import Array, View
from fl.data import datasets
from fl.errors import MethodError, did_you_mean
from fl.learned_selection.catalogue import LEARNING_RULES
from fl.learned_selection.learning_rule import LearningRule
from fl.method_base.hyperparameter_declaration import check
from fl.method_base.method import Method
from fl.selection.selection_rules import RULES, SelectionRule

SELECTION = ("learning", "selection")
PARTICIPANTS = ("learning", "method", "participants")
DEFAULT = "uniform"
SHIPPED = [*RULES, *LEARNING_RULES]


def find_selection(scenario: Scenario, allow_code: bool) -> SelectionRule | LearningRule:
    """The rule of ``learning.selection``.

    Args:
        scenario: the checked scenario.
        allow_code: the rule may be the user's own, ``./file.py:name``.

    Raises:
        ScenarioKeyError: there is no such rule, or the user's code cannot be loaded.
    """
    name, given = scenario.learning.selection.name, scenario.learning.selection.params
    if name in LEARNING_RULES:
        rule = LEARNING_RULES[name]
        try:
            return rule(**check(rule, given))
        except MethodError as error:
            problem = error.problem.replace("this method", name)
            raise ScenarioKeyError((*SELECTION, error.key), problem) from error
    own = find_function("selection", scenario, name, SELECTION, allow_code, "a view")
    if given:
        key = (*SELECTION, next(iter(given)))
        raise ScenarioKeyError(key, f"is no parameter of {name}, which has none; remove it")
    if own is not None:
        return checked(own, name)
    if name not in RULES:
        allowed = f"{', '.join(SHIPPED)} or ./file.py:function{more_names('selection')}"
        problem = f"is {name}; allowed are {allowed}"
        raise ScenarioKeyError(SELECTION, problem + did_you_mean(name, SHIPPED))
    return RULES[name][0]


def _shown(given: object) -> str:
    """What a rule chose, with plain numbers where it chose those of numpy."""
    if isinstance(given, list | tuple):
        given = [each.item() if isinstance(each, np.generic) else each for each in given]
    try:
        return str(given)[:80]
    except ValueError:  # so large a number that Python does not write it
        return "numbers of thousands of digits"


def _shared_generators(torch: ModuleType | None) -> bytes:
    """States of the generators of numpy, Python and torch that all code shares."""
    states = random.getstate(), np.random.get_state(legacy=False)
    return pickle.dumps((*states, torch and torch.get_rng_state().numpy()))


def checked(rule: SelectionRule, name: str) -> SelectionRule:
    """The rule, which raises a ScenarioKeyError where it chooses what cannot be, or by chance."""

    def choose(view: View, count: int, stream: np.random.Generator) -> Array:
        torch = sys.modules.get("torch")  # where it is loaded
        before = _shared_generators(torch)
        given = rule(view, count, stream)
        if _shared_generators(torch) != before:
            problem = f"is {name}, which draws random numbers of numpy, torch or Python's random, "
            problem += "which do not follow from the seed of a run; draw those of its stream"
            raise ScenarioKeyError(SELECTION, problem)
        try:
            chosen = np.asarray(given)
            # not a mask over devices, nor text, nor complex numbers, nor entries that are hidden
            are_numbers = chosen.dtype.kind in "iufO" and not np.ma.is_masked(given)
            chosen = chosen.astype(float) if are_numbers else np.full(1, np.nan)
        except (TypeError, ValueError, OverflowError):
            chosen = np.full(1, np.nan)
        if chosen.ndim != 1 or not np.isin(chosen, view.idle).all():
            problem = f"is {name}, which chose {_shown(given)} in round {view.g}"
            raise ScenarioKeyError(SELECTION, f"{problem}; choose among the devices of view.idle")
        if len(np.unique(chosen)) < len(chosen) or len(chosen) > count:
            problem = f"is {name}, which chose {_shown(given)} in round {view.g}"
            raise ScenarioKeyError(
                SELECTION, f"{problem}; choose at most {counted(count, 'device')}, each once"
            )
        return chosen.astype(int)

    return choose


def check_selection(scenario: Scenario, method: Method) -> None:
    """Refuse a rule that the method does not read, and participants that nobody could be.

    Raises:
        ScenarioKeyError: with the key to remove.
    """
    rule, name = scenario.learning.selection.name, scenario.learning.method.name
    if rule != DEFAULT and not method.leaves_choice_open():
        problem = f"is {rule}, which {name} does not read: it selects by a rule of its own"
        raise ScenarioKeyError(SELECTION, f"{problem}; remove it")
    asked, devices = method.participants, scenario.device_count
    if rule == "all" and asked is not None:
        problem = f"is {asked}, which the selection all does not read; remove it"
        raise ScenarioKeyError(PARTICIPANTS, problem)
    # A method's own default, which a run's resolved scenario names, asks at most all.
    if asked != type(method).participants and (asked or devices) > devices:
        problem = (
            f"is {asked}, but the cell has {counted(devices, 'device')}; write at most as many"
        )
        raise ScenarioKeyError(PARTICIPANTS, f"{problem}, or none")
    if rule in LEARNING_RULES:
        check_learning_rule(scenario, rule)


def check_learning_rule(scenario: Scenario, name: str) -> None:
    """Refuse a rule with a memory that the scenario does not tell what it needs."""
    rule, problem = LEARNING_RULES[name], ""
    if rule.needs_threshold and scenario.budget.latency_threshold_s is None:
        problem = "which needs budget.latency_threshold; give one, or use another rule"
    elif rule.needs_training and scenario.learning.dataset == datasets.NONE:
        problem = "which reads what training gives; name a data set, or use another rule"
    elif rule.needs_rounds and scenario.clock.mode in OVERLAPPING:
        problem = f"which plans rounds that do not overlap, and clock.mode {scenario.clock.mode} "
        problem += "lets them; use another rule, or clock.mode synchronous"
    if problem:
        raise ScenarioKeyError(SELECTION, f"is {name}, {problem}")
