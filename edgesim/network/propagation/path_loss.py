"""Path loss and shadowing: the gain of every device before fading."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from edgesim.errors import ScenarioKeyError
from edgesim.network.device import Fleet, draw
from edgesim.network.propagation.antenna import antenna_gain_db
from edgesim.network.propagation.building_penetration import draw_surroundings
from edgesim.network.propagation.large_scale import LargeScale, SitePropagation
from edgesim.network.propagation.tr38901_path_loss import SCOPES
from edgesim.scenario.network_schema import NetworkSection
from edgesim.scenario.radio.channel_schema import (
    ConstantPathLoss,
    LogDistancePathLoss,
    Tr38901PathLoss,
)
from edgesim.scenario.radio.fading_schema import TABLE
from fl.contracts import Array, Streams

# (devices, placed from a base station; number of that) -> path losses [K], dB: code of one's own
LossesByPlace = Callable[[Fleet, int], Array]


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

    Raises:
        ScenarioKeyError: a distance of 0, where the equation has no value.
    """
    distance_m = np.asarray(distance_m, dtype=float)
    if not distance_m.all():
        problem = "is log-distance, which has no loss at 0 m, where a device stands; move it"
        raise ScenarioKeyError(("network", "channel", "path_loss"), problem)
    return reference_loss_db + 10.0 * exponent * np.log10(distance_m / reference_distance_m)


def large_scale_of(
    network: NetworkSection, fleet: Fleet, streams: Streams, given_db: Array | None = None
) -> LargeScale:
    """Path loss and shadowing of all devices; drawn once per run.

    Args:
        network: the scenario's ``network``.
        fleet: the devices, with their places.
        streams: random streams of the run.
        given_db: path losses from elsewhere [K], dB; None: by the scenario's model.
    """
    section, loss, count = network.channel, network.channel.path_loss, len(fleet)
    if isinstance(loss, Tr38901PathLoss):
        return _tr38901(network, loss, fleet, streams)
    if given_db is not None:
        loss_db = given_db
    elif isinstance(loss, ConstantPathLoss):
        loss_db = draw(loss.loss_db, count, streams.stream("path-loss"))
    elif isinstance(loss, LogDistancePathLoss):
        loss_db = log_distance_db(
            fleet.distance_m, loss.reference_loss_db, loss.reference_distance_m, loss.exponent
        )
    else:
        raise ValueError(f"path losses of the model {loss.model} come from elsewhere; give them")
    normal = streams.stream("shadowing").standard_normal(count)
    shadowing_db = float(section.shadowing_db or 0.0) * normal
    clear, k_db = np.zeros(count, dtype=bool), section.fading.k_db
    k_factor = np.full(count, 0.0 if k_db is None else float(linear(k_db)))
    return LargeScale(clear, clear, loss_db, -shadowing_db, k_factor)


def _tr38901(
    network: NetworkSection, loss: Tr38901PathLoss, fleet: Fleet, streams: Streams
) -> LargeScale:
    (site,) = tr38901_sites(network, loss, fleet.height_m, streams, np.zeros((1, 2)))
    return links_of(site, loss, fleet)


def links_of(site: SitePropagation, loss: Tr38901PathLoss, fleet: Fleet) -> LargeScale:
    """The links of all devices to a site at their origin, with the gain of its antenna."""
    position_m = np.stack([fleet.x_m, fleet.y_m], axis=1)
    found = site.at(position_m)
    gain_db = sector_gain_db(loss, position_m, site.base_height_m - site.around.height_m)
    return replace(found, path_loss_db=found.path_loss_db - gain_db)


def tr38901_sites(
    network: NetworkSection,
    loss: Tr38901PathLoss,
    height_m: Array,
    streams: Streams,
    origins_m: Array,
) -> list[SitePropagation]:
    """The propagation of each site; devices have one surrounding for all of them.

    Args:
        network: the scenario's ``network``.
        loss: its path loss.
        height_m: of the devices; nan: the model's [K], m.
        streams: random streams of the run.
        origins_m: where the sites stand [I, 2], m.
    """
    scope, given_db = SCOPES[loss.model], network.channel.shadowing_db
    ghz = (network.carrier.frequency_hz if network.carrier else math.nan) / 1e9
    around = draw_surroundings(
        loss.model,
        np.where(np.isnan(height_m), scope.device_height_m, height_m),
        ghz,
        streams,
        loss.walls.indoor,
        loss.walls.high_loss,
        loss.walls.heights == "floors",
    )
    return [
        SitePropagation(
            loss.model,
            scope.base_height_m if loss.height_m is None else loss.height_m,
            ghz,
            streams,
            around,
            loss.los,
            None if isinstance(given_db, str) else given_db,
            network.channel.fading.k_db,
            site,
            (x_m, y_m),
            network.channel.inter_site,
            network.channel.fading.delay_spread_s == TABLE,
        )
        for site, (x_m, y_m) in enumerate(origins_m.tolist())
    ]


def sector_gain_db(
    loss: Tr38901PathLoss, position_m: Array, drop_m: Array, boresight_deg: float | None = None
) -> Any:
    """Gain of a sector's antenna towards devices: see `antenna_gain_db`."""
    if loss.antenna is None:
        return loss.antenna_gain_db
    return antenna_gain_db(loss.antenna, position_m, drop_m, boresight_deg)


def path_gains(links: LargeScale) -> Array:
    """Path loss x shadowing of all devices [K], linear.

    Raises:
        ScenarioKeyError: a gain that is no number.
    """
    gains = linear(-(links.path_loss_db - links.shadowing_db))
    odd = np.flatnonzero(~np.isfinite(gains))
    if odd.size:
        problem = f"gives device {odd[0]} a gain of {gains[odd[0]]} by path loss and shadowing"
        raise ScenarioKeyError(("network", "channel"), f"{problem}; write losses near 100 dB")
    return gains
