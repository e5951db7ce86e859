"""Coupling gains between devices and all sectors of a layout, as functions of position.

The coupling gain is what arrives of what is sent, before fast fading: path loss, walls, shadowing
and antenna. Its inverse in dB is the coupling loss of 3GPP TR 38.901, clause 7.8. Everything here
is a pure function of (seed, device, position): a device that moves asks again at its new place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from edgesim.errors import ScenarioKeyError
from edgesim.network.device import Fleet
from edgesim.network.layout.sites import Sites, make_sites
from edgesim.network.propagation.large_scale import LargeScale, OutOfRange, outside
from edgesim.network.propagation.path_loss import (
    LossesByPlace,
    linear,
    log_distance_db,
    sector_gain_db,
    tr38901_sites,
)
from edgesim.scenario.network_schema import NetworkSection
from edgesim.scenario.radio.channel_schema import LogDistancePathLoss, Tr38901PathLoss
from fl.contracts import Array, Streams

LinksOfSite = Callable[[Array, Array, Array], LargeScale]
# (offset from the site [n, 2], m; devices [n]; place for what sites share [n, 2], m)
LossesAt = Callable[[Array, Array], Array]  # (offset [n, 2], m; devices [n]) -> losses [n], dB


@dataclass(frozen=True, eq=False)
class SectorLinks:
    """The links of n devices to the S sectors of I sites.

    Args:
        coupling: gain before fast fading, linear [n, S].
        line_of_sight: bool [n, I].
        k_factor: K of the direct path, linear, 0 without one [n, I].
        distance_m: horizontal, to the nearest image of each site [n, I], m.
        beyond_scope: where the model does not hold, towards the devices' own sites.
        delay_spread_s: where it is asked for by position [n, I], s.
    """

    coupling: Array
    line_of_sight: Array
    k_factor: Array
    distance_m: Array
    beyond_scope: tuple[OutOfRange, ...] = ()
    delay_spread_s: Array | None = None

    @cached_property
    def serving(self) -> Array:
        """The sector of least coupling loss, the first of equals, int [n]."""
        return self.coupling.argmax(axis=1)


@dataclass(frozen=True, eq=False)
class Coupling:
    """Coupling gains by position.

    Args:
        sites: of the layout.
        links_of_site: the large-scale state of links to each site [I].
        gain_db: (offset [n, 2], m; height of the antenna above the devices [n], m; boresight,
            deg) -> gain of a sector's antenna, dB.
        drop_m: height of the antennas above every device [K], m.
        beyond_scope: (distance to the own site [n], m; line of sight to it [n]; devices [n]) ->
            where the model does not hold.
    """

    sites: Sites
    links_of_site: tuple[LinksOfSite, ...]
    gain_db: Callable[[Array, Array, float], Array | float]
    drop_m: Array
    beyond_scope: Callable[[Array, Array, Array], tuple[OutOfRange, ...]] = lambda *_: ()

    def at(self, position_m: Array, devices: Array | None = None) -> SectorLinks:
        """The links of devices at these positions.

        Args:
            position_m: in the plane of the sites [n, 2], m.
            devices: their numbers [n]; None: all K in order.

        Raises:
            ScenarioKeyError: a gain that is no number.
        """
        devices = np.arange(len(self.drop_m)) if devices is None else np.asarray(devices)
        coupling = np.empty((len(devices), len(self.sites.site_of)))
        sight = np.empty((len(devices), len(self.sites)), dtype=bool)
        k_factor, distance_m = np.empty(sight.shape), np.empty(sight.shape)
        delays_s = []
        # beside the nearest image of the first site: the same in a network moved by a copy
        common_m = self.sites.offset_m(0, position_m) + self.sites.position_m[0]
        for i, links_of in enumerate(self.links_of_site):
            offset_m = self.sites.offset_m(i, position_m)
            links, distance_m[:, i] = links_of(offset_m, devices, common_m), np.hypot(*offset_m.T)
            sight[:, i], k_factor[:, i] = links.line_of_sight, links.k_factor
            delays_s += [] if links.delay_spread_s is None else [links.delay_spread_s]
            for s in np.flatnonzero(self.sites.site_of == i).tolist():
                boresight_deg = float(self.sites.boresight_deg[s])
                gain_db = self.gain_db(offset_m, self.drop_m[devices], boresight_deg)
                coupling[:, s] = linear(links.shadowing_db - links.path_loss_db + gain_db)
        odd = np.argwhere(~np.isfinite(coupling))
        if odd.size:
            problem = f"gives device {devices[odd[0][0]]} no gain towards sector {odd[0][1]}"
            raise ScenarioKeyError(("network", "channel"), f"{problem}; write losses near 100 dB")
        own = self.sites.site_of[coupling.argmax(axis=1)]
        to_own = np.arange(len(devices)), own
        notes = self.beyond_scope(distance_m[to_own], sight[to_own], devices)
        delay_s = np.stack(delays_s, axis=1) if delays_s else None
        return SectorLinks(coupling, sight, k_factor, distance_m, notes, delay_s)


def make_coupling(
    network: NetworkSection, fleet: Fleet, streams: Streams, own: LossesByPlace | None = None
) -> Coupling:
    """The coupling gains of a scenario's ``network`` section, of one cell too.

    Args:
        network: the section; its path loss is of TR 38.901, log-distance or code.
        fleet: the devices.
        streams: random streams of the run.
        own: path losses by code of the user's own; None: by the section's model.

    Raises:
        ValueError: another path loss, which is no function of position.
    """
    sites, loss = make_sites(network), network.channel.path_loss
    if own is not None or isinstance(loss, LogDistancePathLoss):
        of_sites = [_by_losses(network, own, fleet, streams, i) for i in range(len(sites))]
        return Coupling(sites, tuple(of_sites), lambda *_: 0.0, np.zeros(len(fleet)))
    if not isinstance(loss, Tr38901PathLoss):
        raise ValueError(f"path_loss model {loss.model} is no function of position")
    found = tr38901_sites(network, loss, fleet.height_m, streams, sites.position_m)
    height_m = found[0].around.height_m

    def gain_db(offset_m: Array, drop_m: Array, boresight_deg: float) -> Array | float:
        return sector_gain_db(loss, offset_m, drop_m, boresight_deg)

    base_height_m = found[0].base_height_m

    def beyond_scope(distance_m: Array, sight: Array, devices: Array) -> tuple[OutOfRange, ...]:
        return outside(loss.model, distance_m, base_height_m, height_m[devices], sight)

    drop_m = base_height_m - height_m
    return Coupling(sites, tuple(site.at for site in found), gain_db, drop_m, beyond_scope)


def _losses(loss: Any, own: LossesByPlace | None, fleet: Fleet, site: int) -> LossesAt:
    """Losses towards a site by log-distance, or by code of the user's own."""
    if own is None:
        reference = (loss.reference_loss_db, loss.reference_distance_m, loss.exponent)
        return lambda offset_m, _: log_distance_db(np.hypot(*offset_m.T), *reference)
    home_m = np.stack([fleet.x_m, fleet.y_m], axis=1)

    def by_code(offset_m: Array, devices: Array) -> Array:
        place_m = home_m.copy()
        place_m[devices] = offset_m
        x_m, y_m = place_m.T
        placed = replace(fleet, x_m=x_m, y_m=y_m, distance_m=np.hypot(x_m, y_m))
        return own(placed, site)[devices]

    return by_code


def _by_losses(
    network: NetworkSection,
    own: LossesByPlace | None,
    fleet: Fleet,
    streams: Streams,
    site: int,
) -> LinksOfSite:
    """Links whose shadowing is drawn once per device and site."""
    normal = streams.stream("shadowing", device=site or None).standard_normal(len(fleet))
    if c := network.channel.inter_site:
        shared = streams.stream("shadowing-common").standard_normal(len(fleet))
        normal = np.sqrt(c) * shared + np.sqrt(1.0 - c) * normal
    shadowing_db = -float(network.channel.shadowing_db or 0.0) * normal
    k_db = network.channel.fading.k_db
    k_factor = 0.0 if k_db is None else float(linear(k_db))
    losses_db = _losses(network.channel.path_loss, own, fleet, site)

    def links(offset_m: Array, devices: Array, _: Array) -> LargeScale:
        loss_db = losses_db(offset_m, devices)
        outdoor = np.zeros(len(devices), dtype=bool)
        k_factors = np.full(len(devices), k_factor)
        return LargeScale(outdoor, outdoor, loss_db, shadowing_db[devices], k_factors)

    return links
