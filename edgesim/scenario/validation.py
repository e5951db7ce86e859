"""The checks between sections, and what pydantic found wrong in the words of the other errors."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Literal, TypeVar, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from edgesim.errors import ScenarioError
from edgesim.scenario.key_docs import all_keys, example_of, unknown_key
from edgesim.scenario.network_schema import DeviceClass, NetworkSection
from edgesim.scenario.per_device_values import Draw
from edgesim.scenario.radio.channel_schema import TR38901, Tr38901PathLoss
from edgesim.scenario.schema import LearningSection, ScenarioKeys
from edgesim.scenario.section import Section, ValueRefusedError, refuse
from edgesim.scenario.yaml_locations import Document, KeyPath

WITH_LAWS = ("kkt", "equal", "proportional")  # solvers that know other rates than Shannon's
Checked = TypeVar("Checked", bound=ScenarioKeys)


def validated(model: type[Checked], document: Document, folder: Path) -> Checked:
    """The document as an object of a pydantic model.

    Args:
        model: `edgesim.scenario.Scenario`.
        document: a mapping.
        folder: paths in the document are relative to it.

    Raises:
        ScenarioError: the first thing that is wrong, in one sentence with its place.
    """
    try:
        context = {"document": document, "folder": folder}
        return model.model_validate(document.tree, context=context)
    except ValidationError as problem:
        raise _scenario_error(problem, document) from None


def _scenario_error(problem: ValidationError, document: Document) -> ScenarioError:
    """Unknown keys come before all others: a misspelt key also makes the right one missing.

    Else the order is that of the schema.
    """
    errors = problem.errors(include_url=False)
    first = min(errors, key=lambda error: error["type"] != "extra_forbidden")
    # pydantic puts the kind of a section into the path, where a section has several kinds
    keys = tuple(part for part in first["loc"] if part not in _kinds())
    if first["type"] == "extra_forbidden":
        return ScenarioError(f"{document.place_of(keys)}: {_unexpected(keys)}")
    refused = _refused(first, keys).below(*keys)
    return document.error(refused.keys, refused.problem, refused.shown)


@functools.cache
def _kinds() -> frozenset[str]:
    """The words that name the kind of a section, such as log-distance."""
    fields = (
        each for section in Section.__subclasses__() for each in section.model_fields.values()
    )
    types = (field.annotation for field in fields)
    return frozenset(
        word for each in types if get_origin(each) is Literal for word in get_args(each)
    )


def _unexpected(keys: KeyPath) -> str:
    name, parent = _without_positions(keys), ".".join(map(str, keys[:-1]))
    if any(info.key == name for info in all_keys()):
        shown = ".".join(map(str, keys))
        return f"the key {shown} belongs to another kind of {parent}; remove it, or change the kind"
    return unknown_key(name)


def _without_positions(keys: KeyPath) -> str:
    return ".".join(part for part in keys if isinstance(part, str))


def _refused(error: ErrorDetails, keys: KeyPath) -> ValueRefusedError:
    kind, context = error["type"], error.get("ctx", {})
    name = _without_positions(keys)
    if kind == "value_error":
        return context["error"]
    if kind == "missing":
        return ValueRefusedError(f"is missing; write for instance {example_of(name)}")
    if kind == "union_tag_not_found":
        key = context["discriminator"].strip("'")
        return ValueRefusedError(f"has no {key}; write for instance {example_of(f'{name}.{key}')}")
    if kind == "union_tag_invalid":
        allowed = context["expected_tags"].replace("'", "").replace(", ", " or ")
        key = context["discriminator"].strip("'")
        return refuse(context["tag"], f"; allowed is {allowed}", key)
    wanted = "a list" if kind == "tuple_type" else "a mapping of keys"
    return refuse(error["input"], f"; write {wanted}, for instance {example_of(name)}")


def check_sections(scenario: ScenarioKeys) -> None:
    """Refuse what is right in each section, but does not fit together.

    Raises:
        ValueRefusedError: with the path of the key.
    """
    _check_devices(scenario)
    if scenario.clock.mode == "deadline" and scenario.budget.latency_threshold_s is None:
        example = "budget: {latency_threshold: 25 ms}"
        problem = f"is deadline, which needs budget.latency_threshold; write for instance {example}"
        raise ValueRefusedError(problem, keys=("clock", "mode"))
    if scenario.allocation.rate == "quantile" and scenario.budget.latency_threshold_s is None:
        example = "budget: {latency_threshold: 25 ms}"
        problem = "is quantile, which needs a threshold that a device can miss"
        raise ValueRefusedError(
            f"{problem}; write for instance {example}", keys=("allocation", "rate")
        )
    _check_adaptation(scenario)
    _check_learning(scenario.learning)


def _check_adaptation(scenario: ScenarioKeys) -> None:
    """A law of the ratio within a share needs a noise density, and solvers that know laws."""
    section, network, allocation = (
        scenario.network.adaptation,
        scenario.network,
        scenario.allocation,
    )
    if section is None or section.rate == "shannon":
        return
    path, given = ("network", "adaptation", "rate"), f"is {section.rate}, which"
    if network.noise.density_w_per_hz is None:
        problem = f"{given} needs a noise density; write for instance noise: -174 dBm/Hz"
        raise ValueRefusedError(problem, keys=path)
    own = "." in allocation.solver or "/" in allocation.solver
    if not own and (allocation.solver not in WITH_LAWS or allocation.resource_blocks):
        allowed = f"{', '.join(WITH_LAWS)}, without resource_blocks"
        raise ValueRefusedError(f"{given} needs one of the solvers {allowed}", keys=path)


def _check_devices(scenario: ScenarioKeys) -> None:
    if not scenario.devices:
        problem = "is an empty list; write at least one device class, such as {count: 10, ...}"
        raise ValueRefusedError(problem, keys=("devices",))
    path_loss = scenario.network.channel.path_loss
    for i, each in enumerate(scenario.devices):
        _check_lengths(each, ("devices", i), each.count, "count says")
        _check_place(each, path_loss.model, ("devices", i))
    where = ("network", "channel", "path_loss")
    _check_lengths(path_loss, where, sum(each.count for each in scenario.devices), "the cell has")
    _check_carrier(scenario.network)


def _check_lengths(section: Section, path: KeyPath, devices: int, source: str) -> None:
    """Lists have one value per device; a trace has at least that many."""
    for name, field in type(section).model_fields.items():
        value, at = getattr(section, name), (*path, str(field.alias))
        if isinstance(value, Section):
            _check_lengths(value, at, devices, source)
        elif isinstance(value, Draw) and value.kind in ("list", "trace"):
            size = len(value.values)
            if size < devices or (value.kind == "list" and size > devices):
                problem = f"has {size} values, but {source} {devices} devices"
                raise ValueRefusedError(f"{problem}; write one value per device", keys=at)


def _check_place(each: DeviceClass, model: str, path: KeyPath) -> None:
    """Path loss by distance needs a place, and one by frequency and height reads a height."""
    by_distance = (each.distance_m is not None, each.position is not None)
    if model in ("constant", "trace"):
        for name, given in zip(("distance", "position"), by_distance, strict=True):
            if given:
                problem = f"is not read with path_loss model {model}"
                advice = "remove it, or write model: log-distance"
                raise ValueRefusedError(f"{problem}; {advice}", keys=(*path, name))
    elif not any(by_distance) and model != "code":
        problem = f"is missing; path_loss model {model} needs it, such as 100 m"
        raise ValueRefusedError(problem, keys=(*path, "distance"))
    elif all(by_distance):
        problem = "stands beside distance; keep one of the two"
        raise ValueRefusedError(problem, keys=(*path, "position"))
    if each.height_m is not None and model not in TR38901:
        problem = f"is not read with path_loss model {model}; remove it"
        raise ValueRefusedError(problem, keys=(*path, "height"))
    points = each.position.points_m if each.position else ()
    if points and len(points) != each.count:
        problem = f"has {len(points)} points, but count says {each.count} devices"
        raise ValueRefusedError(f"{problem}; write one per device", keys=(*path, "position"))


def _check_carrier(network: NetworkSection) -> None:
    """What is computed from the carrier needs one, within the range of the model."""
    loss, fading = network.channel.path_loss, network.channel.fading
    needs = "network.carrier; write for instance carrier: {frequency: 3.5 GHz}"
    if network.carrier is None:
        if isinstance(loss, Tr38901PathLoss):
            problem = f"is {loss.model}, which needs {needs}"
            raise ValueRefusedError(problem, keys=("network", "channel", "path_loss", "model"))
        if fading.speed_m_per_s is not None:
            keys = ("network", "channel", "fading", "speed")
            raise ValueRefusedError(f"needs {needs}", keys=keys)
        return
    by_frequency = isinstance(loss, Tr38901PathLoss) or fading.speed_m_per_s is not None
    if not by_frequency and network.carrier.bandwidth_hz is None:
        problem = (
            "is not read without a path_loss model of TR 38.901, fading by speed or "
            "carrier.bandwidth; remove it"
        )
        raise ValueRefusedError(problem, keys=("network", "carrier"))
    highest_ghz = 30.0 if loss.model == "rma" else 100.0
    inside = 0.5e9 <= network.carrier.frequency_hz <= highest_ghz * 1e9
    if isinstance(loss, Tr38901PathLoss) and not inside:
        problem = f"is beyond {loss.model}, which holds from 0.5 to {highest_ghz:g} GHz"
        raise ValueRefusedError(problem, keys=("network", "carrier", "frequency"))


def _check_learning(learning: LearningSection) -> None:
    """A data set is divided; without one there is nothing to divide and nothing to train."""
    if learning.dataset != "none":
        if learning.partition is None:
            problem = f"is missing; write for instance {example_of('learning.partition')}"
            raise ValueRefusedError(problem, keys=("learning", "partition"))
    elif learning.partition is not None:
        problem = "is not read with dataset: none; remove it, or write none"
        raise ValueRefusedError(problem, keys=("learning", "partition"))
    elif learning.validation is not None:
        raise ValueRefusedError(
            "is not read with dataset: none; remove it", keys=("learning", "validation")
        )
    elif learning.device != "cpu":
        problem = "is not read with dataset: none; remove it"
        raise ValueRefusedError(problem, keys=("learning", "device"))
