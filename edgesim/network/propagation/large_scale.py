"""Large-scale state of the links of a site under TR 38.901: line of sight, loss, shadowing, K."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its parts are loaded on first use

from edgesim.network.propagation.building_penetration import Surroundings
from edgesim.network.propagation.delay_spread import delay_spreads_s
from edgesim.network.propagation.site_fields import SITE, FieldsOfSite
from edgesim.network.propagation.tr38901_path_loss import (
    INH,
    SCOPES,
    UMA,
    Scope,
    breakpoint_m,
    environment_height_m,
    line_of_sight_probability,
    path_loss_db,
)
from edgesim.scenario.radio.fading_schema import TABLE
from fl.contracts import Array, Streams


@dataclass(frozen=True, eq=False)
class OutOfRange:
    """Devices for which a model of TR 38.901 is not made.

    Args:
        devices: bool [K].
        distance_m: of all devices, as the model counts it [K], m.
        reason: such as: farther than 5000 m: path_loss model uma is not made for that.
        sentence: on all of them.
    """

    devices: Array
    distance_m: Array
    reason: str
    sentence: str


@dataclass(frozen=True, eq=False)
class LargeScale:
    """What changes over metres only, of the links of K devices to one site.

    Args:
        line_of_sight: bool [K]; of indoor devices, the link up to the wall.
        indoor: in a building; who is in a car is not, bool [K].
        path_loss_db: PL with penetration [K], dB.
        shadowing_db: SF, positive where more arrives than the path loss says [K], dB.
        k_factor: K, linear, 0 without line of sight and indoors [K].
        beyond_scope: where the model does not hold.
        delay_spread_s: DS, where it is asked for by position [K], s.
    """

    line_of_sight: Array
    indoor: Array
    path_loss_db: Array
    shadowing_db: Array
    k_factor: Array
    beyond_scope: tuple[OutOfRange, ...] = ()
    delay_spread_s: Array | None = None


def outside(
    model: str,
    distance_m: Array,
    base_height_m: float,
    device_height_m: Array,
    line_of_sight: Array,
) -> tuple[OutOfRange, ...]:
    """Where a model does not hold: the ranges of Table 7.4.1-1.

    Args:
        model: uma, umi, rma or inh.
        distance_m: horizontal, of the devices [K], m.
        base_height_m: h_BS, m.
        device_height_m: h_UT [K], m.
        line_of_sight: bool [K].
    """
    scope, count = SCOPES[model], len(distance_m)
    found: list[OutOfRange] = []
    lowest_m, highest_m = scope.base_heights_m
    if not lowest_m <= base_height_m <= highest_m:
        made = f"{lowest_m:g} m" if lowest_m == highest_m else f"{lowest_m:g} to {highest_m:g} m"
        place = f"the base station is at a height of {base_height_m:g} m"
        sentence = f"{place}: path_loss model {model} of TR 38.901 is made for {made}"
        found.append(OutOfRange(np.ones(count, dtype=bool), distance_m, sentence, sentence))
    if model == INH:
        distance_m = np.hypot(distance_m, base_height_m - device_height_m)
    lowest_m, highest_m = scope.heights_m
    cases = (
        (distance_m < scope.nearest_m, f"nearer than {scope.nearest_m:g} m, and counted as there"),
        *_too_far(scope, distance_m, line_of_sight),
        (
            (device_height_m < lowest_m) | (device_height_m > highest_m),
            f"at heights beyond {lowest_m:g} to {highest_m:g} m",
        ),
    )
    for where, what in cases:
        if where.any():
            reason = f"{what}: path_loss model {model} of TR 38.901 is not made for that"
            sentence = f"{np.count_nonzero(where)} of {count} devices are {reason}"
            found.append(OutOfRange(where, distance_m, reason, sentence))
    return tuple(found)


def _too_far(scope: Scope, distance_m: Array, clear: Array) -> list[tuple[Array, str]]:
    """Devices beyond the largest distances of a model, and how far that is."""
    if scope.farthest_m == scope.clear_m:
        return [(distance_m > scope.farthest_m, f"farther than {scope.farthest_m:g} m")]
    return [
        (
            ~clear & (distance_m > scope.farthest_m),
            f"farther than {scope.farthest_m:g} m without line of sight",
        ),
        (
            clear & (distance_m > scope.clear_m),
            f"farther than {scope.clear_m:g} m with line of sight",
        ),
    ]


@dataclass(frozen=True, eq=False)
class SitePropagation:
    """The large-scale state of links to one site, a pure function of device and position.

    Args:
        model: uma, umi, rma or inh.
        base_height_m: h_BS, m.
        frequency_ghz: carrier, GHz.
        streams: random streams of the run.
        around: of all K devices.
        sight: field, line of sight by position; or always, or never.
        shadowing_db: standard deviation of the shadowing; None: the table's.
        k_db: the K factor of every link, dB; table: by position; None: 0, no direct path.
        site: its number; each has fields of its own.
        origin_m: where it stands in the plane of its fields (x, y), m.
        inter_site: correlation of the shadowing towards different sites.
        with_delays: delay spreads are asked for.
    """

    model: str
    base_height_m: float
    frequency_ghz: float
    streams: Streams
    around: Surroundings
    sight: str = "field"
    shadowing_db: float | None = None
    k_db: float | str | None = TABLE
    site: int = SITE
    origin_m: tuple[float, float] = (0.0, 0.0)
    inter_site: float = 0.0
    with_delays: bool = False

    @cached_property
    def _h_e_uniform(self) -> Array:
        """Random numbers of the links of all devices, for h_E of UMa [K, 2]."""
        count = len(self.around.height_m)
        return self.streams.stream("h-e", device=self.site).random((count, 2))

    @cached_property
    def _fields(self) -> FieldsOfSite:
        return FieldsOfSite(self.streams, self.model, self.site, self.inter_site)

    def at(
        self, position_m: Array, devices: Array | None = None, common_m: Array | None = None
    ) -> LargeScale:
        """The links of some devices.

        Args:
            position_m: from the site [S, 2], m.
            devices: their numbers [S]; None: all.
            common_m: where they are for what all sites share [S, 2], m; None: by ``position_m``.
        """
        model, ghz = self.model, self.frequency_ghz
        around = self.around if devices is None else self.around.of(devices)
        distance_m = np.hypot(position_m[:, 0], position_m[:, 1])
        place_m = position_m + np.asarray(self.origin_m)
        clear = self._clear(place_m, np.maximum(distance_m - around.depth_m, 0.0), around)
        h_e: Any = 1.0
        if model == UMA:
            uniform = self._h_e_uniform if devices is None else self._h_e_uniform[devices]
            h_e = environment_height_m(distance_m, around.height_m, uniform)
        heights = (self.base_height_m, around.height_m, ghz)
        loss_db = path_loss_db(model, clear, distance_m, *heights, h_e) + around.loss_db
        beyond = distance_m > breakpoint_m(model, *heights)
        sf_db, k_factor = self._fields.shadowing_and_k(
            place_m, clear, around.indoor, self.shadowing_db, beyond, self.k_db == TABLE, common_m
        )
        if self.k_db != TABLE:
            k_db = -np.inf if self.k_db is None else self.k_db
            k_factor = np.full(len(k_factor), 10.0 ** (np.asarray(k_db) / 10.0))
        notes = outside(model, distance_m, self.base_height_m, around.height_m, clear)
        delay_s = None
        if self.with_delays:
            links = (place_m, clear, around.indoor, common_m)
            delay_s = delay_spreads_s(self._fields, ghz, *links)
        return LargeScale(clear, around.indoor, loss_db, sf_db, k_factor, notes, delay_s)

    def _clear(self, place_m: Array, outdoor_m: Array, around: Surroundings) -> Array:
        """Line of sight up to the wall, bool [S]."""
        if self.sight != "field":
            return np.full(len(place_m), self.sight == "always")
        probability = line_of_sight_probability(self.model, outdoor_m, around.height_m)
        clear: Array = scipy.special.ndtr(self._fields.sight.at(place_m)) < probability
        return clear
