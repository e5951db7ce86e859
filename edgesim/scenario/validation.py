"""The checks between sections, and what pydantic found wrong in the words of the other errors."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Literal, TypeVar, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from edgesim.errors import ScenarioError
from edgesim.scenario.key_docs import all_keys, example_of, unknown_key
from edgesim.scenario.per_device_values import Draw
from edgesim.scenario.schema import LearningSection, ScenarioKeys
from edgesim.scenario.section import Section, ValueRefusedError, refuse
from edgesim.scenario.yaml_locations import Document, KeyPath

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
    _check_learning(scenario.learning)


def _check_devices(scenario: ScenarioKeys) -> None:
    if not scenario.devices:
        problem = "is an empty list; write at least one device class, such as {count: 10, ...}"
        raise ValueRefusedError(problem, keys=("devices",))
    path_loss = scenario.network.channel.path_loss
    for i, each in enumerate(scenario.devices):
        _check_lengths(each, ("devices", i), each.count, "count says")
        _check_distance(each.distance_m, path_loss.model, ("devices", i, "distance"))
    where = ("network", "channel", "path_loss")
    _check_lengths(path_loss, where, sum(each.count for each in scenario.devices), "the cell has")


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


def _check_distance(distance_m: Draw | None, model: str, path: KeyPath) -> None:
    if model == "log-distance" and distance_m is None:
        problem = "is missing; path_loss model log-distance needs it, such as 100 m"
        raise ValueRefusedError(problem, keys=path)
    if model != "log-distance" and distance_m is not None:
        problem = f"is not read with path_loss model {model}"
        raise ValueRefusedError(f"{problem}; remove it, or write model: log-distance", keys=path)


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
