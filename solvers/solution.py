"""What an allocation method returns: shares and ratios with a certificate, or an error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from solvers.arrays import Array
from solvers.problem import PruningProblem

NAMED = 8  # devices that an error names


class SolverError(Exception):
    """Base of the errors of this package, except a ValueError for numbers that are not allowed."""


class NamedDevicesError(SolverError):
    """An error that names devices.

    Args:
        sentence: with ``{}`` where the devices are named.
        devices: their indices.
        more: further arguments of the kind of error.
    """

    def __init__(self, sentence: str, devices: tuple[int, ...] = (), *more: Any) -> None:
        # SimPy makes errors of processes again from their arguments
        super().__init__(sentence, devices, *more)
        self.sentence, self.devices = sentence, devices

    def __str__(self) -> str:
        names = ", ".join(map(str, self.devices[:NAMED]))
        if len(self.devices) > NAMED:
            names += f" and {len(self.devices) - NAMED} more"
        return self.sentence.replace("{}", names)

    def of(self, numbers: Sequence[int] | Array) -> Self:
        """The same error with the devices' own numbers, given by index [K]."""
        devices = tuple(int(numbers[k]) for k in self.devices)
        return type(self)(self.sentence, devices, *self.args[2:])


class InfeasibleError(NamedDevicesError, ValueError):
    """The least shares do not fit into the band.

    Args:
        sentence: with ``{}`` where the devices are named.
        devices: indices of the devices that do not fit.
        extra_s: least time, added to every slack, with which all fit, s.
    """

    def __init__(self, sentence: str, devices: tuple[int, ...], extra_s: float) -> None:
        super().__init__(sentence, devices, extra_s)
        self.extra_s = extra_s


class UncertifiedError(NamedDevicesError, RuntimeError):
    """The answer of a method did not pass its certificate and must not be used.

    Args:
        sentence: with ``{}`` for each of the devices.
        devices: their indices.
    """

    def __str__(self) -> str:
        return _each_named(self.sentence, map(str, self.devices))


class InvalidAllocationError(NamedDevicesError, ValueError):
    """The answer of a user's own allocator breaks a bound.

    Args:
        sentence: with ``{}`` for each of the devices.
        devices: their numbers, or indices where they have no others.
        indices: in the arrays that the allocator was given; None: the numbers.
    """

    def __init__(
        self,
        sentence: str,
        devices: tuple[int, ...] = (),
        indices: tuple[int, ...] | None = None,
    ) -> None:
        self.indices = devices if indices is None else indices
        super().__init__(sentence, devices, self.indices)

    def __str__(self) -> str:
        pairs = zip(self.devices, self.indices, strict=True)
        names = (f"{k}" if k == i else f"{k} (index {i} of its arrays)" for k, i in pairs)
        return _each_named(self.sentence, names)


def _each_named(sentence: str, names: Iterable[str]) -> str:
    """The sentence with a name in each place for one, in their order."""
    for name in names:
        sentence = sentence.replace("{}", name, 1)
    return sentence


@dataclass(frozen=True)
class Certificate:
    """How far an answer is from optimal, evaluated in SI units from shares and ratios.

    All numbers are relative; nan where the method makes no such claim.

    Attributes:
        residual: the worst of primal, dual and complementarity.
        gap: duality gap, see `solvers.certificate.certify`.
        primal: worst excess of a deadline, of the band or of a bound.
        dual: worst violation of stationarity.
        complementarity: multipliers times what is left of their constraints.
        broken: the bounds that are broken, in words.
        claim: the optimality that is claimed, in words.
    """

    residual: float
    gap: float
    primal: float
    dual: float
    complementarity: float
    broken: tuple[str, ...] = ()
    claim: str = "feasible"


@dataclass(frozen=True, eq=False)
class Solution:
    """Band shares and pruning ratios of K devices, as a method returns them.

    Attributes:
        share: b [K], fraction of the band.
        rho: pruned share of the model [K].
        multiplier: lambda, the fall of the objective per unit of band.
        certificate: what is proven about the answer.
        infeasible: indices of devices without any time left (A <= 0): share 0 and rho_max.
        method: name of the method.
        objective: sum of w rho over the devices served, or what the method minimises instead.
        problem: the problem that was solved.
        cpu_hz: CPU frequencies [K], Hz, of methods that choose them.
        power_w: transmit powers [K], W, of methods that choose them.
        alpha: fairness of the utility that is maximised; None: the method has none.
    """

    share: Array
    rho: Array
    multiplier: float
    certificate: Certificate
    infeasible: tuple[int, ...]
    method: str
    objective: float
    problem: PruningProblem = field(repr=False)
    cpu_hz: Array | None = None
    power_w: Array | None = None
    alpha: float | None = None
