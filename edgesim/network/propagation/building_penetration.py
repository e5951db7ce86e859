"""Penetration of outdoor signals into buildings and cars: 3GPP TR 38.901, clauses 7.4.3.1, 7.4.3.2.

PL = PL_b + PL_tw + 0.5 d_in + N(0, sigma_P^2)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded on first use

from edgesim.network.propagation.tr38901_path_loss import RMA
from fl.contracts import Array, Streams

LOW_SPREAD_DB, HIGH_SPREAD_DB = 4.4, 6.5  # sigma_P, Table 7.4.3-2
CAR_MEAN_DB, CAR_SPREAD_DB = 9.0, 5.0  # clause 7.4.3.2
PER_METRE_DB = 0.5  # PL_in / d_in
LARGEST_DEPTH_M = {RMA: 10.0}  # of the depth in a building, 25 m elsewhere
FLOORS = (4, 8)  # of a building, fewest and most: TR 36.873, Table 6-1
FLOOR_M, OUTDOOR_M = 3.0, 1.5  # height of a floor, and of a device above it


def wall_loss_db(high_loss: Array | bool, frequency_ghz: float) -> Array:
    """PL_tw of the low-loss or high-loss model: Tables 7.4.3-1 and 7.4.3-2 (V19), dB.

    Args:
        high_loss: IRR glass and concrete, instead of standard glass and concrete; bool.
        frequency_ghz: f, GHz.
    """
    glass = 2.0 + 0.2 * frequency_ghz
    concrete = 5.0 + 4.0 * frequency_ghz
    coated = 25.4 + 0.11 * frequency_ghz  # V16 had 23 + 0.3 f
    low = 5.0 - 10.0 * np.log10(0.3 * 10.0 ** (-glass / 10.0) + 0.7 * 10.0 ** (-concrete / 10.0))
    high = 5.0 - 10.0 * np.log10(0.7 * 10.0 ** (-coated / 10.0) + 0.3 * 10.0 ** (-concrete / 10.0))
    return np.where(high_loss, high, low)


def depth_m(model: str, uniform: Array) -> Array:
    """d_in [K]: the smaller of two uniform depths; one for all links of a device.

    Args:
        model: uma, umi or rma.
        uniform: two random numbers in [0, 1) of each device [K, 2].
    """
    return LARGEST_DEPTH_M.get(model, 25.0) * uniform.min(axis=1)


def building_loss_db(high_loss: Array, depth: Array, normal: Array, frequency_ghz: float) -> Array:
    """Loss into a building [K], dB.

    Args:
        high_loss: of the building's walls, bool [K].
        depth: d_in [K], m.
        normal: a standard normal number of each device [K].
        frequency_ghz: f, GHz.
    """
    spread_db = np.where(high_loss, HIGH_SPREAD_DB, LOW_SPREAD_DB)
    return wall_loss_db(high_loss, frequency_ghz) + PER_METRE_DB * depth + spread_db * normal


def car_loss_db(normal: Array) -> Array:
    """Loss into a car [K], dB."""
    return CAR_MEAN_DB + CAR_SPREAD_DB * normal


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What is around K devices, whatever site they look at: drawn per device, not per link.

    Args:
        height_m: of the devices above ground [K], m.
        indoor: in a building, bool [K].
        depth_m: d_in, 0 outdoors [K], m.
        loss_db: into the building, or the car [K], dB.
    """

    height_m: Array
    indoor: Array
    depth_m: Array
    loss_db: Array

    def of(self, devices: Array) -> Surroundings:
        """Those of some devices, by their numbers [S]."""
        columns = (self.height_m, self.indoor, self.depth_m, self.loss_db)
        return Surroundings(*(column[devices] for column in columns))


def draw_surroundings(
    model: str,
    height_m: Array,
    frequency_ghz: float,
    streams: Streams,
    indoor_share: float = 0.0,
    high_loss_share: float = 0.5,
    by_floor: bool = False,
) -> Surroundings:
    """The surroundings of K devices; prefix stable, see `edgesim.seeds`.

    Args:
        model: uma, umi, rma or inh.
        height_m: h_UT of the devices outdoors [K], m.
        frequency_ghz: carrier, GHz.
        streams: random streams of the run.
        indoor_share: probability of being in a building. Of RMa the others are in cars where it is
            more than 0 (Table 7.2-3).
        high_loss_share: share of the buildings with high-loss walls; RMa has low-loss ones only.
        by_floor: indoor devices are on a floor of a building of 4 to 8 (TR 36.873, Table 6-1).
    """
    count, zero = len(height_m), np.zeros(len(height_m))
    indoor = streams.stream("indoor").random(count) < indoor_share
    if indoor_share <= 0.0:
        return Surroundings(height_m, indoor, zero, zero)
    uniform = streams.stream("indoor-depth").random((count, 2))
    inside_m = np.where(indoor, depth_m(model, uniform), 0.0)
    normal = streams.stream("wall").standard_normal((count, 2))
    high_loss = scipy.special.ndtr(normal[:, 1]) < (0.0 if model == RMA else high_loss_share)
    building_db = building_loss_db(high_loss, inside_m, normal[:, 0], frequency_ghz)
    outside_db = car_loss_db(normal[:, 0]) if model == RMA else zero
    if by_floor:
        above_m = floor_height_m(streams.stream("floor").random((count, 2)))
        height_m = np.where(indoor, above_m, height_m)
    return Surroundings(height_m, indoor, inside_m, np.where(indoor, building_db, outside_db))


def floor_height_m(uniform: Array) -> Array:
    """Heights [K] of devices in buildings, 3 (n - 1) + 1.5 on floor n: TR 36.873, Table 6-1, m.

    Args:
        uniform: two random numbers in [0, 1) of each device [K, 2].
    """
    fewest, most = FLOORS
    floors = fewest + np.floor((most - fewest + 1) * uniform[:, 0])
    return FLOOR_M * np.floor(floors * uniform[:, 1]) + OUTDOOR_M
