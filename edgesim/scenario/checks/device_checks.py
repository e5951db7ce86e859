"""Checks of devices beside the network: lengths of lists, places, mobility and the carrier."""

from __future__ import annotations

from edgesim.errors import counted
from edgesim.scenario.documents.document import KeyPath
from edgesim.scenario.hardware.device_schema import DeviceClass
from edgesim.scenario.network_schema import NetworkSection
from edgesim.scenario.per_device_values import Draw
from edgesim.scenario.radio.channel_schema import TR38901, Tr38901PathLoss
from edgesim.scenario.radio.layout_checks import check_in_layout, check_layout
from edgesim.scenario.schema import ScenarioKeys
from edgesim.scenario.section import Section, ValueRefusedError

LEAST_CROSSING_S = 0.01  # of an area that devices move in, or they do nothing but turn


def check_devices(scenario: ScenarioKeys) -> None:
    """Devices whose lists have other lengths, or who stand or move where no key reads it."""
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
                problem = f"has {counted(size, 'value')}, but {source} {counted(devices, 'device')}"
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
    elif not any(by_distance) and not (in_cells or traced):
        if network.layout.kind == "sites":
            problem = "is missing; network.layout sites needs it, such as {disc: 250 m}"
            raise ValueRefusedError(problem, keys=(*path, "position"))
        if model != "code":
            problem = f"is missing; path_loss model {model} needs it, such as 100 m"
            raise ValueRefusedError(problem, keys=(*path, "distance"))
    elif all(by_distance):
        problem = "stands beside distance; keep one of the two"
        raise ValueRefusedError(problem, keys=(*path, "position"))
    if each.height_m is not None and model not in (*TR38901, "code"):
        problem = f"is not read with path_loss model {model}; remove it"
        raise ValueRefusedError(problem, keys=(*path, "height"))
    points = each.position.points_m if each.position else ()
    if points and len(points) != each.count:
        problem = (
            f"has {counted(len(points), 'point')}, but count says {counted(each.count, 'device')}"
        )
        raise ValueRefusedError(f"{problem}; write one per device", keys=(*path, "position"))


def _check_mobility(each: DeviceClass, model: str, path: KeyPath) -> None:
    """Who moves needs a path loss by place, and an area or a trace."""
    mobility, area = each.mobility, each.position
    assert mobility is not None  # the caller asks for classes that move
    if model in ("constant", "trace"):
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
