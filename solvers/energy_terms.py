"""Clocks, powers and computing work of the devices: what the energy of a round depends on."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from solvers.physics import Array
from solvers.problem_checks import FINITE, between, broadcast


@dataclass(frozen=True, eq=False)
class EnergyTerms:
    """What energy depends on beside a `PruningProblem`; each a number or one value per device [K].

    Args:
        cycles: C, of all the work of a round at rho_min, the unprunable included.
        kappa: effective capacitance, J s^2; a cycle at f hertz takes kappa f^2 joules.
        f_min_hz: least clock to choose, Hz.
        f_max_hz: largest clock, Hz; slack_s and compute_s of the problem are those at f_max_hz.
        p_max_w: most transmit power, W, with which rate_bps of the problem is reached.
        gain: signal-to-noise ratio over the whole band per watt, 1/W: h / sigma^2 or h / (N0 B).

    Raises:
        ValueError: names the field, the device, what was given and what is allowed.
    """

    cycles: Array | float
    kappa: Array | float
    f_min_hz: Array | float
    f_max_hz: Array | float
    p_max_w: Array | float
    gain: Array | float

    def __post_init__(self) -> None:
        for name, values in broadcast({name: getattr(self, name) for name in NAMES}).items():
            object.__setattr__(self, name, values)
        for name in ("cycles", "kappa"):
            between(name, getattr(self, name), 0.0, FINITE, "finite and not negative")
        for name in ("f_max_hz", "p_max_w", "gain"):
            between(name, getattr(self, name), 0.0, FINITE, "finite and positive", open_=True)
        between("f_min_hz", self.f_min_hz, 0.0, self.f_max_hz, "between 0 and f_max_hz")

    def spread(self, count: int) -> EnergyTerms:
        """The same with arrays [K] of K devices."""
        given = len(self.cycles)
        if given not in (1, count):
            raise ValueError(
                f"energy has {given} devices and the problem {count}; give one value for each."
            )
        columns = {name: np.broadcast_to(getattr(self, name), (count,)) for name in NAMES}
        return EnergyTerms(**columns)


NAMES = [field.name for field in fields(EnergyTerms)]
