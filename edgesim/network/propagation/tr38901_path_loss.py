"""Path loss of 3GPP TR 38.901 (V16 to V19), clause 7.4.1: UMa, UMi street canyon, RMa, InH office.

Distances in m, frequencies in GHz, losses in dB. The speed of light is 3.0e8 m/s (Table 7.4.1-1,
Note 1); 299792458 m/s would move the breakpoint, and losses beyond it by up to 0.006 dB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fl.contracts import Array

LIGHT_M_S = 3.0e8
BUILDING_HEIGHT_M, STREET_WIDTH_M = 5.0, 20.0  # h and W of RMa, the defaults of Table 7.4.1-1
UMA, UMI, RMA, INH = "uma", "umi", "rma", "inh"


@dataclass(frozen=True)
class Scope:
    """What a model is made for: Table 7.4.1-1, with the heights of Tables 7.2-1 to 7.2-3.

    Args:
        base_height_m: h_BS by default, m.
        device_height_m: h_UT by default, m.
        nearest_m: smallest distance, horizontal but in space for inh, m.
        farthest_m: largest distance without line of sight, m.
        clear_m: the same with line of sight, m.
        heights_m: smallest and largest h_UT, m.
        base_heights_m: smallest and largest h_BS, m.
    """

    base_height_m: float
    device_height_m: float
    nearest_m: float
    farthest_m: float
    clear_m: float
    heights_m: tuple[float, float]
    base_heights_m: tuple[float, float]


SCOPES = {
    UMA: Scope(25.0, 1.5, 10.0, 5000.0, 5000.0, (1.5, 22.5), (25.0, 25.0)),
    UMI: Scope(10.0, 1.5, 10.0, 5000.0, 5000.0, (1.5, 22.5), (10.0, 10.0)),
    RMA: Scope(35.0, 1.5, 10.0, 5000.0, 10000.0, (1.0, 10.0), (10.0, 150.0)),
    INH: Scope(3.0, 1.0, 1.0, 150.0, 150.0, (0.0, 3.0), (0.0, np.inf)),
}


def path_loss_db(
    model: str,
    line_of_sight: Any,
    distance_2d_m: Any,
    base_height_m: Any,
    device_height_m: Any,
    frequency_ghz: float,
    environment_height_m: Any = 1.0,
) -> Array:
    """Path loss of links, dB.

    Args:
        model: uma, umi, rma or inh.
        line_of_sight: bool, any shape.
        distance_2d_m: horizontal distance, same shape; below the model's smallest (of inh the
            distance in space), it counts as that.
        base_height_m: h_BS, m.
        device_height_m: h_UT, m, same shape.
        frequency_ghz: f_c, GHz.
        environment_height_m: h_E of UMa, m, same shape.

    Returns:
        PL, dB, same shape.
    """
    nearest_m, h_ut = SCOPES[model].nearest_m, np.asarray(device_height_m, dtype=float)
    d2d = np.asarray(distance_2d_m, dtype=float)
    d2d = d2d if model == INH else np.maximum(d2d, nearest_m)
    d3d = np.maximum(np.hypot(d2d, base_height_m - h_ut), nearest_m)
    heights = (base_height_m, h_ut)
    if model == INH:
        clear = 32.4 + 17.3 * np.log10(d3d) + 20.0 * np.log10(frequency_ghz)
        blocked = 17.30 + 38.3 * np.log10(d3d) + 24.9 * np.log10(frequency_ghz)
    elif model == RMA:
        clear = _rural_clear(d2d, d3d, *heights, frequency_ghz)
        blocked = _rural_blocked(d3d, *heights, frequency_ghz)
    else:
        h_e = 1.0 if model == UMI else environment_height_m
        clear = _urban_clear(model, d2d, d3d, *heights, frequency_ghz, h_e)
        blocked = _urban_blocked(model, d3d, h_ut, frequency_ghz)
    return np.where(line_of_sight, clear, np.maximum(clear, blocked))


def breakpoint_m(
    model: str, base_height_m: Any, device_height_m: Any, frequency_ghz: float, h_e: Any = 1.0
) -> Array:
    """Breakpoint distance: d'_BP of UMa and UMi (Note 1), d_BP of RMa (Note 5), m.

    Of UMa and UMi no nearer than their smallest distance, where antennas stand at h_E or below.
    """
    per_m = frequency_ghz * 1e9 / LIGHT_M_S
    if model == RMA:
        return 2.0 * np.pi * base_height_m * device_height_m * per_m
    above_m = np.maximum(base_height_m - h_e, 0.0) * np.maximum(device_height_m - h_e, 0.0)
    return np.maximum(4.0 * above_m * per_m, SCOPES[model].nearest_m)


def _urban_clear(
    model: str, d2d: Array, d3d: Array, h_bs: Any, h_ut: Array, f: float, h_e: Any
) -> Array:
    start, slope, beyond = (28.0, 22.0, 9.0) if model == UMA else (32.4, 21.0, 9.5)
    corner_m = breakpoint_m(model, h_bs, h_ut, f, h_e)
    frequency = 20.0 * np.log10(f)
    near = start + slope * np.log10(d3d) + frequency
    far = start + 40.0 * np.log10(d3d) + frequency
    far = far - beyond * np.log10(corner_m**2 + (h_bs - h_ut) ** 2)
    return np.where(d2d <= corner_m, near, far)


def _urban_blocked(model: str, d3d: Array, h_ut: Array, f: float) -> Array:
    if model == UMA:
        return 13.54 + 39.08 * np.log10(d3d) + 20.0 * np.log10(f) - 0.6 * (h_ut - 1.5)
    return 22.4 + 35.3 * np.log10(d3d) + 21.3 * np.log10(f) - 0.3 * (h_ut - 1.5)


def _rural_clear(d2d: Array, d3d: Array, h_bs: Any, h_ut: Array, f: float) -> Array:
    h = BUILDING_HEIGHT_M

    def near(d: Any) -> Any:
        linear = 20.0 * np.log10(40.0 * np.pi * d * f / 3.0)
        houses = min(0.03 * h**1.72, 10.0) * np.log10(d) - min(0.044 * h**1.72, 14.77)
        return linear + houses + 0.002 * np.log10(h) * d

    corner_m = breakpoint_m(RMA, h_bs, h_ut, f)
    return np.where(d2d <= corner_m, near(d3d), near(corner_m) + 40.0 * np.log10(d3d / corner_m))


def _rural_blocked(d3d: Array, h_bs: Any, h_ut: Array, f: float) -> Array:
    h, w = BUILDING_HEIGHT_M, STREET_WIDTH_M
    return (
        161.04
        - 7.1 * np.log10(w)
        + 7.5 * np.log10(h)
        - (24.37 - 3.7 * (h / h_bs) ** 2) * np.log10(h_bs)
        + (43.42 - 3.1 * np.log10(h_bs)) * (np.log10(d3d) - 3.0)
        + 20.0 * np.log10(f)
        - (3.2 * np.log10(11.75 * h_ut) ** 2 - 4.97)
    )


def line_of_sight_probability(model: str, distance_2d_m: Any, device_height_m: Any = 1.5) -> Array:
    """Probability of line of sight: Table 7.4.2-1; of InH the mixed office.

    Args:
        model: uma, umi, rma or inh.
        distance_2d_m: outdoor part of the horizontal distance (indoor distance of InH), m.
        device_height_m: h_UT, m.
    """
    d = np.maximum(np.asarray(distance_2d_m, dtype=float), 1e-3)
    if model == RMA:
        return np.where(d <= 10.0, 1.0, np.exp(-(d - 10.0) / 1000.0))
    if model == INH:
        middle, far = np.exp(-(d - 1.2) / 4.7), 0.32 * np.exp(-(d - 6.5) / 32.6)
        return np.where(d <= 1.2, 1.0, np.where(d < 6.5, middle, far))
    length = 36.0 if model == UMI else 63.0
    probability = 18.0 / d + np.exp(-d / length) * (1.0 - 18.0 / d)
    if model == UMA:
        probability = probability * (1.0 + _elevated(device_height_m) * _elevation(d))
    return np.where(d <= 18.0, 1.0, probability)


def _elevated(device_height_m: Any) -> Array:
    """C'(h_UT) of UMa."""
    above = np.clip((np.asarray(device_height_m, dtype=float) - 13.0) / 10.0, 0.0, None)
    return above**1.5


def _elevation(d: Array) -> Array:
    """g(d_2D) of UMa."""
    return 1.25 * (d / 100.0) ** 3 * np.exp(-d / 150.0)


def environment_height_m(distance_2d_m: Any, device_height_m: Any, uniform: Array) -> Array:
    """h_E of UMa, Table 7.4.1-1, Note 1: 1 m, or for high devices one of 12, 15, ... h_UT - 1.5.

    Args:
        distance_2d_m: horizontal distance [K], m.
        device_height_m: h_UT [K], m.
        uniform: two random numbers in [0, 1) of each link [K, 2].
    """
    d, h_ut = np.asarray(distance_2d_m, dtype=float), np.asarray(device_height_m, dtype=float)
    c = np.where(d > 18.0, _elevated(h_ut) * _elevation(d), 0.0)
    # 12, 15, ... up to h_UT - 1.5
    steps = np.maximum(np.floor((h_ut - 1.5 - 12.0) / 3.0) + 1.0, 0.0)
    drawn = 12.0 + 3.0 * np.floor(uniform[:, 1] * steps)
    return np.where((uniform[:, 0] < 1.0 / (1.0 + c)) | (steps < 1.0), 1.0, drawn)
