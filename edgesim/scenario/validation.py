"""The checks between sections, and what pydantic found wrong in the words of the other errors."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeVar, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from edgesim.errors import ScenarioError
from edgesim.scenario.checks.interference_checks import check_network
from edgesim.scenario.clock.clock_schema import OVERLAPPING
from edgesim.scenario.hierarchy.tiers_checks import check_tiers
from edgesim.scenario.key_docs import all_keys, example_of, unknown_key
from edgesim.scenario.network_schema import AMONG_SENDERS, DeviceClass, NetworkSection
from edgesim.scenario.per_device_values import Draw
from edgesim.scenario.radio.channel_schema import TR38901, Tr38901PathLoss
from edgesim.scenario.radio.layout_checks import check_in_layout, check_layout, check_power_control
from edgesim.scenario.radio.own_loss_schema import written_key
from edgesim.scenario.schema import AllocationSection, LearningSection, ScenarioKeys
from edgesim.scenario.section import Section, ValueRefusedError, refuse
from edgesim.scenario.yaml_locations import Document, KeyPath

WITH_LAWS = ("kkt", "equal", "proportional")  # solvers that know other rates than Shannon's
NEEDS_LAWS = f"needs one of the solvers {', '.join(WITH_LAWS)}, without resource_blocks"
LEAST_CROSSING_S = 0.01  # of an area that devices move in, or they do nothing but turn
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
    keys = _keys_of(first["loc"], document.tree)
    if first["type"] == "extra_forbidden":
        # the last part is the key itself, even where a kind is called the same
        keys = (*_keys_of(first["loc"][:-1], document.tree), first["loc"][-1])
        return ScenarioError(f"{document.place_of(keys)}: {_unexpected(keys)}")
    refused = _refused(first, keys).below(*keys)
    return document.error(written_key(document.tree, refused.keys), refused.problem, refused.shown)


def _keys_of(location: KeyPath, tree: object) -> KeyPath:
    """The keys of a path, into which pydantic puts the kind of a section that has several."""
    keys: list[str | int] = []
    for part in location:
        written = isinstance(tree, dict) and part in tree
        if part in _kinds() and not written:
            continue
        keys.append(part)
        if isinstance(tree, list) and isinstance(part, int):
            tree = tree[part]
        else:
            tree = tree[part] if written and isinstance(tree, dict) else None
    return tuple(keys)


@functools.cache
def _kinds() -> frozenset[str]:
    """The words that name the kind of a section, such as log-distance."""
    fields = (each for section in _below(Section) for each in section.model_fields.values())
    types = (field.annotation for field in fields)
    return frozenset(
        word for each in types if get_origin(each) is Literal for word in get_args(each)
    )


def _below(section: type[Section]) -> list[type[Section]]:
    """All subclasses of a section."""
    return [each for own in section.__subclasses__() for each in (own, *_below(own))]


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
    if scenario.tiers is not None:
        check_tiers(scenario.tiers, scenario)
    stop = scenario.stop
    if stop is not None and stop.time_s is None and stop.jobs is None:
        raise ValueRefusedError("is empty; write time: 1 h or jobs: 1000", keys=("stop",))
    if scenario.server is not None and scenario.tiers is not None:
        problem = "is not read with tiers, whose edges and cloud never fail; remove it"
        raise ValueRefusedError(problem, keys=("server",))
    check_network(scenario)
    _check_adaptation(scenario)
    _check_shared_band(scenario.network, scenario.devices)
    _check_jobs_that_go_on(scenario)
    if scenario.network.power_control is not None:
        network, allocation = scenario.network, scenario.allocation
        solver = None if _knows_laws(allocation) else f"{NEEDS_LAWS}, not {allocation.solver}"
        check_power_control(network.noise, network.channel.path_loss, network.uplink.share, solver)
    _check_learning(scenario.learning)


def _check_jobs_that_go_on(scenario: ScenarioKeys) -> None:
    """A job that goes on later keeps its share of the band meanwhile."""
    share, solver = scenario.network.uplink.share, scenario.allocation.solver
    if share not in ("fixed", "slots"):
        gives = f"network.uplink.share: {share} gives it away; write fixed, or lost"
    elif scenario.clock.mode in OVERLAPPING and solver != "equal":
        gives = f"allocation.solver: {solver} gives it away; write equal, or lost"
    else:
        return
    for i, each in enumerate(scenario.devices):
        for name in ("on_leave", "on_failure"):
            if (value := getattr(each, name)) != "lost":
                problem = f"is {value}, which keeps the device's share of the band, and {gives}"
                raise ValueRefusedError(problem, keys=("devices", i, name))


def _check_adaptation(scenario: ScenarioKeys) -> None:
    """A law of the ratio within a share needs a noise density, and solvers that know laws."""
    section, network, allocation = (
        scenario.network.adaptation,
        scenario.network,
        scenario.allocation,
    )
    if section is None or section.rate == "shannon":
        return
    if section.csi is not None and network.channel.fading.kind == "none":
        problem = "is read with fading only; remove it, or write network.channel.fading"
        raise ValueRefusedError(problem, keys=("network", "adaptation", "csi"))
    if section.csi is not None and network.channel.fading.delay_spread_s is not None:
        problem = "knows one fade of the whole band; remove it, or channel.fading.delay_spread"
        raise ValueRefusedError(problem, keys=("network", "adaptation", "csi"))
    path, given = ("network", "adaptation", "rate"), f"is {section.rate}, which"
    if network.noise.density_w_per_hz is None:
        problem = f"{given} needs a noise density; write for instance noise: -174 dBm/Hz"
        raise ValueRefusedError(problem, keys=path)
    if not _knows_laws(allocation):
        raise ValueRefusedError(f"{given} {NEEDS_LAWS}", keys=path)


def _knows_laws(allocation: AllocationSection) -> bool:
    """Whether the solver knows other rates than Shannon's; one of the user's own may."""
    own = "." in allocation.solver or "/" in allocation.solver
    return own or (allocation.solver in WITH_LAWS and not allocation.resource_blocks)


def _check_shared_band(network: NetworkSection, devices: Sequence[DeviceClass]) -> None:
    """Where the band belongs to those that send, nobody's upload is cut into pieces otherwise."""
    share, path = network.uplink.share, ("network", "uplink", "share")
    if share not in AMONG_SENDERS:
        return
    if network.adaptation is not None and network.adaptation.errors == "drawn":
        problem = f"is {share}, which does not repeat lost blocks"
        advice = "write adaptation: {errors: expected}, or share: fixed"
        raise ValueRefusedError(f"{problem}; {advice}", keys=path)
    if network.adaptation is not None and network.adaptation.csi is not None:
        problem = f"is {share}, which knows its channel; remove adaptation.csi"
        raise ValueRefusedError(f"{problem}, or write share: fixed", keys=path)
    if network.adaptation is not None and not network.adaptation.split:
        problem = f"is {share}, which splits shares; remove adaptation.split"
        raise ValueRefusedError(f"{problem}, or write share: fixed", keys=path)
    if network.channel.fading.delay_spread_s is not None:
        problem = f"is {share}, which counts with a flat band; remove channel.fading.delay_spread"
        raise ValueRefusedError(f"{problem}, or write share: fixed", keys=path)
    if network.carrier is not None and network.carrier.tdd_clock == "slots":
        problem = f"is {share}, which counts with the mean over the TDD pattern"
        raise ValueRefusedError(f"{problem}; write tdd_clock: fluid, or share: fixed", keys=path)
    if share == "edf" and network.noise.density_w_per_hz is not None:
        problem = "is edf, which is best only where the noise is a power whatever the share"
        advice = "write noise: -110 dBm, or share: fair"
        raise ValueRefusedError(f"{problem}; {advice}", keys=path)
    for i, each in enumerate(devices):
        if share == "edf" and any(
            (each.cpu.thermal, each.cpu.background, each.battery, each.radio)
        ):
            problem = f"is edf, and devices.{i} has hardware that counts sending without a pause"
            raise ValueRefusedError(f"{problem}; write share: fair", keys=path)


def _check_devices(scenario: ScenarioKeys) -> None:
    if not scenario.devices:
        problem = "is an empty list; write at least one device class, such as {count: 10, ...}"
        raise ValueRefusedError(problem, keys=("devices",))
    path_loss = scenario.network.channel.path_loss
    for i, each in enumerate(scenario.devices):
        if each.cpu.governor == "deadline" and scenario.budget.latency_threshold_s is None:
            problem = "is deadline, which needs budget.latency_threshold; give one, or remove it"
            raise ValueRefusedError(problem, keys=("devices", i, "cpu", "governor"))
        _check_lengths(each, ("devices", i), each.count, "count says")
        _check_place(each, scenario.network, ("devices", i))
    refresh_s = scenario.network.channel.refresh_s
    if refresh_s is not None and not any(each.mobility for each in scenario.devices):
        problem = "is read where devices move only; remove it, or write devices.mobility"
        raise ValueRefusedError(problem, keys=("network", "channel", "refresh"))
    where = ("network", "channel", "path_loss")
    _check_lengths(path_loss, where, sum(each.count for each in scenario.devices), "the cell has")
    _check_carrier(scenario.network)
    check_layout(scenario.network.layout, path_loss)


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


def _check_place(each: DeviceClass, network: NetworkSection, path: KeyPath) -> None:
    """Path loss by distance needs a place, and one by frequency and height reads a height."""
    model, in_cells = network.channel.path_loss.model, network.layout.kind == "hex"
    check_in_layout(each.position, each.distance_m is not None, network.layout, model, path)
    by_distance = (each.distance_m is not None, each.position is not None)
    traced = each.mobility is not None and each.mobility.trace is not None
    if each.mobility is not None:
        _check_mobility(each, model, path)
    if model in ("constant", "trace"):
        for name, given in zip(("distance", "position"), by_distance, strict=True):
            if given:
                problem = f"is not read with path_loss model {model}"
                advice = "remove it, or write model: log-distance"
                raise ValueRefusedError(f"{problem}; {advice}", keys=(*path, name))
    elif not any(by_distance) and model != "code" and not (in_cells or traced):
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


def _check_mobility(each: DeviceClass, model: str, path: KeyPath) -> None:
    """Who moves needs a path loss by place, and an area or a trace."""
    mobility, area = each.mobility, each.position
    assert mobility is not None  # the caller asks for classes that move
    if model not in (*TR38901, "log-distance"):
        problem = f"is not read with path_loss model {model}; remove it, or write model: uma"
        raise ValueRefusedError(problem, keys=(*path, "mobility"))
    if mobility.trace is not None:
        for name, given in (("distance", each.distance_m), ("position", area)):
            if given is not None:
                problem = "stands beside mobility.trace, which says where the devices are"
                raise ValueRefusedError(f"{problem}; remove it", keys=(*path, name))
        return
    kinds = ("disc", "ring", "hexagon") if mobility.waypoint else ("disc", "hexagon")
    if area is None or area.kind not in kinds:
        problem = f"needs an area to move in; write position: {{disc: 250 m}} ({', '.join(kinds)})"
        raise ValueRefusedError(problem, keys=(*path, "mobility"))
    speed_m_per_s = mobility.waypoint.speed.values[-1] if mobility.waypoint else 0.0
    if (drift := mobility.gauss_markov) is not None:
        speed_m_per_s = drift.speed_m_per_s + 3.0 * drift.deviation_m_per_s
    if area.radius_m < LEAST_CROSSING_S * speed_m_per_s:
        problem = f"has an area of {area.radius_m:g} m, which is crossed in no time at "
        problem += f"{speed_m_per_s:g} m/s; write a larger one, or a lower speed"
        raise ValueRefusedError(problem, keys=(*path, "position"))


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
