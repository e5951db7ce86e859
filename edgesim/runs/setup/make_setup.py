"""A scenario made ready to run: every name resolved, devices drawn, data divided."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

from edgesim.clocks.clock_conflicts import check_clock
from edgesim.errors import RunError, ScenarioKeyError
from edgesim.extensions.device_presence import check_absences, find_absences
from edgesim.extensions.own_channel import find_channel
from edgesim.extensions.own_path_loss import find_path_loss
from edgesim.extensions.selection_rule import check_selection, find_selection
from edgesim.hierarchy.make_hierarchy import check_method_of_tiers, make_hierarchy
from edgesim.network.device import draw_fleet
from edgesim.network.hardware.clock_levels import make_clock_levels
from edgesim.network.hardware.drawn_hardware import draw_hardware
from edgesim.network.layout.cell_drop import make_drop
from edgesim.network.mobility.movement import Movement, make_movement
from edgesim.runs.error_sentences import locate_user_errors
from edgesim.runs.setup.data_source import KEPT_DATA, find_data
from edgesim.runs.setup.learning_task import find_model, make_task
from edgesim.runs.setup.make_allocator import make_allocator
from edgesim.runs.setup.make_method import make_method
from edgesim.runs.setup.setup import Setup
from edgesim.scenario.loader import Scenario
from edgesim.seeds import Seeds
from fl.learned_selection.learning_rule import LearningRule
from fl.method_base.hyperparameter_declaration import in_full


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
    seed = _check_seed(scenario.seed if seed is None else seed)
    seeds = Seeds(seed)
    source = find_data(scenario, data, allow_code)
    if data is not None and not isinstance(data, str | Path):
        scenario = scenario.with_keys("learning", dataset=KEPT_DATA)
    own_model = find_model(scenario, model, allow_code)
    if model is not None:
        scenario = scenario.with_keys("learning", model=model_name(model))
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
    own, hierarchy = find_path_loss(scenario, seeds, allow_code), None
    if scenario.tiers is None:
        channel = find_channel(scenario, fleet, seeds, own, movement)
    else:
        check_method_of_tiers(scenario.learning.method.name, method)
        _check_devices_of_tiers(hardware, movement)
        hierarchy = make_hierarchy(scenario, scenario.tiers, seeds, fleet, method, allocator, own)
        channel = hierarchy.edges[0].channel  # not used: every edge has its own
    check_absences(scenario, hardware)
    return Setup(
        _with_defaults(scenario, parameters, selector),
        seed,
        seeds,
        fleet,
        channel,
        method.task,
        method,
        allocator,
        source,
        hardware,
        processes,
        hierarchy=hierarchy,
        absences=find_absences(scenario, seeds),
        selector=selector,
        levels=make_clock_levels(scenario.devices, hardware),
    )


def _check_seed(seed: int) -> int:
    if not isinstance(seed, Integral) or not 0 <= seed < 2**63:
        raise RunError(f"seed is {seed}; give a whole number from 0 to {2**63 - 1}")
    return int(seed)


def _check_devices_of_tiers(hardware: dict[int, Any], movement: Movement | None) -> None:
    if hardware:
        problem = "have heat, other load, a battery or a modem, which tiers do not know"
        raise ScenarioKeyError(("devices",), f"{problem}; remove those keys, or tiers")
    if movement is not None:
        problem = "have a mobility, and devices stay with their edge servers so far"
        raise ScenarioKeyError(("devices",), f"{problem}; remove it, or tiers")


def _with_defaults(
    scenario: Scenario, parameters: dict[str, Any], selector: LearningRule | None
) -> Scenario:
    """The scenario that a run is recognised by: with the defaults of method and selection."""
    scenario = scenario.with_method(parameters)
    if selector is None:
        return scenario
    spec = scenario.learning.selection
    spec = replace(spec, params=in_full(type(selector), spec.params))
    return scenario.with_keys("learning", selection=spec)


def model_name(model: Any) -> str:
    """What the scenario of a run calls a model that came from Python."""
    return getattr(model, "__qualname__", type(model).__qualname__).rpartition(".")[2]
