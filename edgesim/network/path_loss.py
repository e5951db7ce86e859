"""Path loss and shadowing: the gain of every device before fading."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgesim.errors import ScenarioKeyError
from edgesim.network.device import Fleet, draw
from edgesim.scenario.network_schema import ChannelSection
from fl.contracts import Array, Streams


def linear(decibel: Any) -> Any:
    """A ratio in dB as a factor; inf beyond what a double holds."""
    with np.errstate(over="ignore", under="ignore"):
        return 10.0 ** (np.asarray(decibel, dtype=float) / 10.0)


def log_distance_db(
    distance_m: Any, reference_loss_db: Any, reference_distance_m: float, exponent: Any
) -> Any:
    """Path loss PL(d0) + 10 n log10(d / d0): Rappaport, Wireless Communications, 2002, eq. (4.69a).

    Args:
        distance_m: d, distance to the base station, m, any shape.
        reference_loss_db: PL(d0), dB.
        reference_distance_m: d0, m.
        exponent: n; 2 in free space.

    Returns:
        Path loss, dB, shape of ``distance_m``.
    """
    return reference_loss_db + 10.0 * exponent * np.log10(
        np.asarray(distance_m, dtype=float) / reference_distance_m
    )


def path_gains(section: ChannelSection, fleet: Fleet, streams: Streams) -> Array:
    """Path loss x shadowing of all devices [K], linear; drawn once per run.

    Args:
        section: the scenario's ``network.channel``.
        fleet: the devices, with their distances.
        streams: random streams of the run.

    Raises:
        ScenarioKeyError: a gain that is no number, from an absurd distance or loss.
    """
    loss = section.path_loss
    if loss.model == "constant":
        loss_db = draw(loss.loss_db, len(fleet), streams.stream("path-loss"))
    else:
        loss_db = log_distance_db(
            fleet.distance_m, loss.reference_loss_db, loss.reference_distance_m, loss.exponent
        )
    normal = streams.stream("shadowing").standard_normal(len(fleet))
    gains = linear(-(loss_db + (section.shadowing_db or 0.0) * normal))
    odd = np.flatnonzero(~np.isfinite(gains))
    if odd.size:
        problem = f"gives device {odd[0]} a gain of {gains[odd[0]]} by path loss and shadowing"
        raise ScenarioKeyError(("network", "channel"), f"{problem}; write losses near 100 dB")
    return gains
