"""Checks of a layout of several cells, and of power control, against the rest of a scenario."""

from __future__ import annotations

from edgesim.scenario.documents.document import KeyPath
from edgesim.scenario.per_device_values import Noise
from edgesim.scenario.radio.channel_schema import PathLoss
from edgesim.scenario.radio.layout_schema import (
    HexLayout,
    Layout,
    SingleLayout,
    isd_of,
    nearest_of,
)
from edgesim.scenario.radio.placement import Placement
from edgesim.scenario.section import ValueRefusedError

LAYOUT: KeyPath = ("network", "layout")


def check_layout(layout: Layout, loss: PathLoss) -> None:
    """Refuse a layout that its path loss or antenna does not fit.

    Raises:
        ValueRefusedError: with the path of the key.
    """
    if isinstance(layout, SingleLayout):
        return
    if loss.model in ("constant", "trace"):
        problem = f"is {layout.kind}, but path_loss model {loss.model} knows no positions"
        advice = "write model: log-distance, or one of TR 38.901 such as uma, or code"
        raise ValueRefusedError(f"{problem}; {advice}", keys=(*LAYOUT, "kind"))
    if layout.sectors > 1 and getattr(loss, "antenna", None) is None:
        problem = f"is {layout.sectors}, but without path_loss.antenna all of a site are alike"
        advice = "write antenna: {kind: column} with a model of TR 38.901, or sectors: 1"
        raise ValueRefusedError(f"{problem}; {advice}", keys=(*LAYOUT, "sectors"))


def check_in_layout(
    placement: Placement | None, by_distance: bool, layout: Layout, model: str, path: KeyPath
) -> None:
    """Refuse the place of a device class that is none in this layout.

    Args:
        placement: its ``position``.
        by_distance: it has a ``distance``.
        layout: the scenario's.
        model: of the path loss.
        path: of the class.

    Raises:
        ValueRefusedError: with the path of the key.
    """
    if by_distance and not isinstance(layout, SingleLayout):
        problem = f"is not read with network.layout {layout.kind}; write position, or remove it"
        raise ValueRefusedError(problem, keys=(*path, "distance"))
    over_cells = placement is not None and placement.kind == "cells"
    if over_cells and not isinstance(layout, HexLayout):
        problem = "is over cells, which need network.layout: {kind: hex}"
        raise ValueRefusedError(problem, keys=(*path, "position"))
    if isinstance(layout, HexLayout) and (placement is None or over_cells):
        least_m = nearest_of(model) if placement is None else placement.inner_m
        isd_m = isd_of(layout, model)
        if least_m >= isd_m / 2.0:
            problem = f"has no place {least_m:g} m from every site where they are {isd_m:g} m apart"
            advice = "write {cells: 10 m} with less than half of that"
            raise ValueRefusedError(f"{problem}; {advice}", keys=(*path, "position"))


def check_power_control(noise: Noise, loss: PathLoss, share: str, solver: str | None) -> None:
    """Refuse power by share without a noise density, a known path loss, or shares that stay.

    Args:
        noise: of the receiver.
        loss: the path loss.
        share: how the band of the uplink is shared.
        solver: what is wrong with the solver; None: nothing.

    Raises:
        ValueRefusedError: with the path of the key.
    """
    problem = None
    if noise.density_w_per_hz is None:
        problem = "needs a noise density; write for instance noise: -174 dBm/Hz"
    elif loss.model in ("trace", "code"):
        problem = f"needs a shipped path loss, not model {loss.model}; remove it"
    elif share != "fixed":
        problem = f"sets power for the share of the plan, which uplink.share {share} changes"
        problem += "; write share: fixed"
    elif solver is not None:
        problem = f"sets power by itself, and {solver}"
    if problem is not None:
        raise ValueRefusedError(problem, keys=("network", "power_control"))
