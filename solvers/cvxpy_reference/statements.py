"""The allocation problems stated for cvxpy: with parameters (DPP), built once, solved again.

Shares and rates are measured in those of a point nearby, b = b0 beta and R(b) = R(b0) e, so that
beta and e are of order one. Where noise is a density and c is the signal-to-noise ratio in the
share b0, the rate is the concave Shannon form

    e log(1 + c) <= beta log(1 + c) - rel_entr(beta, (beta + c) / (1 + c)).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np

from solvers.arrays import Array
from solvers.solution import UncertifiedError

CACHED = 32  # statements that stay in memory
LOCK = Lock()  # a cached statement holds the numbers of one problem at a time
# with a regularisation of 1e-8, the usual one, gaps stay above 1e-6 on some problems
TIGHT = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}
TIGHT |= {"static_regularization_constant": 1e-10, "static_regularization_proportional": 0.0}


class Statement:
    """Band and rates of K devices under noise of a fixed power or a density."""

    def __init__(self, count: int, density: bool) -> None:
        import cvxpy as cp  # takes a second

        self.cp, self.count = cp, count
        self.beta = cp.Variable(count, nonneg=True)
        self.rate = cp.Variable(count) if density else self.beta
        self.band = self.given("b0") @ self.beta <= cp.Parameter(name="band", nonneg=True)
        self.constraints: list[Any] = [self.band]
        if density:
            log = self.given("log_snr")
            mixture = cp.multiply(self.given("noise"), self.beta) + self.given("signal")
            most = cp.multiply(log, self.beta) - cp.rel_entr(self.beta, mixture)
            self.constraints.append(cp.multiply(log, self.rate) <= most)

    def given(self, name: str, signed: bool = False) -> Any:
        """A parameter [K] of this name, not negative unless `signed`."""
        return self.cp.Parameter(self.count, name=name, nonneg=not signed)

    def minimise(self, objective: Any, *results: Any) -> Statement:
        """The statement with its objective; `results` are variables to return besides beta."""
        self.results = (self.beta, *results)
        self.task: Any = self.cp.Problem(self.cp.Minimize(objective), self.constraints)
        return self

    def solve(self, values: Mapping[str, Array | float]) -> tuple[Any, ...]:
        """beta [K], the other results, and the multiplier of the band with these parameters.

        Raises:
            UncertifiedError: Clarabel found no answer.
        """
        if not all(np.isfinite(value).all() for value in values.values()):
            raise UncertifiedError("numbers are too far apart for Clarabel")
        with LOCK, warnings.catch_warnings():
            # whether an answer is accurate enough is decided by its certificate
            warnings.filterwarnings("ignore", message="Solution may be inaccurate")
            for name, parameter in self.task.param_dict.items():
                parameter.value = values[name]
            for settings in (TIGHT, TIGHT | {"static_regularization_constant": 1e-8}, {}):
                try:
                    # a warm start would let the last digits depend on the problem solved before
                    self.task.solve(solver=self.cp.CLARABEL, warm_start=False, **settings)
                except self.cp.error.SolverError:
                    continue
                if self.task.status in (self.cp.OPTIMAL, self.cp.OPTIMAL_INACCURATE):
                    return *(each.value for each in self.results), float(self.band.dual_value)
        raise UncertifiedError("Clarabel finds no answer")


@lru_cache(maxsize=CACHED)
def largest_utility(count: int, density: bool, alpha: float) -> Statement:
    """Largest sum of w U(x) over kept shares x = 1 - rho within their bounds: Liu, eqs. (43)-(47).

    U(x) = x^(1 - alpha) / (1 - alpha), at alpha = 1 log x; at alpha = inf the least x counts. The
    deadline allows x = (A R - f) / (G R + q) = x0 + slope d / (1 + kappa d) with d = e - 1 and
    kappa = G R0 / (G R0 + q). In t <= d - kappa y, y (1 + kappa d) >= d^2 is a cone.
    """
    s = Statement(count, density)
    cp, (x, t, y) = s.cp, (s.cp.Variable(count) for _ in range(3))
    d, kappa = s.rate - 1.0, s.given("kappa")
    span = 1.0 + cp.multiply(kappa, d)
    s.constraints += [
        cp.SOC(span + y, cp.vstack([2.0 * d, span - y])),
        t <= d - cp.multiply(kappa, y),
        x == s.given("x0", signed=True) + cp.multiply(s.given("slope"), t),
        x >= s.given("x_min"),
        x <= s.given("x_max"),
    ]
    if alpha == np.inf:
        return s.minimise(-cp.min(x))
    utility = cp.log(x) if alpha == 1 else cp.power(x, 1.0 - alpha) / (1.0 - alpha)
    return s.minimise(-(s.given("weight") @ utility))


@lru_cache(maxsize=CACHED)
def least_time(count: int, density: bool) -> Statement:
    """Least T with busy + upload / e <= T for every device: Liu, eqs. (28), (29)."""
    s = Statement(count, density)
    upload = s.cp.multiply(s.given("upload"), s.cp.inv_pos(s.rate))
    return s.minimise(s.cp.max(s.given("busy") + upload))


@lru_cache(maxsize=CACHED)
def least_energy(count: int, density: bool) -> Statement:
    """Least energy (Yang et al., 2021) over shares, air times u and computing times v [K].

    With x = s / (b t) nats per second and hertz, the energy of sending under a density of noise is

        b t (e^x - 1) / g = (s / g) (e^x - 1) / x = (s / g) integral of e^(z x), z from 0 to 1,

    a sum of exponentials at `NODES`; under noise of a fixed power it is that over b. In
    x >= x0 / y^2, y^2 <= beta u is a cone.
    """
    s = Statement(count, density)
    cp, (u, v, x, y, level) = s.cp, (s.cp.Variable(count) for _ in range(5))
    s.constraints += [
        cp.multiply(s.given("air"), u) + cp.multiply(s.given("busy"), v) <= 1,
        v >= s.given("v_min"),
        v <= s.given("v_max"),
        cp.multiply(s.given("load"), cp.inv_pos(u)) <= s.rate,  # no more than full power
        cp.SOC(s.beta + u, cp.vstack([2.0 * y, s.beta - u])),
        x >= cp.multiply(s.given("x0"), cp.power(y, -2)),
    ]
    cost = s.given("cost", signed=True)
    s.constraints.append(level >= (cost if density else cost - cp.log(s.beta)))
    nodes = zip(*NODES, strict=True)
    sending = sum(cp.sum(cp.exp(z * x + level + np.log(part))) for z, part in nodes)
    return s.minimise(s.given("computing") @ cp.power(v, -2) + sending, u)


def quadrature(count: int) -> tuple[Array, Array]:
    """Nodes and weights on [0, 1], Gauss and Legendre: (e^x - 1) / x = sum weight e^(node x)."""
    at, weight = np.polynomial.legendre.leggauss(count)
    return 0.5 * (at + 1.0), 0.5 * weight


NODES = quadrature(16)  # exact to 1e-13 up to x = 25, 36 bit/s/Hz
