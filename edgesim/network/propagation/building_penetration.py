"""Penetration of outdoor signals into buildings and cars: 3GPP TR 38.901, clauses 7.4.3.1, 7.4.3.2.

PL = PL_b + PL_tw + 0.5 d_in + N(0, sigma_P^2)
"""

from __future__ import annotations

import numpy as np

from edgesim.network.propagation.tr38901_path_loss import RMA
from fl.contracts import Array

LOW_SPREAD_DB, HIGH_SPREAD_DB = 4.4, 6.5  # sigma_P, Table 7.4.3-2
CAR_MEAN_DB, CAR_SPREAD_DB = 9.0, 5.0  # clause 7.4.3.2
PER_METRE_DB = 0.5  # PL_in / d_in
LARGEST_DEPTH_M = {RMA: 10.0}  # of the depth in a building, 25 m elsewhere


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
