"""Weighted max-min fair shares of the band, where no device can use more than its cap.

b_k = min(cap_k, phi_k theta), with theta such that the band is used up, or every cap is reached
(Bertsekas and Gallager, Data Networks, Section 6.5.2). Optimality is read off: the shares sum to 1,
or all are at their caps; whoever is below its cap has b_k / phi_k = theta; and whoever is at it has
no more than that.
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Array
from solvers.solution import UncertifiedError

TOLERANCE = 1e-12


def max_min_shares(weight: Array, cap: Array | float = 1.0) -> tuple[Array, float]:
    """Shares of the band of those that send.

    Args:
        weight: phi > 0 [K].
        cap: largest share that a device can use, > 0, [K] or one number.

    Returns:
        (shares [K], theta); theta is inf where every device is at its cap.

    Raises:
        ValueError: a weight or a cap that is not positive.
        UncertifiedError: the shares are not those that were looked for.

    Example:
        >>> max_min_shares([1, 1, 2], [0.1, 1, 1])[0].round(6)
        array([0.1, 0.3, 0.6])
    """
    weight = np.asarray(weight, dtype=float)
    cap = np.broadcast_to(np.asarray(cap, dtype=float), weight.shape)
    if not ((weight > 0.0) & (cap > 0.0)).all():
        raise ValueError("weights and caps of shares must be positive")
    if cap.sum() <= 1.0:
        return cap.copy(), float("inf")
    order = np.argsort(cap / weight, kind="stable")
    # theta if the first j of this order are at their caps and the others share the rest
    capped = np.concatenate([[0.0], np.cumsum(cap[order])[:-1]])
    others = np.cumsum(weight[order][::-1])[::-1]
    theta_j = (1.0 - capped) / others
    fits = theta_j <= (cap / weight)[order]
    fits[-1] = True  # but for rounding, where all but fill the band at their caps
    theta = float(theta_j[int(np.argmax(fits))])
    share = np.minimum(cap, weight * theta)
    certify(weight, cap, share, theta)
    return share, theta


def certify(weight: Array, cap: Array, share: Array, theta: float) -> None:
    """Raise UncertifiedError where shares are not max-min fair, by more than rounding."""
    below = share < cap * (1.0 - TOLERANCE)
    unlike = np.abs(share / weight - theta)[below].max(initial=0.0) / theta
    above = (share / weight / theta - 1.0).max(initial=0.0)
    unused = abs(1.0 - share.sum())
    if max(unlike, above, unused) > TOLERANCE * (1 + len(share)):
        raise UncertifiedError(
            f"shares sum to {share.sum()} and differ by {unlike} from their common level"
        )
