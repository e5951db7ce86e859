"""Is an answer to the energy problem feasible and optimal? Evaluated in SI from shares, clocks, powers and the price.

In share b, air time t and computing time tau the problem is convex. With multipliers of the band (lambda), of each
deadline (nu) and of each power limit (eta) the Lagrangian is convex too and lies above its tangent at the answer: the
least value of that tangent over the box of (b, t, tau) is a lower bound of the joules of every feasible allocation.
"""

from __future__ import annotations

import numpy as np

from solvers.answer import Certificate, Uncertified
from solvers.energy_curve import psi
from solvers.energy_terms import AT_LIMIT, Task
from solvers.problem import ALLOWED, Array

TOLERANCE = 1e-8
CLAIM = "no shares, clocks and powers that keep the deadlines take fewer joules, at these pruning ratios"


def certified_energy(
    task: Task, share: Array, cpu_hz: Array, power_w: Array, price: float, tolerance: float = TOLERANCE
) -> tuple[float, Certificate]:
    """(joules, certificate) of shares [K], clocks [K], Hz, and powers [K], W.

    Raises:
        Uncertified: a bound is broken, or the energy is more than `tolerance` above what the multipliers prove.
    """
    joules, proof = certify_energy(task, share, cpu_hz, power_w, price)
    parts = (proof.dual, proof.complementarity, proof.gap)
    if not (proof.primal <= ALLOWED and all(part <= tolerance for part in parts)):  # nan is no proof
        broken = f" ({'; '.join(proof.broken)})" if proof.broken else ""
        raise Uncertified(
            f"The answer of energy has residual {proof.residual:.2g} and duality gap {proof.gap:.2g}, more than the "
            f"allowed {tolerance:g}{broken}; check that the quantities are SI units of sensible size."
        )
    return joules, proof


def raised(task: Task, share: Array, power_w: Array, price: float) -> float:
    """The price, raised to what the keenest device would pay: that a search ends a digit below shows in no share."""
    on = task.sends
    in_b, _ = task.radio.slopes(share[on], task.air_s(share, power_w)[on])
    return max(price, float(-in_b.min(initial=0.0)))


def certify_energy(task: Task, share: Array, cpu_hz: Array, power_w: Array, price: float) -> tuple[float, Certificate]:
    """(joules, certificate). primal is relative to the bound that is broken, the rest to the joules.

    dual: joules that the tangent gives up where its gradient is not zero; a price below zero.
    complementarity: multipliers times unused band, time and power.     gap: both together.
    """
    on, tau, air_s = task.problem.feasible, task.computing_s(cpu_hz), task.air_s(share, power_w)
    joules = float(task.energy_j(cpu_hz, power_w, air_s).sum())
    primal, broken = _primal(task, share, cpu_hz, power_w, tau + air_s)
    if not (np.isfinite(joules) and np.isfinite(primal)):
        return joules, Certificate(np.inf, np.inf, primal, np.nan, np.nan, broken, CLAIM)
    nu, wasted_j, unused_j = np.zeros_like(tau), 0.0, abs(price)  # who sends nothing needs no band
    if task.sends.any():
        nu[task.sends], wasted_j, unused_j = _sending(task, share, power_w, air_s, price)
    slope = nu - 2.0 * task.terms.kappa * task.terms.cycles * cpu_hz**2 / np.maximum(tau, 1e-300)
    wasted_j += float(np.maximum(slope * (tau - task.tau_min), slope * (tau - task.tau_max))[on].sum())
    wasted_j += max(-price, 0.0)
    unused_j += float((nu * np.abs(task.time_s - tau - air_s))[on].sum())
    scale = max(joules, 1e-300)
    dual, complementarity = wasted_j / scale, unused_j / scale
    gap = dual + complementarity
    return joules, Certificate(max(primal, dual, complementarity), gap, primal, dual, complementarity, broken, CLAIM)


def _sending(task: Task, share: Array, power_w: Array, air_s: Array, price: float) -> tuple[Array, float, float]:
    """(nu [S], joules that the tangent gives up in b, joules of unused band and power) of those who send.

    eta makes up the difference of lambda and dE/db for those at full power. The tangent of the others is least at a
    share of 0 or 1: a price below what they would pay is no better a proof than one above.
    """
    radio, on = task.radio, task.sends
    b, t = share[on], air_s[on]
    in_b, in_t = radio.slopes(b, t)
    limit, limit_b, limit_t = _power_limit(task, b, t)
    held = power_w[on] >= radio.p_max * (1.0 - AT_LIMIT)
    eta = np.where(held, np.maximum(price + in_b, 0.0) / -limit_b, 0.0)
    slope = in_b + price + eta * limit_b
    wasted_j = float(np.maximum(slope * b, slope * (b - 1.0)).sum())
    unused_j = abs(price) * abs(1.0 - float(share.sum())) + float((eta * np.abs(limit)).sum())
    return -(in_t + eta * limit_t), wasted_j, unused_j


def _power_limit(task: Task, share: Array, air_s: Array) -> tuple[Array, Array, Array]:
    """The convex form h(b, t) <= 0 of p <= p_max, and its derivatives by b and t [S]."""
    radio = task.radio
    x = radio.s / (share * air_s)
    if radio.density:
        limit = share * np.expm1(x) / radio.snr - 1.0
        return limit, -psi(x) / radio.snr, -share * x * np.exp(x) / air_s / radio.snr
    ratio = x / np.log1p(radio.snr)
    return ratio - 1.0, -ratio / share, -ratio / air_s


def _primal(task: Task, share: Array, cpu_hz: Array, power_w: Array, used_s: Array) -> tuple[float, tuple[str, ...]]:
    """Worst relative violation, and all of them in words."""
    terms, on = task.terms, task.problem.feasible
    with np.errstate(divide="ignore", invalid="ignore"):
        late = np.where(on, used_s / task.time_s - 1.0, 0.0)
    kinds = (
        (late, used_s - task.time_s, "finishes {:.4g} s after its deadline"),
        (-share, share, "has share {:.4g}, below 0"),
        ((terms.f_min_hz - cpu_hz) / terms.f_max_hz, cpu_hz, "has clock {:.6g} Hz, below f_min_hz"),
        (cpu_hz / terms.f_max_hz - 1.0, cpu_hz, "has clock {:.6g} Hz, above f_max_hz"),
        (-power_w / terms.p_max_w, power_w, "has power {:.6g} W, below 0"),
        (power_w / terms.p_max_w - 1.0, power_w, "has power {:.6g} W, above p_max_w"),
    )
    worst, broken = max(float(share.sum()) - 1.0, 0.0), []
    if worst > ALLOWED:
        broken.append(f"the shares add up to {share.sum():.10g}, above 1")
    for excess, values, words in kinds:
        worst = max(worst, float(excess.max()))
        broken += [f"device {k} " + words.format(values[k]) for k in np.flatnonzero(~(excess <= ALLOWED))[:8]]
    return worst, tuple(broken)
