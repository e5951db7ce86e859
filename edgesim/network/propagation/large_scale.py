"""Large-scale state of the links of a site under TR 38.901: line of sight, loss, shadowing, K."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts are loaded on first use

from edgesim.network.propagation.building_penetration import (
    building_loss_db,
    car_loss_db,
    depth_m,
)
from edgesim.network.propagation.random_field import RandomField
from edgesim.network.propagation.tr38901_path_loss import (
    INH,
    RMA,
    SCOPES,
    UMA,
    UMI,
    breakpoint_m,
    environment_height_m,
    line_of_sight_probability,
    path_loss_db,
)
from fl.contracts import Array, Streams

LOS, NLOS, O2I = "los", "nlos", "o2i"
SITE = 0  # the only base station
RMA_FAR_DB = 6.0  # shadowing with line of sight beyond the breakpoint


@dataclass(frozen=True)
class Statistics:
    """Parameters of a model for LOS, NLOS and O2I links: Tables 7.4.1-1 and 7.5-6.

    Args:
        shadowing_db: standard deviations, dB.
        decorrelation_m: distances of the shadowing, m.
        k_db: mean and standard deviation of the K factor with line of sight, dB.
        k_decorrelation_m: its distance, m.
        k_correlation: correlation of shadowing and K factor.
        los_decorrelation_m: distance of the line-of-sight state, Table 7.6.3.1-2, m.
    """

    shadowing_db: dict[str, float]
    decorrelation_m: dict[str, float]
    k_db: tuple[float, float]
    k_decorrelation_m: float
    k_correlation: float
    los_decorrelation_m: float


def _by_state(los: float, nlos: float, o2i: float = float("nan")) -> dict[str, float]:
    return {LOS: los, NLOS: nlos, O2I: o2i}


STATISTICS = {
    UMA: Statistics(_by_state(4, 6, 7), _by_state(37, 50, 7), (9, 3.5), 12, 0.0, 50),
    UMI: Statistics(_by_state(4, 7.82, 7), _by_state(10, 13, 7), (9, 5), 15, 0.5, 50),
    RMA: Statistics(_by_state(4, 8, 8), _by_state(37, 120, 120), (7, 4), 40, 0.0, 60),
    INH: Statistics(_by_state(3, 8.03), _by_state(10, 6), (7, 4), 4, 0.5, 10),
}


@dataclass(frozen=True, eq=False)
class LargeScale:
    """What changes over metres only, of the links of K devices to one site.

    Args:
        line_of_sight: bool [K]; of indoor devices, the link up to the wall.
        indoor: in a building, or in a car, bool [K].
        path_loss_db: PL with penetration [K], dB.
        shadowing_db: SF, positive where more arrives than the path loss says [K], dB.
        k_factor: K, linear, 0 without line of sight and indoors [K].
        beyond_scope: sentences on devices where the model does not hold.
    """

    line_of_sight: Array
    indoor: Array
    path_loss_db: Array
    shadowing_db: Array
    k_factor: Array
    beyond_scope: tuple[str, ...] = ()


def outside(model: str, distance_m: Array, device_height_m: Array) -> tuple[str, ...]:
    """Sentences on how many devices stand where a model does not hold."""
    scope, count = SCOPES[model], len(distance_m)
    lowest_m, highest_m = scope.heights_m
    cases = (
        (distance_m < scope.nearest_m, f"nearer than {scope.nearest_m:g} m, and count as there"),
        (distance_m > scope.farthest_m, f"farther than {scope.farthest_m:g} m"),
        (
            (device_height_m < lowest_m) | (device_height_m > highest_m),
            f"at heights beyond {lowest_m:g} to {highest_m:g} m",
        ),
    )
    return tuple(
        f"{np.count_nonzero(where)} of {count} devices are {what}: path_loss model {model} of "
        "TR 38.901 is not made for that"
        for where, what in cases
        if where.any()
    )


def shadowing_and_k(
    model: str,
    position_m: Array,
    line_of_sight: Array,
    indoor: Array,
    streams: Streams,
    given_db: float | None = None,
    beyond: Array | None = None,
) -> tuple[Array, Array]:
    """(shadowing [K], dB; K factor [K], linear) by fields over the plane.

    Each state has its own field. The K factor is correlated with the shadowing by the square root
    of their correlation matrix (clause 7.5, step 4).

    Args:
        model: uma, umi, rma or inh.
        position_m: of the devices, the site at the origin [K, 2], m.
        line_of_sight: bool [K].
        indoor: bool [K].
        streams: random streams of the run.
        given_db: standard deviation of the shadowing instead of the table's, dB.
        beyond: farther than the breakpoint, where RMa has 6 dB with line of sight, bool [K].
    """
    table = STATISTICS[model]
    state = np.where(indoor, O2I, np.where(line_of_sight, LOS, NLOS))
    shadowing_db, k_factor = np.zeros(len(state)), np.zeros(len(state))
    for each in np.unique(state).tolist():
        here = np.flatnonzero(state == each)
        field = RandomField(streams, f"field/sf/{each}", SITE, table.decorrelation_m[each])
        z = field.at(position_m[here])
        sigma_db: Any = table.shadowing_db[each] if given_db is None else given_db
        if model == RMA and each == LOS and given_db is None and beyond is not None:
            sigma_db = np.where(beyond[here], RMA_FAR_DB, sigma_db)
        shadowing_db[here] = sigma_db * z
        if each == LOS:
            own = RandomField(streams, "field/k", SITE, table.k_decorrelation_m)
            c, (mean_db, spread_db) = table.k_correlation, table.k_db
            mixed = c * z + np.sqrt(1.0 - c**2) * own.at(position_m[here])
            k_factor[here] = 10.0 ** ((mean_db + spread_db * mixed) / 10.0)
    return shadowing_db, k_factor


def large_scale(
    model: str,
    position_m: Array,
    device_height_m: Array,
    base_height_m: float,
    frequency_ghz: float,
    streams: Streams,
    sight: str = "field",
    indoor_share: float = 0.0,
    high_loss_share: float = 0.5,
    shadowing_db: float | None = None,
) -> LargeScale:
    """The large-scale state of K devices towards the site at the origin.

    Args:
        model: uma, umi, rma or inh.
        position_m: of the devices [K, 2], m.
        device_height_m: h_UT [K], m.
        base_height_m: h_BS, m.
        frequency_ghz: carrier, GHz.
        streams: random streams of the run.
        sight: field, line of sight by position; or always, or never.
        indoor_share: probability of a device being in a building. Of RMa the others are in cars
            where it is more than 0 (Table 7.2-3).
        high_loss_share: share of the buildings with high-loss walls; RMa has low-loss ones only.
        shadowing_db: standard deviation of the shadowing; None: the table's.
    """
    count, ghz = len(position_m), frequency_ghz
    distance_m = np.hypot(position_m[:, 0], position_m[:, 1])
    indoor = streams.stream("indoor").random(count) < indoor_share
    inside_m = np.where(
        indoor, depth_m(model, streams.stream("indoor-depth").random((count, 2))), 0
    )
    outdoor_m = np.maximum(distance_m - inside_m, 0.0)
    if sight == "field":
        field = RandomField(streams, "field/los", SITE, STATISTICS[model].los_decorrelation_m)
        probability = line_of_sight_probability(model, outdoor_m, device_height_m)
        clear = scipy.special.ndtr(field.at(position_m)) < probability
    else:
        clear = np.full(count, sight == "always")
    h_e: Any = 1.0
    if model == UMA:
        uniform = streams.stream("h-e", device=SITE).random((count, 2))
        h_e = environment_height_m(distance_m, device_height_m, uniform)
    loss_db = path_loss_db(model, clear, distance_m, base_height_m, device_height_m, ghz, h_e)
    if indoor_share > 0.0:
        normal = streams.stream("wall").standard_normal((count, 2))
        high_loss = scipy.special.ndtr(normal[:, 1]) < (0.0 if model == RMA else high_loss_share)
        building_db = building_loss_db(high_loss, inside_m, normal[:, 0], ghz)
        car_db = car_loss_db(normal[:, 0]) if model == RMA else 0.0
        loss_db = loss_db + np.where(indoor, building_db, car_db)
    beyond = distance_m > breakpoint_m(model, base_height_m, device_height_m, ghz)
    sf_db, k_factor = shadowing_and_k(
        model, position_m, clear, indoor, streams, shadowing_db, beyond
    )
    notes = outside(model, distance_m, device_height_m)
    return LargeScale(clear, indoor, loss_db, sf_db, k_factor, notes)
