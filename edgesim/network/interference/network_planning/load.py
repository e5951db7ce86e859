"""Interference of devices that send for a part of the time only: a fixed point of their loads.

x_k = min(1, q_k / (R_k(x) T)), with interference of the mean powers x_j p_j. The map is positive,
monotone and scalable, a standard interference function (Yates, IEEE JSAC 1995): it has one fixed
point, to which plain iteration leads from everybody's full load.
"""

from __future__ import annotations

import numpy as np

from edgesim.network.channel import Channel
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.uplink_rates import noise_factor
from fl.contracts import Array

TURNS, CLOSE = 200, 1e-12  # at most; largest change of a load that ends them


def loads(
    couplings: Couplings,
    channel: Channel,
    gain: Array,
    share: Array,
    power_w: Array,
    bits: Array,
    window_s: Array | float,
) -> Array:
    """x [K], the part of its time in which each device sends.

    Args:
        couplings: gains at other sectors.
        channel: the rate of a share of the band.
        gain: at the own sector [K], linear.
        share: b [K]; 0: the device does not take part.
        power_w: p [K], W.
        bits: q [K], bit.
        window_s: T, time in which the bits are to be sent [K], s.
    """
    x = np.where((share > 0.0) & (bits > 0.0), 1.0, 0.0)
    for _ in range(TURNS):
        density = couplings.interference(x * power_w / channel.bandwidth_hz)
        seen = gain * noise_factor(channel, density)[couplings.serving]
        carried = np.asarray(channel.rate_bps(share, power_w, seen)) * window_s
        with np.errstate(divide="ignore", invalid="ignore"):
            # What cannot be sent at all is sent all the time.
            again = np.where(x > 0.0, np.where(carried > bits, bits / carried, 1.0), 0.0)
        moved, x = float(np.abs(again - x).max(initial=0.0)), again
        if moved <= CLOSE:
            break
    return x
