"""The problems of this package as cvxpy states them: parametrised (DPP), scaled to order one, built once and re-solved.

Each model states deadlines, band and bounds as they are and knows nothing of closed forms or root searches. A share is
b = unit beta, a rate R(unit) e, so that beta and e are of order one; under a density of noise e is held down by the
concave Shannon form -rel_entr(beta, beta + c / unit) = beta log(1 + c / (unit beta)).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from solvers.problem import Array, Uncertified

KEPT = 32  # models that stay in memory
TIGHT = {
    "tol_gap_abs": 1e-13,
    "tol_gap_rel": 1e-13,
    "tol_feas": 1e-13,
    "static_regularization_constant": 1e-10,  # with the default 1e-8 the gap stays above 1e-6 on some problems
    "static_regularization_proportional": 0.0,
}


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
            Uncertified: Clarabel gave up.
        """
        import cvxpy as cp

        for name, parameter in self.parameters.items():
            parameter.value = values[name]
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Solution may be inaccurate")  # the certificate decides
                # not warm: the last digits would depend on what was solved before
                self.task.solve(solver=cp.CLARABEL, warm_start=False, **TIGHT)
        except cp.error.SolverError as error:
            raise Uncertified(f"Clarabel found no answer ({error}); use another method.") from error
        if self.task.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            raise Uncertified(f"Clarabel ended with status {self.task.status}; use another method.")
        return (*(variable.value for variable in self.results), float(self.in_band.dual_value))


class Parts:
    """What models are put together from: named parameters [S] and the band with its rates."""

    def __init__(self, count: int, density: bool):
        import cvxpy as cp

        self.cp, self.count, self.parameters = cp, count, {}
        self.beta = cp.Variable(count)
        self.in_band = self.given("part") @ self.beta <= self.given("band", ())  # part = unit / max unit
        self.rules = [self.in_band, self.beta >= 0, cp.multiply(self.given("unit"), self.beta) <= 1]
        self.rate = cp.Variable(count) if density else self.beta
        if density:
            c = self.given("snr")  # of the share `unit`: the rate is 1 where beta is
            shannon = -cp.rel_entr(self.beta, self.beta + c)
            self.rules.append(cp.multiply(self.given("log_snr"), self.rate) <= shannon)

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
    rho = _pruned(parts, flat, bent)
    return parts.model(parts.given("weight") @ rho)


@lru_cache(maxsize=KEPT)
def fair_model(count: int, density: bool, flat: bool, bent: bool) -> Model:
    """Least maximal rho."""
    parts = Parts(count, density)
    rho = _pruned(parts, flat, bent)
    return parts.model(parts.cp.max(rho), rho)


def _pruned(parts: Parts, flat: bool, bent: bool):
    """rho >= rho(b), Liu (47), in two algebraic forms: one for little, one for much curvature c = R G / q.

    Little:  e / (1 + c e) = e - c y with y (1 + c e) >= e^2, a second-order cone. Much: through 1 / (e + 1 / c).
    A device has either; the parameters of the other make it idle.
    """
    cp, e, rho = parts.cp, parts.rate, parts.cp.Variable(parts.count)
    parts.rules += [rho >= parts.given("rho_min"), rho <= parts.given("rho_max")]
    if flat:
        y, span = cp.Variable(parts.count), 1.0 + cp.multiply(parts.given("c"), e)
        parts.rules.append(cp.SOC(span + y, cp.vstack([2.0 * e, span - y])))
        fall = cp.multiply(parts.given("fall"), e) - cp.multiply(parts.given("fall_c"), y)
        parts.rules.append(rho >= parts.given("start") - fall)
    if bent:
        reach = cp.Variable(parts.count)  # of its own: a product of two parameters would not be DPP
        rise = cp.multiply(parts.given("scale"), cp.inv_pos(reach))
        parts.rules += [reach == e + parts.given("shift"), rho >= parts.free("end") + rise]
    return rho


@lru_cache(maxsize=KEPT)
def latency_model(count: int, density: bool) -> Model:
    """Least T with busy_k + upload_k / e_k <= T."""
    parts = Parts(count, density)
    cp = parts.cp
    return parts.model(cp.max(parts.given("busy") + cp.multiply(parts.given("upload"), cp.inv_pos(parts.rate))))


@lru_cache(maxsize=KEPT)
def energy_model(count: int) -> Model:
    """Least energy, noise of a fixed power: air time u A, computing time busy v A, energy of sending eps (of a unit).

    What is sent in the time t with the energy E is b t log(1 + g E / t): q <= t log(1 + g E / t) is concave, b q >= s
    a hyperbolic cone.
    """
    parts = Parts(count, False)
    cp = parts.cp
    u, v, eps, q = (cp.Variable(count) for _ in range(4))
    parts.rules += [
        u + cp.multiply(parts.given("busy"), v) <= 1,
        v >= parts.given("v_min"),
        v <= parts.given("v_max"),
        q <= -cp.rel_entr(u, u + cp.multiply(parts.given("level"), eps)),
        cp.multiply(parts.given("load"), cp.inv_pos(parts.beta)) <= q,
        eps <= cp.multiply(parts.given("most"), u),
    ]
    computing = cp.multiply(parts.given("computing"), cp.power(v, -2))
    return parts.model(cp.sum(computing) + parts.given("sending") @ eps, u)
