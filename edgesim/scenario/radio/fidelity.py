"""The ladder `network.fidelity`: each rung gives defaults to the radio keys of a scenario.

A key that is written wins over its rung, and a path loss, fading or noise that is written is taken
whole. Beside the section network a rung sets `allocation.rate` and the devices' `position`.
"""

from __future__ import annotations

from typing import Any

from edgesim.scenario.radio.channel_schema import TR38901

RUNGS = ("paper", "cell", "adapted", "errors", "network")
WHOLE = ("model", "kind", "mode")  # keys by which a section is one of several kinds
PAPER = {
    "bandwidth": "200 MHz",
    "noise": "-110 dBm",
    "channel": {"path_loss": {"model": "constant", "loss": "100 dB"}},
}
FADING = {"kind": "rician", "k": "table", "speed": "3 km/h"}
CELL: dict[str, Any] = {
    "carrier": {"frequency": "3.5 GHz"},
    "noise": "-169 dBm/Hz",  # thermal noise of -174 dBm/Hz, and a noise figure of 5 dB
    "channel": {
        "path_loss": {"model": "uma", "antenna_gain": "8 dB"},
        "fading": FADING,
    },
}
BAND = {"bandwidth": "20 MHz"}
ADAPTED = {"adaptation": {"rate": "mcs", "implementation_loss": "2 dB"}}
ERRORS = {"adaptation": {"errors": "drawn"}}
NETWORK: dict[str, Any] = {
    "layout": {"kind": "hex"},
    "power_control": {"p0": "-85 dBm", "alpha": 0.8},
}
COLUMN = {"channel": {"path_loss": {"model": "uma", "antenna": {"kind": "column"}}}}
LEAVES_OUT = {
    "paper": "path loss by place, fading, steps of the rate, lost blocks, other cells, mobility",
    "cell": "steps of the rate, overhead, lost blocks, other cells, mobility",
    "adapted": "lost blocks, other cells, mobility",
    "errors": "estimated channels, other cells, mobility",
    "network": "mobility, handover, downlinks that take time",
}
POSITION = {"ring": ["35 m", "290 m"]}  # the area of a hexagon with 500 m between sites


def with_rung(tree: Any) -> Any:
    """A scenario's YAML tree with the defaults of its rung; unchanged without one."""
    network = tree.get("network") if isinstance(tree, dict) else None
    rung = network.get("fidelity") if isinstance(network, dict) else None
    if not isinstance(network, dict) or rung not in RUNGS:
        return tree
    if rung == "paper":
        return {**tree, "network": _filled(network, PAPER)}
    carrier = network.get("carrier")
    has_noise = isinstance(carrier, dict) and "noise_figure" in carrier
    if rung == "network":
        network = _filled(network, _several_cells(network))
    cell = {k: v for k, v in CELL.items() if k != "noise" or not has_noise}
    loss = {"model": "uma"} if _has(network, "antenna") else CELL["channel"]["path_loss"]
    cell["channel"] = {"fading": _fading(network), "path_loss": loss}
    network = _filled(network, cell)
    if rung == "cell":
        network = _filled(network, BAND)
    else:
        network = _filled(_on_a_carrier(network), ADAPTED if rung == "adapted" else {})
        network = network if rung == "adapted" else _filled(_filled(network, ERRORS), ADAPTED)
    tree = {**tree, "network": network}
    budget = tree.get("budget")
    if isinstance(budget, dict) and "latency_threshold" in budget:
        tree = _filled(tree, {"allocation": {"rate": "quantile"}})
    return {**tree, "devices": _placed(tree.get("devices"), network)}


def _filled(given: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """The mapping with defaults for what it lacks, section by section."""
    filled = dict(given)
    for name, default in defaults.items():
        value = given.get(name)
        if name not in given:
            filled[name] = default
        elif isinstance(value, dict) and isinstance(default, dict):
            other_kind = any(k in value and value[k] != default.get(k) for k in WHOLE)
            if name == "fading" and "coherence" in value:  # instead of a speed
                default = {k: v for k, v in default.items() if k != "speed"}
            filled[name] = value if other_kind else _filled(value, default)
    return filled


def _fading(network: dict[str, Any]) -> dict[str, Any]:
    """What a rung gives: K factors of the table where the path loss has one, else no direct path.

    A K factor, or the kind that has one, which is written, stands for the direct path.
    """
    if _model(network) in TR38901:
        return FADING
    fading = network["channel"].get("fading")
    direct = isinstance(fading, dict) and ("k" in fading or fading.get("kind") == "rician")
    return {"kind": "rician" if direct else "rayleigh", "speed": FADING["speed"]}


def _several_cells(network: dict[str, Any]) -> dict[str, Any]:
    """What the rung network gives; a path loss without antennas has one sector per site.

    Powers are controlled by a loss that a model gives, not by code.
    """
    model = _model(network)
    if model in TR38901:
        return NETWORK if _has(network, "antenna_gain") else NETWORK | COLUMN
    cells = NETWORK | {"layout": NETWORK["layout"] | {"sectors": 1}}
    return {k: v for k, v in cells.items() if model != "code" or k != "power_control"}


def _model(network: dict[str, Any]) -> Any:
    """Of the path loss that is written; uma, which rungs give, without one."""
    channel = network.get("channel")
    loss = channel.get("path_loss") if isinstance(channel, dict) else None
    return loss.get("model", "uma") if isinstance(loss, dict) else "uma"


def _has(network: dict[str, Any], key: str) -> bool:
    """Whether the path loss has a key, such as the pattern of the base station's antenna."""
    channel = network.get("channel")
    loss = channel.get("path_loss") if isinstance(channel, dict) else None
    return isinstance(loss, dict) and key in loss


def _on_a_carrier(network: dict[str, Any]) -> dict[str, Any]:
    """With the band as that of an NR carrier."""
    carrier = network["carrier"]
    if not isinstance(carrier, dict) or "bandwidth" in carrier:
        return network
    rest = {name: value for name, value in network.items() if name != "bandwidth"}
    bandwidth = network.get("bandwidth", BAND["bandwidth"])
    return {**rest, "carrier": {**carrier, "bandwidth": bandwidth}}


def _placed(devices: Any, network: dict[str, Any]) -> Any:
    """The device classes, each with a place where the path loss needs one."""
    channel = network["channel"]
    loss = channel.get("path_loss") if isinstance(channel, dict) else None
    by_place = isinstance(loss, dict) and loss.get("model") not in ("constant", "trace", "code")
    single = network.get("layout", "single") in ("single", {"kind": "single"})
    if not by_place or not single or not isinstance(devices, list):
        return devices  # those of several cells are dropped over them
    return [
        {**each, "position": POSITION} if isinstance(each, dict) and not _has_place(each) else each
        for each in devices
    ]


def _has_place(device_class: dict[str, Any]) -> bool:
    moves = device_class.get("mobility")
    by_trace = isinstance(moves, dict) and "trace" in moves
    return by_trace or bool({"position", "distance"} & set(device_class))
