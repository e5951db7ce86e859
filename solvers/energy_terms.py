"""Clocks, powers and computing work of the devices: what the energy of a round depends on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from solvers.arrays import FINITE, Array, broadcast, require_between, require_positive


@dataclass(frozen=True, eq=False, init=False)
class EnergyTerms:
    """What energy depends on beside a `PruningProblem`; each a number or one value per device [K].

    Args:
        cycles: C, of all the work of a round at rho_min, the unprunable included.
        kappa: effective capacitance, J s^2; a cycle at f hertz takes kappa f^2 joules.
        f_min_hz: least clock to choose, Hz.
        f_max_hz: largest clock, Hz; slack_s and compute_s of the problem are those at f_max_hz.
        p_max_w: most transmit power, W, with which rate_bps of the problem is reached.
        gain: signal-to-noise ratio over the whole band per watt, 1/W: h / sigma^2 or h / (N0 B).
        air_share: part of the time of an upload in which the power is sent, in (0, 1]; rate_bps of
            the problem is the mean over all of that time, as under a TDD pattern.

    Raises:
        ValueError: names the field, the device, what was given and what is allowed.
    """

    cycles: Array
    kappa: Array
    f_min_hz: Array
    f_max_hz: Array
    p_max_w: Array
    gain: Array
    air_share: Array

    def __init__(
        self,
        cycles: ArrayLike,
        kappa: ArrayLike,
        f_min_hz: ArrayLike,
        f_max_hz: ArrayLike,
        p_max_w: ArrayLike,
        gain: ArrayLike,
        air_share: ArrayLike = 1.0,
    ) -> None:
        given = {"cycles": cycles, "kappa": kappa, "f_min_hz": f_min_hz, "f_max_hz": f_max_hz}
        radio = {"p_max_w": p_max_w, "gain": gain, "air_share": air_share}
        vars(self).update(broadcast(given | radio))
        for name in ("cycles", "kappa"):
            require_between(name, getattr(self, name), 0.0, FINITE, "finite and not negative")
        for name in ("f_max_hz", "p_max_w", "gain", "air_share"):
            require_positive(name, getattr(self, name))
        require_between("air_share", self.air_share, 0.0, 1.0, "at most 1")
        require_between("f_min_hz", self.f_min_hz, 0.0, self.f_max_hz, "between 0 and f_max_hz")

    def spread(self, count: int) -> EnergyTerms:
        """The same with arrays [K] of K devices.

        Raises:
            ValueError: the terms are those of another number of devices.
        """
        given = len(self.cycles)
        if given not in (1, count):
            raise ValueError(
                f"energy has {given} devices and the problem {count}; give one value for each."
            )
        columns = vars(self).items()
        return EnergyTerms(**{name: np.broadcast_to(values, (count,)) for name, values in columns})
