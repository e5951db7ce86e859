"""Antennas of a sector: 3GPP TR 38.901, Table 7.3-1, and a column of such elements.

Angles in degrees: the zenith angle is 0 upwards and 90 on the horizon, the azimuth is that from the
boresight.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgesim.scenario.radio.antenna_schema import AntennaSection
from fl.contracts import Array

WIDTH_DEG = 65.0  # of the half power, in both planes
FLOOR_DB = 30.0  # least side lobe and front to back
PEAK_DBI = 8.0


def element_gain_dbi(zenith_deg: Any, azimuth_deg: Any) -> Array:
    """Gain of one element, dBi: TR 38.901, Table 7.3-1.

    Args:
        zenith_deg: any shape.
        azimuth_deg: from the boresight, same shape.
    """
    turned = (np.asarray(azimuth_deg, dtype=float) + 180.0) % 360.0 - 180.0
    zenith = np.asarray(zenith_deg, dtype=float)
    vertical = np.minimum(12.0 * ((zenith - 90.0) / WIDTH_DEG) ** 2, FLOOR_DB)
    horizontal = np.minimum(12.0 * (turned / WIDTH_DEG) ** 2, FLOOR_DB)
    return PEAK_DBI - np.minimum(vertical + horizontal, FLOOR_DB)


def column_gain_db(zenith_deg: Any, downtilt_deg: float, elements: int) -> Array:
    """Gain of a column of elements half a wavelength apart over one of them, dB.

    10 lg(sin^2(M x / 2) / (M sin^2(x / 2))), x = pi (cos theta - cos downtilt).

    Args:
        zenith_deg: theta, any shape.
        downtilt_deg: zenith angle of the beam.
        elements: M.
    """
    theta = np.radians(np.asarray(zenith_deg, dtype=float))
    half = 0.5 * np.pi * (np.cos(theta) - np.cos(np.radians(downtilt_deg)))
    one = np.abs(np.sin(half)) < 1e-9  # in the beam: M
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.sin(elements * half) ** 2 / (elements * np.sin(half) ** 2)
    with np.errstate(divide="ignore"):
        return 10.0 * np.log10(np.where(one, float(elements), power))


def antenna_gain_db(
    section: AntennaSection, position_m: Array, drop_m: Array, boresight_deg: float | None = None
) -> Array:
    """Gain towards devices [K], dBi.

    Args:
        section: the scenario's antenna.
        position_m: of the devices, the site at the origin [K, 2], m.
        drop_m: height of the antenna above each device [K], m.
        boresight_deg: of this sector; None: the section's azimuth.
    """
    x, y = position_m.T
    boresight_deg = section.azimuth_deg if boresight_deg is None else boresight_deg
    azimuth_deg = np.degrees(np.arctan2(y, x)) - boresight_deg
    zenith_deg = 90.0 + np.degrees(np.arctan2(drop_m, np.hypot(x, y)))
    gain_db = element_gain_dbi(zenith_deg, azimuth_deg)
    if section.kind == "column":
        # Between lobes nothing would arrive: the floor of an element holds for the column too.
        column_db = column_gain_db(zenith_deg, section.downtilt_deg, section.elements)
        gain_db = gain_db + np.maximum(column_db, -FLOOR_DB)
    return gain_db
