"""Fractional power control of the uplink: 3GPP TS 38.213, clause 7.1.1.

P = min(Pmax, P0 + 10 lg(2^mu M_RB) + alpha PL), dBm. 2^mu M_RB counts blocks of 180 kHz whatever
the subcarrier spacing, so that P0 + alpha PL is a power density, and in a fluid cell the blocks are
b B / 180 kHz, a real number. PL is the loss before fast fading: path loss, walls, shadowing and
antenna. A device that takes more of the band than a certain share sends with all its power.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgesim.scenario.network_schema import NetworkSection
from fl.contracts import Array

BLOCK_HZ = 180e3  # 12 subcarriers of 15 kHz


@dataclass(frozen=True)
class PowerControl:
    """Power densities by path gain.

    Args:
        p0_w: P0, W per 180 kHz.
        alpha: share of the path loss that devices make up for.
    """

    p0_w: float
    alpha: float

    def density_w_per_hz(self, path_gain: Array) -> Array:
        """What devices send with while their power lasts, W/Hz, same shape.

        Args:
            path_gain: before fast fading, linear, any shape.

        Example:
            >>> control = PowerControl(p0_w=10**-11.5, alpha=0.8)
            >>> watt = control.density_w_per_hz(1e-11) * 20 * BLOCK_HZ  # 10 blocks of 360 kHz
            >>> round(10 * math.log10(watt / 1e-3), 6)  # dBm
            16.0103
        """
        return self.p0_w / BLOCK_HZ * path_gain**-self.alpha

    def sent_w(self, used_hz: Any, most_w: Any, path_gain: Array) -> Array:
        """Power over a band, W, same shape.

        Args:
            used_hz: width of the band, Hz, any shape.
            most_w: Pmax, W, same shape.
            path_gain: before fast fading, linear, same shape.
        """
        return np.minimum(most_w, self.density_w_per_hz(path_gain) * used_hz)


def make_power_control(network: NetworkSection) -> PowerControl | None:
    """The power control of a scenario's ``network`` section; None: all power.

    The gains of a channel have the implementation loss of its receiver in them, which is no path
    loss: P0 makes up for that.
    """
    section, adaptation = network.power_control, network.adaptation
    if section is None:
        return None
    loss_db = adaptation.implementation_loss_db if adaptation else 0.0
    lost = math.pow(10.0, -section.alpha * loss_db / 10.0)
    return PowerControl(section.p0_w * lost, section.alpha)
