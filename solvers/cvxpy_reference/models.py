"""The problems of this package as cvxpy states them: parametrised (DPP), scaled to order one, built once and re-solved.

Each model states deadlines, band and bounds as they are and knows nothing of closed forms or root searches. A share is
b = unit beta, a rate R(unit) e, so that beta and e are of order one. Under a density of noise, with the signal-to-noise
ratio c in the share `unit`, e is held down by the concave Shannon form

    beta log(1 + c / beta) = beta log(1 + c) - rel_entr(beta, (beta + c) / (1 + c)),

in which nothing is large or small, whatever c is: the entropy is zero where beta is one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, wraps
from threading import RLock
from typing import Any

import numpy as np

from solvers.problem import Array
from solvers.solution import UncertifiedError

KEPT = 32  # models that stay in memory
LOCK = RLock()
TIGHT = {
    "tol_gap_abs": 1e-13,
    "tol_gap_rel": 1e-13,
    "tol_feas": 1e-13,
    "static_regularization_constant": 1e-10,  # with the default 1e-8 the gap stays above 1e-6 on some problems
    "static_regularization_proportional": 0.0,
}


def one_at_a_time(method: Callable) -> Callable:
    """Threads wait for each other: a kept model holds the numbers of one problem, and cvxpy knows no threads."""

    @wraps(method)
    def waiting(problem):
        with LOCK:
            return method(problem)

    return waiting


@dataclass(frozen=True, eq=False)
class Model:
    """A parametrised problem: `solve(name=values, ...)` gives (beta [S], multiplier of its band constraint)."""

    task: Any
    parameters: dict[str, Any]
    results: tuple[Any, ...]  # variables whose values are returned
    in_band: Any

    def solve(self, **values: Array | float) -> tuple[Array, ...]:
        """Values of the results, then the multiplier of the band.

        Raises:
            UncertifiedError: Clarabel gave up.
        """
        import cvxpy as cp

        if not all(np.isfinite(value).all() for value in values.values()):
            raise UncertifiedError(
                "The numbers of the problem lie too far apart for Clarabel; use another method."
            )
        for name, parameter in self.parameters.items():
            parameter.value = values[name]
        said = ""
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message="Solution may be inaccurate"
            )  # the certificate decides
            for settings in (
                TIGHT,
                {},
            ):  # those of Clarabel itself sometimes find what a closer look does not
                try:  # not warm: the last digits would depend on what was solved before
                    self.task.solve(solver=cp.CLARABEL, warm_start=False, **settings)
                except cp.error.SolverError as error:
                    said = f"Clarabel found no answer ({error}); use another method."
                    continue
                if self.task.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
                    return *(variable.value for variable in self.results), float(
                        self.in_band.dual_value
                    )
                said = f"Clarabel ended with status {self.task.status}; use another method."
        raise UncertifiedError(said)


class Parts:
    """What models are put together from: named parameters [S] and the band with its rates.

    capped: no share is above one by a rule of its own, which then takes part of the price of the band where one device
    has all of it; idle devices of a pruning model need it, as they have no part in the band.
    """

    def __init__(self, count: int, density: bool, capped: bool = True):
        import cvxpy as cp

        self.cp, self.count, self.parameters = cp, count, {}
        self.beta = cp.Variable(count)
        self.in_band = self.given("part") @ self.beta <= self.given(
            "band", ()
        )  # part = unit / max unit
        whole = [cp.multiply(self.given("unit"), self.beta) <= 1] if capped else []
        self.rules = [self.beta >= 0, *whole, self.in_band]
        self.rate = cp.Variable(count) if density else self.beta
        if density:
            log = self.given("log_snr")  # of the share `unit`: the rate is 1 where beta is
            less = cp.rel_entr(
                self.beta, cp.multiply(self.given("noise"), self.beta) + self.given("signal")
            )
            self.rules.append(cp.multiply(log, self.rate) <= cp.multiply(log, self.beta) - less)

    def given(self, name: str, shape: tuple | None = None):
        """A parameter [S] that is not negative; a shape of () is one number."""
        shape = (self.count,) if shape is None else shape
        return self.parameters.setdefault(name, self.cp.Parameter(shape, nonneg=True))

    def free(self, name: str):
        """A parameter [S] of any sign."""
        return self.parameters.setdefault(name, self.cp.Parameter(self.count))

    def model(self, objective, *results) -> Model:
        task = self.cp.Problem(self.cp.Minimize(objective), self.rules)
        return Model(task, self.parameters, (self.beta, *results), self.in_band)


@lru_cache(maxsize=KEPT)
def pruning_model(count: int, density: bool, flat: bool, bent: bool) -> Model:
    """Least sum of w rho."""
    parts = Parts(count, density)
    z = _pruned(parts, flat, bent)
    return parts.model(parts.given("weight") @ z)


@lru_cache(maxsize=KEPT)
def fair_model(count: int, density: bool, flat: bool, bent: bool) -> Model:
    """Least maximal rho."""
    parts = Parts(count, density)
    z, cp = _pruned(parts, flat, bent), parts.cp
    rho = parts.free("base") + cp.multiply(parts.given("per"), z)
    return parts.model(cp.max(rho), rho)


def _pruned(parts: Parts, flat: bool, bent: bool):
    """z with rho = base + per z >= rho(b), Liu (47), in two forms: for little, and for much curvature c = R G / q.

    Little:  e / (1 + c e) = e - c y with y (1 + c e) >= e^2, a second-order cone. Much: through 1 / (e + 1 / c).
    A device has either; the parameters of the other make it idle.
    """
    cp, e, z = parts.cp, parts.rate, parts.cp.Variable(parts.count)
    parts.rules += [z >= parts.free("z_min"), parts.beta >= parts.given("beta_min")]
    if flat:
        y, span = cp.Variable(parts.count), 1.0 + cp.multiply(parts.given("c"), e)
        parts.rules.append(cp.SOC(span + y, cp.vstack([2.0 * e, span - y])))
        kept = cp.multiply(parts.given("on"), e) - cp.multiply(parts.given("c_on"), y)
        parts.rules.append(z >= -kept - parts.given("off"))
    if bent:
        reach = cp.Variable(parts.count)  # of its own: a product of two parameters would not be DPP
        rise = cp.multiply(parts.given("bent_on"), cp.inv_pos(reach))
        parts.rules += [reach == e + parts.given("shift"), z >= rise - parts.given("bent_off")]
    return z


@lru_cache(maxsize=KEPT)
def latency_model(count: int, density: bool) -> Model:
    """Least T with busy_k + upload_k / e_k <= T."""
    parts = Parts(count, density)
    cp = parts.cp
    return parts.model(
        cp.max(parts.given("busy") + cp.multiply(parts.given("upload"), cp.inv_pos(parts.rate)))
    )


@lru_cache(maxsize=KEPT)
def energy_model(count: int, density: bool, nodes: int) -> Model:
    """Least energy: air times u and computing times v, each in its unit, and x / x_0 = 1 + d >= 1 / (beta u).

    The energy of sending is the sum over nodes of weight e^(node x + cost), in units; where noise is of a fixed power,
    of that over beta. The power limit is t R(b) >= n with the rate R(b) at full power.
    """
    parts, (at, weight) = Parts(count, density, False), rule(nodes)
    cp, (y, d) = parts.cp, (parts.cp.Variable(count) for _ in range(2))
    u, v, computing = _times(parts)
    parts.rules += [
        cp.multiply(parts.given("load"), cp.inv_pos(u)) <= parts.rate,
        cp.SOC(parts.beta + u, cp.vstack([2.0 * y, parts.beta - u])),  # y^2 <= beta u
        1.0 + d >= cp.power(y, -2),
    ]
    x, level = parts.given("x") + cp.multiply(parts.given("x"), d), parts.free("cost")
    if not density:
        fall = cp.Variable(count)
        parts.rules.append(fall >= -cp.log(parts.beta))
        level = level + fall
    x, level = (
        cp.reshape(values, (count, 1), order="C") for values in (x, level)
    )  # few parameters: DPP keeps all
    powers = x @ at[None, :] + level @ np.ones((1, nodes)) + np.tile(np.log(weight), (count, 1))
    return parts.model(computing + cp.sum(cp.exp(powers)), u, v)


@lru_cache(maxsize=KEPT)
def rule(nodes: int) -> tuple[Array, Array]:
    """Nodes and weights of Gauss and Legendre on [0, 1]: (e^x - 1) / x = sum of weight e^(node x)."""
    at, weight = np.polynomial.legendre.leggauss(nodes)
    return 0.5 * (at + 1.0), 0.5 * weight


def _times(parts: Parts) -> tuple[Any, Any, Any]:
    """Air times u [S] and the computing times v that they leave, with the energy of computing."""
    cp, (u, v) = parts.cp, (parts.cp.Variable(parts.count) for _ in range(2))
    parts.rules += [
        cp.multiply(parts.given("sends"), u) + cp.multiply(parts.given("busy"), v) <= 1,
        v >= parts.given("v_min"),
        v <= parts.given("v_max"),
    ]
    return u, v, parts.given("computing") @ cp.power(v, -2)
