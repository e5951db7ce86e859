"""Delay spreads of links by position: 3GPP TR 38.901, Table 7.5-6 (V19; UMa and UMi differ in V16).

lg(DS / 1 s) is normal around a + b lg(o + f), f in GHz, with a deviation of the same form, and is
correlated with the shadowing and the K factor of the link (clause 7.5, step 4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from edgesim.network.propagation.site_fields import LOS, NLOS, O2I, STATISTICS, FieldsOfSite, states
from edgesim.network.propagation.tr38901_path_loss import INH, RMA, UMA, UMI
from fl.contracts import Array


@dataclass(frozen=True)
class DelayStatistics:
    """Of the links of one state.

    Args:
        mean: (a, b) of the mean of lg(DS / 1 s).
        spread: (a, b) of its standard deviation.
        with_shadowing: correlation with the shadowing, positive where more arrives.
        with_k: correlation with the K factor, where there is a line of sight.
        decorrelation_m: its distance, m.
    """

    mean: tuple[float, float]
    spread: tuple[float, float]
    with_shadowing: float
    with_k: float
    decorrelation_m: float


INDOOR = DelayStatistics((-6.62, 0.0), (0.32, 0.0), -0.5, 0.0, 10)
DELAYS = {
    UMA: {
        LOS: DelayStatistics((-7.067, -0.0794), (0.57, 0.026), -0.4, -0.4, 30),
        NLOS: DelayStatistics((-6.47, -0.134), (0.39, 0.0), -0.4, 0.0, 40),
        O2I: INDOOR,
    },
    UMI: {
        LOS: DelayStatistics((-7.28, -0.18), (0.39, 0.0), -0.4, -0.7, 7),
        NLOS: DelayStatistics((-6.87, -0.22), (0.22, 0.19), -0.7, 0.0, 10),
        O2I: INDOOR,
    },
    RMA: {
        LOS: DelayStatistics((-7.49, 0.0), (0.55, 0.0), -0.5, 0.0, 50),
        NLOS: DelayStatistics((-7.43, 0.0), (0.48, 0.0), -0.5, 0.0, 36),
        O2I: DelayStatistics((-7.47, 0.0), (0.24, 0.0), 0.0, 0.0, 36),
    },
    INH: {
        LOS: DelayStatistics((-7.692, -0.01), (0.18, 0.0), -0.8, -0.5, 8),
        NLOS: DelayStatistics((-7.173, -0.28), (0.055, 0.10), -0.5, 0.0, 5),
    },
}
OFFSET = {UMA: 0.0, UMI: 1.0, RMA: 0.0, INH: 1.0}  # o
LOWEST_GHZ = {UMA: 6.0, UMI: 2.0, RMA: 0.0, INH: 6.0}  # lower frequencies count as this one


def lg_delay_spread(model: str, state: str, frequency_ghz: float) -> tuple[float, float]:
    """Mean and standard deviation of lg(DS / 1 s).

    Example:
        >>> mean, _ = lg_delay_spread("uma", "nlos", 3.5)  # 3.5 GHz counts as 6 GHz
        >>> round(1e9 * 10**mean)  # ns
        267
    """
    table = DELAYS[model][state]
    lg_f = math.log10(OFFSET[model] + max(frequency_ghz, LOWEST_GHZ[model]))
    mean, spread = (a + b * lg_f for a, b in (table.mean, table.spread))
    return mean, spread


def delay_spreads_s(
    fields: FieldsOfSite,
    frequency_ghz: float,
    position_m: Array,
    line_of_sight: Array,
    indoor: Array,
    common_m: Array | None = None,
) -> Array:
    """DS of links to a site [K], s.

    Args:
        fields: of the site.
        frequency_ghz: carrier, GHz.
        position_m: of the devices [K, 2], m.
        line_of_sight: bool [K].
        indoor: bool [K].
        common_m: the same place for all sites [K, 2], m; None: ``position_m``.
    """
    found = np.empty(len(position_m))
    for state, here in states(line_of_sight, indoor):
        table = DELAYS[fields.model][state]
        mean, spread = lg_delay_spread(fields.model, state, frequency_ghz)
        place_m, common = position_m[here], None if common_m is None else common_m[here]
        z = table.with_shadowing * fields.shadow(state, place_m, common)
        left = 1.0 - table.with_shadowing**2
        if table.with_k:
            # what is left of the correlation beside that by way of the shadowing
            c = STATISTICS[fields.model].k_correlation
            by_k = (table.with_k - c * table.with_shadowing) / math.sqrt(1.0 - c**2)
            z, left = z + by_k * fields.k_factor.at(place_m), left - by_k**2
        own = fields.field(f"field/ds/{state}", table.decorrelation_m).at(place_m)
        found[here] = 10.0 ** (mean + spread * (z + math.sqrt(left) * own))
    return found
