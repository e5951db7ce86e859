"""What a solver hands back: the shares and ratios, the proof beside them, and what is said when there is none."""

from __future__ import annotations

from dataclasses import dataclass, field

from solvers.analysis.explanation import explain
from solvers.analysis.sensitivity import Sensitivity, sensitivity
from solvers.problem import Array, PruningProblem


class Infeasible(ValueError):
    """The least shares do not fit into the band.

    devices: indices of those that do not fit.  extra_s: least time, added to every slack, with which all fit, s.
    """

    def __init__(self, message: str, devices: tuple[int, ...], extra_s: float):
        super().__init__(message)
        self.devices = devices
        self.extra_s = extra_s


class Uncertified(RuntimeError):
    """A solver's answer did not pass its certificate; it must not be used."""


class InvalidAllocation(ValueError):
    """The answer of a user's own allocator breaks a bound."""


@dataclass(frozen=True)
class Certificate:
    """How far an answer is from optimal, evaluated in SI from share and rho (all relative; nan: not claimed).

    residual: the worst of primal, dual and complementarity.     gap: duality gap, see `certify.certify`.
    broken: in words, which bounds are broken.                   claim: in words, which optimality is claimed.
    """

    residual: float
    gap: float
    primal: float
    dual: float
    complementarity: float
    broken: tuple[str, ...] = ()
    claim: str = "feasible"


@dataclass(frozen=True, eq=False)
class Allocation:
    """Band shares b [K] and pruning ratios rho [K].

    multiplier: lambda, the fall of the objective per unit of band.    objective: sum of w rho over those served.
    infeasible: indices of devices without any time left (A <= 0); they get share 0 and rho_max.
    cpu_hz, power_w: CPU frequencies [K], Hz, and transmit powers [K], W, of methods that choose them.
    """

    share: Array
    rho: Array
    multiplier: float
    certificate: Certificate
    infeasible: tuple[int, ...]
    method: str
    objective: float
    cpu_hz: Array | None = None
    power_w: Array | None = None
    problem: PruningProblem | None = field(default=None, repr=False)

    def explain(self) -> str:
        """What binds for whom, in words; see `solvers.analysis.explanation`."""
        return explain(self)

    def sensitivity(self, bandwidth_hz: float = float("nan")) -> Sensitivity:
        """What a little more band or time is worth; see `solvers.analysis.sensitivity`."""
        return sensitivity(self, bandwidth_hz)
