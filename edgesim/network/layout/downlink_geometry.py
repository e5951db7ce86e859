"""Geometry of the downlink: what a device hears of its sector beside all others, without fading."""

from __future__ import annotations

from typing import Any

import numpy as np

from fl.contracts import Array


def downlink_sir(coupling: Array) -> Array:
    """Ratio of the strongest sector to the sum of the others, all sending alike [K], linear.

    Args:
        coupling: gains before fast fading [K, S], linear; S of at least two.
    """
    own = coupling.max(axis=1)
    return own / _others(coupling)


def downlink_sinr(coupling: Array, power_w: Any, noise_w: float) -> Array:
    """The same beside noise: 3GPP TR 38.901, clause 7.8, "geometry" [K], linear.

    Args:
        coupling: gains before fast fading [K, S], linear.
        power_w: of a sector, W.
        noise_w: over the band, at the device, W.
    """
    own = coupling.max(axis=1)
    return own * power_w / (_others(coupling) * power_w + noise_w)


def _others(coupling: Array) -> Array:
    """Sum over all sectors but the strongest [K]; not as a difference, which would cancel."""
    serving = coupling.argmax(axis=1)
    others = coupling.copy()
    others[np.arange(len(others)), serving] = 0.0
    total: Array = others.sum(axis=1)
    return total
