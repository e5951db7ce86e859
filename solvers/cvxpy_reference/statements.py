"""The allocation problems stated for cvxpy: with parameters (DPP), built once, solved again.

All but `largest_sum` are geometric programs, in the logarithms of their variables and parameters,
so that inputs of devices may lie many decades apart. Where noise is a density, the share b carries
b v nats per second and hertz with

    b (e^v - 1) = b v E(v) <= snr,     E(v) = integral of e^(z v) over z from 0 to 1,

and E is a sum of exponentials at `NODES`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np

from solvers.arrays import Array

CACHED = 32  # statements that stay in memory
LOCK = Lock()  # a cached statement holds the numbers of one problem at a time
TIGHT = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}
# with a regularisation of 1e-8, the usual one, gaps stay above 1e-6 on some problems
FINE = {"static_regularization_constant": 1e-10, "static_regularization_proportional": 0.0}
SETTINGS: tuple[dict[str, float], ...] = (
    TIGHT | FINE,
    TIGHT | FINE | {"max_step_fraction": 0.9},
    TIGHT,
    {},
)


def quadrature(count: int) -> tuple[Array, Array]:
    """Nodes and weights on [0, 1], Gauss and Legendre: E(v) = sum of weight e^(node v)."""
    at, weight = np.polynomial.legendre.leggauss(count)
    return 0.5 * (at + 1.0), 0.5 * weight


NODES = quadrature(16)  # exact to 1e-13 up to v = 25, 36 bit/s/Hz


class Statement:
    """A problem of K devices with named parameters; its first variable [K] is about the shares."""

    def __init__(self, count: int) -> None:
        import cvxpy as cp  # takes a second

        self.cp, self.count = cp, count
        self.share = cp.Variable(count)
        self.constraints: list[Any] = []

    def given(self, name: str, **kind: bool) -> Any:
        """A parameter [K] of this name."""
        return self.cp.Parameter(self.count, name=name, **kind)

    def add(self, *terms: Any) -> Any:
        """Logarithm of the sum of terms [K] given by their logarithms."""
        return self.cp.log_sum_exp(self.cp.vstack(terms), axis=0)

    def mean_exponential(self, log_v: Any) -> Any:
        """log E(v) [K]."""
        at, weight = NODES
        v = self.cp.reshape(self.cp.exp(log_v), (1, self.count), order="C")
        return self.cp.log_sum_exp(at[:, None] @ v + np.log(weight)[:, None], axis=0)

    def in_band(self) -> Any:
        """The constraint of shares given by their logarithms."""
        return self.cp.log_sum_exp(self.share) <= self.cp.Parameter(name="band")

    def rate(self, density: bool) -> Any:
        """log R [K], R in rates of the whole band: Liu, eq. (9), or Shannon's of a density."""
        if not density:
            return self.share
        log_v = self.cp.Variable(self.count)
        carried = self.share + log_v
        self.constraints.append(carried + self.mean_exponential(log_v) <= self.given("snr"))
        return carried + self.given("per_nat")

    def minimise(self, objective: Any, band: Any, *results: Any) -> Statement:
        """The statement with its objective; `results` are variables to return besides shares."""
        self.results, self.band = (self.share, *results), band
        everything = [band, *self.constraints]
        self.task: Any = self.cp.Problem(self.cp.Minimize(objective), everything)
        return self

    def answers(self, values: Mapping[str, Array | float]) -> Iterator[tuple[Any, ...]]:
        """Clarabel's answers, one under each of `SETTINGS`, where it finds any.

        Yields:
            Shares [K] and the other results, the multiplier of the band, the objective.
        """
        if not all(np.isfinite(value).all() for value in values.values()):
            return
        for settings in SETTINGS:
            with LOCK, warnings.catch_warnings():
                # whether an answer is accurate enough is decided by its certificate
                warnings.filterwarnings("ignore", message="Solution may be inaccurate")
                for name, parameter in self.task.param_dict.items():
                    parameter.value = values[name]
                try:
                    # a warm start would let the last digits depend on the problem solved before
                    self.task.solve(solver=self.cp.CLARABEL, warm_start=False, **settings)
                except self.cp.error.SolverError:
                    continue
                if self.task.status not in (self.cp.OPTIMAL, self.cp.OPTIMAL_INACCURATE):
                    continue
                multiplier, value = float(self.band.dual_value), float(self.task.value)
                found = tuple(result.value for result in self.results)
            yield *found, multiplier, value


@lru_cache(maxsize=CACHED)
def largest_utility(count: int, density: bool, alpha: float) -> Statement:
    """Largest sum of w U(x) over kept shares x = 1 - rho, alpha >= 1: Liu, eqs. (43)-(47).

    U(x) = x^(1 - alpha) / (1 - alpha), at alpha = 1 log x; at alpha = inf the least x counts.
    Times are parts of the slack A.
    """
    s = Statement(count)
    x, rate = s.cp.Variable(count), s.rate(density)
    used = (x + s.given("compute"), x + s.given("upload") - rate, s.given("fixed") - rate)
    s.constraints += [s.add(*used) <= 0, x >= s.given("x_min"), x <= s.given("x_max")]
    if alpha == np.inf:
        return s.minimise(s.cp.max(-x), s.in_band())
    if alpha == 1:
        return s.minimise(-(s.given("weight") @ x), s.in_band())
    return s.minimise(s.cp.log_sum_exp(s.given("log_weight") + (1.0 - alpha) * x), s.in_band())


@lru_cache(maxsize=CACHED)
def least_time(count: int, density: bool) -> Statement:
    """Least time with busy + upload / R <= time for every device: Liu, eqs. (28), (29)."""
    s = Statement(count)
    time = s.add(s.given("busy"), s.given("upload") - s.rate(density))
    return s.minimise(s.cp.max(time), s.in_band())


@lru_cache(maxsize=CACHED)
def least_energy(count: int, density: bool) -> Statement:
    """Least energy (Yang et al., 2021) over shares, air times and computing times [K].

    With x = s / (b t) nats per second and hertz, sending takes b t (e^x - 1) / g = (s / g) E(x)
    joules under a density of noise, and that over b under noise of a fixed power.
    """
    s = Statement(count)
    air, busy, mean = (s.cp.Variable(count) for _ in range(3))
    carried = s.given("nats") - air
    s.constraints += [
        s.add(air, busy) <= s.given("time"),
        air <= s.given("longest"),
        busy <= s.given("busy_max"),
        s.mean_exponential(carried - s.share) <= mean,
        carried + (mean if density else -s.share) <= s.given("full_power"),
    ]
    sending = s.given("cost") + mean - (0.0 if density else s.share)
    joules = s.cp.log_sum_exp(s.cp.hstack([s.given("work") - 2.0 * busy, sending]))
    return s.minimise(joules, s.in_band(), air)


@lru_cache(maxsize=CACHED)
def largest_sum(count: int, density: bool, alpha: float) -> Statement:
    """Largest sum of w x^(1 - alpha) over kept shares x, alpha < 1: Liu, eqs. (43)-(47).

    Shares, rates and kept shares are measured in those of a point nearby: beta, e and x. The
    deadline allows x = (A R - f) / (G R + q) = x0 + slope d / (1 + kappa d) with d = e - 1 and
    kappa = G R0 / (G R0 + q). In t <= d - kappa y, y (1 + kappa d) >= d^2 is a cone. With the ratio
    c within the shares of that point a density gives the concave Shannon form

        e log(1 + c) <= beta log(1 + c) - rel_entr(beta, (beta + c) / (1 + c)).
    """
    s = Statement(count)
    cp, beta, (x, t, y) = s.cp, s.share, (s.cp.Variable(count) for _ in range(3))
    rate = cp.Variable(count) if density else beta
    if density:
        log = s.given("log_snr", nonneg=True)
        mixture = cp.multiply(s.given("noise"), beta) + s.given("signal")
        most = cp.multiply(log, beta) - cp.rel_entr(beta, mixture)
        s.constraints.append(cp.multiply(log, rate) <= most)
    d, kappa = rate - 1.0, s.given("kappa", nonneg=True)
    span = 1.0 + cp.multiply(kappa, d)
    s.constraints += [
        beta >= 0,
        cp.SOC(span + y, cp.vstack([2.0 * d, span - y])),
        t <= d - cp.multiply(kappa, y),
        x == s.given("x0") + cp.multiply(s.given("slope"), t),
        x >= s.given("x_min"),
        x <= s.given("x_max"),
    ]
    utility = s.given("weight", nonneg=True) @ cp.power(x, 1.0 - alpha)
    return s.minimise(-utility, s.given("unit") @ beta <= cp.Parameter(name="band"))
