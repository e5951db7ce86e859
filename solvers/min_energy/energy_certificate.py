"""Is an answer to the energy problem feasible and optimal? Evaluated in SI units.

In share b, air time t and computing time tau the problem is convex. With multipliers of the band
(lambda), of each deadline (nu) and of each power limit (eta) the Lagrangian is convex too and lies
above its tangent at the answer: the least value of that tangent over the box of (b, t, tau) is a
lower bound of the joules of every feasible allocation. A box that is closer to the allocations
that are in time proves more where next to nothing is left to choose from.
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Array
from solvers.bound_violations import BrokenBound, broken_devices, in_words, joined
from solvers.min_energy.energy_problem import EnergyProblem
from solvers.problem import FEASIBILITY_TOLERANCE
from solvers.rates import kappa, snr_log
from solvers.solution import Certificate, UncertifiedError

OPTIMALITY_TOLERANCE = 1e-8
AT_LIMIT = 1e-7  # a power this close to its limit is held by it
ROUNDING = 1e-12  # of least shares and shortest times
CLAIM = (
    "no shares, clocks and powers that keep the deadlines take fewer joules, "
    "at these pruning ratios"
)


def certified_energy(
    task: EnergyProblem,
    share: Array,
    cpu_hz: Array,
    power_w: Array,
    price: float,
    tolerance: float = OPTIMALITY_TOLERANCE,
) -> tuple[float, Certificate]:
    """Joules and certificate of an answer that is good enough; arguments as `certify_energy`.

    Raises:
        UncertifiedError: a bound is broken, or the energy is more than `tolerance` above what the
            multipliers prove.
    """
    for closer in (False, True):
        joules, proof = certify_energy(task, share, cpu_hz, power_w, price, closer)
        parts = (proof.dual, proof.complementarity, proof.gap)
        kept = proof.primal <= FEASIBILITY_TOLERANCE and not proof.broken
        if kept and all(part <= tolerance for part in parts):  # nan is no proof
            return joules, proof
    used_s = task.computing_s(cpu_hz) + task.air_s(share, power_w)
    words, devices = joined(_primal(task, share, cpu_hz, power_w, used_s)[1])
    broken = f" ({words})" if words else ""
    raise UncertifiedError(
        f"The answer of energy has residual {proof.residual:.2g} and duality gap {proof.gap:.2g}, "
        f"more than the allowed {tolerance:g}{broken}; check that the quantities are SI units of "
        "sensible size.",
        devices,
    )


def price_covering_marginals(
    task: EnergyProblem, share: Array, power_w: Array, price: float
) -> float:
    """The price, raised to what the keenest device would pay.

    That a search ends a digit below that shows in no share.
    """
    on = task.sends
    in_b, _ = task.radio.slopes(share[on], task.air_s(share, power_w)[on])
    return max(price, float(-in_b.min(initial=0.0)))


def certify_energy(
    task: EnergyProblem,
    share: Array,
    cpu_hz: Array,
    power_w: Array,
    price: float,
    closer: bool = False,
) -> tuple[float, Certificate]:
    """Joules and certificate of an answer.

    primal is relative to the bound that is broken, the rest to the joules. dual: joules that the
    tangent gives up where its gradient is not zero; a price below zero. complementarity:
    multipliers times band that no device uses for sending, unused time and power. gap: both
    together, for deadlines that are the given ones but for rounding in their last digit.

    Args:
        task: K devices.
        share: b [K].
        cpu_hz: clocks [K], Hz.
        power_w: transmit powers [K], W.
        price: lambda, J per unit of band.
        closer: whether the box is the smaller one, see `_box`.
    """
    on, tau, air_s = task.problem.feasible, task.computing_s(cpu_hz), task.air_s(share, power_w)
    joules = float(task.energy_j(cpu_hz, power_w, air_s).sum())
    primal, bounds = _primal(task, share, cpu_hz, power_w, tau + air_s)
    broken = tuple(in_words(bounds))
    if not (np.isfinite(joules) and np.isfinite(primal)):
        return joules, Certificate(np.inf, np.inf, primal, np.nan, np.nan, broken, CLAIM)
    # who sends nothing needs no band
    nu, wasted_j, unused_j = np.zeros_like(tau), 0.0, abs(price)
    least, most, tau_max = _box(task, closer)
    if task.sends.any():
        nu[task.sends], wasted_j, unused_j = _sending(
            task, share, power_w, air_s, price, least, most
        )
    slope = nu - 2.0 * task.terms.kappa * task.terms.cycles * cpu_hz**2 / np.maximum(tau, 1e-300)
    wasted_j += float(_tangent_fall(slope, tau, task.tau_min, tau_max)[on].sum())
    wasted_j += max(-price, 0.0)
    unused_j += float((nu * np.abs(task.time_s - tau - air_s))[on].sum())
    scale = max(joules, 1e-300)
    dual, complementarity = wasted_j / scale, unused_j / scale
    residual = max(primal, dual, complementarity)
    gap = dual + complementarity
    return joules, Certificate(residual, gap, primal, dual, complementarity, broken, CLAIM)


def _tangent_fall(slope: Array, at: Array, low: Array | float, high: Array | float) -> Array:
    """How far a tangent of this slope falls from `at` to its least in [low, high], at least 0."""
    return np.maximum(np.maximum(slope * (at - low), slope * (at - high)), 0.0)


def _box(task: EnergyProblem, closer: bool) -> tuple[Array | float, Array | float, Array]:
    """Bounds of every allocation that is in time.

    In the closer box no device gets less than full clock and power ask for, so that none has more
    than these leave, sends faster than at full power with all of that, or computes longer than
    the time that is left then.

    Returns:
        Least and most shares [S], longest computing time of use [K], s.
    """
    if not closer:
        return 0.0, 1.0, task.tau_max
    on, radio, tau_max = task.sends, task.radio, task.tau_max.copy()
    p = task.problem
    least = np.minimum(p.share_at(p.rho_min)[on], 1.0) * (1.0 - ROUNDING)
    most = np.minimum(1.0 - (least.sum() - least), 1.0)
    shortest_s = radio.full_power_s(most) * (1.0 - ROUNDING)
    tau_max[on] = np.clip(radio.time_s - shortest_s, radio.tau_min, radio.tau_max)
    return least, most, tau_max


def _sending(
    task: EnergyProblem,
    share: Array,
    power_w: Array,
    air_s: Array,
    price: float,
    least: Array | float,
    most: Array | float,
) -> tuple[Array, float, float]:
    """What those who send add to the certificate.

    eta makes up the difference of lambda and dE/db for those at full power. The tangent of the
    others is least at their least or most share: a price below what they would pay is no better a
    proof than one above.

    Returns:
        nu [S], joules that the tangent gives up in b, joules of unused band and power.
    """
    radio, on = task.radio, task.sends
    b, t = share[on], air_s[on]
    in_b, in_t = radio.slopes(b, t)
    limit, limit_b, limit_t = _power_limit(task, b, t)
    held = task.mean_w(power_w)[on] >= radio.p_max * (1.0 - AT_LIMIT)
    eta = np.where(held, np.maximum(price + in_b, 0.0) / -limit_b, 0.0)
    slope = in_b + price + eta * limit_b
    wasted_j = float(_tangent_fall(slope, b, least, most).sum())
    unused_j = abs(price) * abs(1.0 - float(b.sum())) + float((eta * np.abs(limit)).sum())
    return -(in_t + eta * limit_t), wasted_j, unused_j


def _power_limit(task: EnergyProblem, share: Array, air_s: Array) -> tuple[Array, Array, Array]:
    """The convex form h(b, t) <= 0 of p <= p_max, and its derivatives by b and t [S].

    h is s / t less what full power sends; b log(1 + snr / b) is concave, and nothing is large
    here, as e^x would be.
    """
    radio = task.radio
    needed = radio.s / air_s
    if radio.density:
        v = snr_log(share, radio.snr)
        return needed - share * v, -kappa(v), -needed / air_s
    return needed - share * radio.x_max, -radio.x_max, -needed / air_s


def _primal(
    task: EnergyProblem, share: Array, cpu_hz: Array, power_w: Array, used_s: Array
) -> tuple[float, list[BrokenBound]]:
    """Worst relative violation of a bound, and all of them."""
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
    worst, broken = max(float(share.sum()) - 1.0, 0.0), list[BrokenBound]()
    if worst > FEASIBILITY_TOLERANCE:
        broken.append((f"the shares add up to {share.sum():.10g}, above 1", ()))
    for excess, values, words in kinds:
        top = float(excess.max())
        worst = max(worst, np.inf if np.isnan(top) else top)  # nan is no answer
        broken += broken_devices(excess, values, words)
    return worst, broken
