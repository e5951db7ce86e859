"""The allocation problems as cvxpy statements: parametrised (DPP), built once, solved again.

A statement measures share and rate of each device in those of a point nearby: b = b0 beta and
R(b) = R(b0) e, so that beta and e are of order one. Where noise is a density and c is the
signal-to-noise ratio in the share b0, the rate is the concave Shannon form

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
TIGHT = {
    "tol_gap_abs": 1e-13,
    "tol_gap_rel": 1e-13,
    "tol_feas": 1e-13,
    "static_regularization_constant": 1e-10,  # with 1e-8 the gap stays above 1e-6 on some problems
    "static_regularization_proportional": 0.0,
}


class Statement:
    """Band and rates of K devices, what all statements have in common.

    Args:
        count: K.
        density: whether noise is a density.

    Attributes:
        beta: shares [K], in units of b0.
        rate: rates [K], in units of R(b0).
        constraints: the constraints of the statement.
    """

    def __init__(self, count: int, density: bool) -> None:
        import cvxpy as cp

        self.cp, self.count = cp, count
        self.beta = cp.Variable(count)
        self.rate = cp.Variable(count) if density else self.beta
        in_band = self.given("part") @ self.beta <= cp.Parameter(name="band", nonneg=True)
        self.constraints: list[Any] = [self.beta >= 0, in_band]
        if density:
            log = self.given("log_snr")
            mixture = cp.multiply(self.given("noise"), self.beta) + self.given("signal")
            most = cp.multiply(log, self.beta) - cp.rel_entr(self.beta, mixture)
            self.constraints.append(cp.multiply(log, self.rate) <= most)

    def given(self, name: str, signed: bool = False) -> Any:
        """A parameter [K] of this name, not negative unless `signed`."""
        return self.cp.Parameter(self.count, name=name, nonneg=not signed)

    def kept(self) -> Any:
        """t [K], with which the kept part of the model is x = x0 + x0' t: Liu, eq. (47).

        As a function of the rate, x(e) = (e - phi) / (g e + tau) = x0 + x0' d / (1 + kappa d) with
        d = e - 1 and kappa = g / (g + tau). In t <= d - kappa y, y (1 + kappa d) >= d^2 is a cone.
        """
        cp, y, t = self.cp, self.cp.Variable(self.count), self.cp.Variable(self.count)
        d, kappa = self.rate - 1.0, self.given("kappa")
        span = 1.0 + cp.multiply(kappa, d)
        self.constraints += [
            cp.SOC(span + y, cp.vstack([2.0 * d, span - y])),
            t <= d - cp.multiply(kappa, y),
            t <= self.given("t_max", signed=True),
            t >= self.given("t_min", signed=True),
        ]
        return t

    def minimise(self, objective: Any, *results: Any) -> Statement:
        """The statement with its objective; `results` are variables to return besides beta."""
        self.results = (self.beta, *results)
        self.task: Any = self.cp.Problem(self.cp.Minimize(objective), self.constraints)
        return self

    def solve(self, values: Mapping[str, Array | float]) -> tuple[Any, ...]:
        """Solve with these values of the parameters.

        Returns:
            beta [K], the other results, and the price: the multiplier of the band.

        Raises:
            UncertifiedError: Clarabel found no answer.
        """
        if not all(np.isfinite(value).all() for value in values.values()):
            raise UncertifiedError(
                "The numbers of the problem lie too far apart for Clarabel; use another method."
            )
        with LOCK, warnings.catch_warnings():
            # whether an answer is accurate enough is decided by its certificate
            warnings.filterwarnings("ignore", message="Solution may be inaccurate")
            for name, parameter in self.task.param_dict.items():
                parameter.value = values[name]
            for settings in (TIGHT, {}):
                try:
                    # a warm start would let the last digits depend on the problem solved before
                    self.task.solve(solver=self.cp.CLARABEL, warm_start=False, **settings)
                    reason = f"ended with status {self.task.status}"
                except self.cp.error.SolverError as error:
                    reason = f"found no answer ({error})"
                    continue
                if self.task.status in (self.cp.OPTIMAL, self.cp.OPTIMAL_INACCURATE):
                    found = (variable.value for variable in self.results)
                    return *found, float(self.constraints[1].dual_value)
        raise UncertifiedError(f"Clarabel {reason}; use another method.")


@lru_cache(maxsize=CACHED)
def largest_utility(count: int, density: bool, alpha: float) -> Statement:
    """Largest sum of w U(x): U is x^(1 - alpha) / (1 - alpha), at alpha = 1 log x.

    At alpha = 0 that is the least sum of w rho: Liu, eqs. (43)-(47). Elsewhere x is measured in a
    kept share nearby, start + turn t, so that U is of order one.
    """
    s = Statement(count, density)
    t = s.kept()
    if alpha == 0:
        return s.minimise(-(s.given("weight") @ t))
    x = s.cp.Variable(count)  # DPP takes no parameters within U
    s.constraints.append(x == s.given("start", signed=True) + s.cp.multiply(s.given("turn"), t))
    utility = s.cp.log(x) if alpha == 1 else s.cp.power(x, 1.0 - alpha) / (1.0 - alpha)
    return s.minimise(-(s.given("weight") @ utility))


@lru_cache(maxsize=CACHED)
def least_maximum(count: int, density: bool) -> Statement:
    """Least maximal rho = 1 - start - turn t, which is the second result."""
    s = Statement(count, density)
    top = s.cp.Variable()
    rho = 1.0 - s.given("start", signed=True) - s.cp.multiply(s.given("turn"), s.kept())
    s.constraints.append(rho <= top)
    return s.minimise(top, top)


@lru_cache(maxsize=CACHED)
def least_time(count: int, density: bool) -> Statement:
    """Least T with busy + upload / e <= T for every device: Liu, eqs. (28), (29)."""
    s = Statement(count, density)
    upload = s.cp.multiply(s.given("upload"), s.cp.inv_pos(s.rate))
    return s.minimise(s.cp.max(s.given("busy") + upload))


@lru_cache(maxsize=CACHED)
def least_energy(count: int, density: bool, nodes: int) -> Statement:
    """Least energy (Yang et al., 2021) over shares, air times u and computing times v [K].

    With x = s / (b t) nats per second and hertz, the energy of sending under a density of noise is

        b t (e^x - 1) / g = (s / g) (e^x - 1) / x = (s / g) integral of e^(z x), z from 0 to 1,

    a sum of exponentials at the nodes z of Gauss and Legendre; under noise of a fixed power it is
    that over b. In x / x0 = 1 + d >= y^-2, y^2 <= beta u is a cone.
    """
    s, (at, weight) = Statement(count, density), quadrature(nodes)
    cp, (u, v, y, d) = s.cp, (s.cp.Variable(count) for _ in range(4))
    s.constraints += [
        cp.multiply(s.given("air"), u) + cp.multiply(s.given("busy"), v) <= 1,
        v >= s.given("v_min"),
        v <= s.given("v_max"),
        cp.multiply(s.given("load"), cp.inv_pos(u)) <= s.rate,  # no more than full power
        cp.SOC(s.beta + u, cp.vstack([2.0 * y, s.beta - u])),
        1.0 + d >= cp.power(y, -2),
    ]
    level = s.given("cost", signed=True)
    if not density:
        fall = cp.Variable(count)
        s.constraints.append(fall >= -cp.log(s.beta))
        level = level + fall
    x0 = s.given("x")
    # the weights of the nodes as constants, since DPP keeps a tensor of all parameters
    columns = (x0 + cp.multiply(x0, d), level)
    x, level = (cp.reshape(column, (count, 1), order="C") for column in columns)
    powers = x @ at[None, :] + level @ np.ones((1, nodes)) + np.tile(np.log(weight), (count, 1))
    computing = s.given("computing") @ cp.power(v, -2)
    return s.minimise(computing + cp.sum(cp.exp(powers)), u, v)


@lru_cache(maxsize=CACHED)
def quadrature(nodes: int) -> tuple[Array, Array]:
    """Nodes and weights on [0, 1], Gauss and Legendre: (e^x - 1) / x = sum weight e^(node x)."""
    at, weight = np.polynomial.legendre.leggauss(nodes)
    return 0.5 * (at + 1.0), 0.5 * weight
