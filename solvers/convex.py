"""The same problems for a general solver: cvxpy with Clarabel. The reference, not the fast path.

    convex            least weighted pruning, as `kkt`         convex-fair       as `fair`
    convex-latency    as `latency`                             convex-energy     as `energy`, noise of a fixed power

Clarabel's interior points reach a relative duality gap of about 1e-12 (median) and marginals that equal the multiplier
to about 1e-7. Where rates, sizes and computing times of the devices lie decades apart the gap stays above 1e-8 on some
problems, whatever its settings: the certificate then refuses the answer.
As one unit in the tenth digit of rho is many seconds for a device with hardly any band, only the shares and the
multiplier of the band are Clarabel's; rho is what the deadline asks for with these shares, eq. (47).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvers.certify import accepted, certified, certify
from solvers.certify_energy import certified_energy, raised
from solvers.convex_models import energy_model, fair_model, latency_model, pruning_model
from solvers.energy import clocks, least_shares
from solvers.energy_terms import Task
from solvers.fair import certify_fair, lowered
from solvers.latency import certify_latency, time_before, work
from solvers.marginal import marginal
from solvers.problem import Allocation, Array, PruningProblem, Uncertified
from solvers.pruning import steepest
from solvers.stretch import ROUNDING, fitting_bounds

STATIONARITY = 1e-4  # the duality gap, which must be below 1e-8, is quadratic in the error of the marginals
EXACT = 1e-9  # duality gap that is good enough
PASSES = 4  # at most
LEAST = 1e-12  # of its scale that an objective can be told from zero
DIGITS = 1e-15  # of rho
FILLS = 4  # rounds of handing back
FLAT = 1e4  # curvature up to which the first form of the deadline is well scaled
FILLED = 1e-6  # shares that add up to this far from one are taken to fill the band
ENERGY_GAP = 1e-4  # the bound on the joules is linear in the error of the marginals


def convex(problem: PruningProblem) -> Allocation:
    """Shares and pruning ratios of least weighted pruning, by cvxpy and Clarabel; see `solvers.allocate`.

    Raises:
        Uncertified: Clarabel gave up, or its answer is off by more than 1e-8.
    """
    low, cap = fitting_bounds(problem)
    on = np.flatnonzero(cap > low)
    share, multiplier = low.copy(), 0.0
    if low.sum() >= 1 - ROUNDING:  # the feasible set is one point: no interior to walk through, nothing to solve
        share, multiplier = low / low.sum(), steepest(problem, low, cap)
    elif len(on):
        share, multiplier = _least_pruning(problem, on, low, cap)
    return certified(problem, share, problem.rho_at(share), multiplier, "convex", STATIONARITY)


def _least_pruning(problem: PruningProblem, on: Array, low: Array, cap: Array) -> tuple[Array, float]:
    """(shares, multiplier) of Clarabel; where they are not exact solved again in units of the answer, that is, with all
    shares and the objective of order one. The best of these."""
    unit, scale, answers = _usual_shares(problem, on), float(problem.weight[on].sum()), []
    for _ in range(PASSES):
        values = _pruning_values(problem, on, low, unit)
        model = pruning_model(len(on), problem.snr is not None, *_forms(values))
        try:
            beta, price = model.solve(weight=problem.weight[on] / scale, **values)
        except Uncertified:
            if not answers:
                raise
            break
        share, price = low.copy(), price / unit.max() * scale
        share[on] = unit * beta
        share = _filling(share, low, cap)
        rho = problem.rho_at(share)
        answers.append((certify(problem, share, rho, price).gap, share, price))
        if answers[-1][0] <= EXACT:
            break
        unit, scale = np.where(share[on] > 0, share[on], unit), max(problem.objective(rho), LEAST * scale)
    return min(answers, key=lambda answer: answer[0])[1:]


def _filling(share: Array, low: Array, cap: Array) -> Array:
    """Shares [K] made feasible exactly: what is above `low` is scaled to the band; what is beyond `cap` handed back."""
    share = np.clip(share, low, cap)
    for _ in range(FILLS):
        above, left = share - low, 1.0 - float(low.sum())
        rises = above.sum() < left
        moves = (share < cap) if rises else (above > 0)
        wanted, moving = left - float(above[~moves].sum()), float(above[moves].sum())
        if moving <= 0:
            break
        share = np.where(moves, np.minimum(low + above * (wanted / moving), cap), share)
    return share


def convex_fair(problem: PruningProblem) -> Allocation:
    """Least maximal rho by cvxpy and Clarabel, ties broken by the least sum, by `convex`.

    Clarabel's is the bound on rho; the least shares that keep it fill the band, or leave room for the tie-break.
    """
    low, cap = fitting_bounds(problem)
    on = np.flatnonzero(cap > low)
    bound = float(problem.rho_at(cap).max(where=problem.feasible, initial=0.0))
    if low.sum() < 1 - ROUNDING and len(on):
        values = _pruning_values(problem, on, low, _usual_shares(problem, on))
        _, rho, _ = fair_model(len(on), problem.snr is not None, *_forms(values)).solve(**values)
        bound = max(bound, float(rho.max()))
    bound = min(bound + DIGITS, 1.0)  # else one who sends nothing may be late by rounding, with any band
    least = lowered(problem, bound).share_bounds()[0] if low.sum() < 1 - ROUNDING else low
    answer = _filled(problem, least) if least.sum() >= 1 - FILLED else convex(lowered(problem, bound))
    objective, multiplier, proof = certify_fair(problem, answer)
    answer = accepted(problem, answer.share, answer.rho, multiplier, proof, "convex-fair", 1.0)
    return replace(answer, objective=objective)


def _filled(problem: PruningProblem, least: Array) -> Allocation:
    """The least shares; what they leave or lack, next to nothing, is spread so that it moves all rho alike."""
    steep = marginal(problem, least) / problem.weight
    softness = np.divide(1.0, steep, out=np.zeros_like(steep), where=(steep > 0) & (least > 0))
    share = least + (1.0 - least.sum()) * softness / max(softness.sum(), 1e-300)
    rho = problem.rho_at(share)
    tied = lowered(problem, float(rho.max(where=problem.feasible, initial=0.0)))
    multiplier = steepest(tied, *tied.share_bounds())
    proof = certify(tied, share, rho, multiplier)
    return Allocation(share, rho, multiplier, proof, (), "convex-fair", problem.objective(rho))


def convex_latency(problem: PruningProblem) -> Allocation:
    """Least maximal finish time by cvxpy and Clarabel, at rho_min."""
    before_s, on = time_before(problem), problem.feasible
    bits, busy_s = work(problem, before_s)
    sends = np.flatnonzero(on & (bits > 0))
    share = np.zeros(problem.num_devices)
    if len(sends):
        alone_s = (bits / problem.rate_bps)[sends]
        unit = alone_s / alone_s.sum()
        upload_s = bits[sends] / _rates(problem, sends, unit)
        second = float((busy_s[sends] + upload_s).max())
        values = _band_values(problem, sends, unit, 1.0)
        model = latency_model(len(sends), problem.snr is not None)
        beta, _ = model.solve(busy=busy_s[sends] / second, upload=upload_s / second, **values)
        share[sends] = np.maximum(unit * beta, 0.0)
        share /= share.sum()
    rho = np.where(on, problem.rho_min, problem.rho_max)
    objective, multiplier, proof = certify_latency(problem, share, rho)
    return replace(accepted(problem, share, rho, multiplier, proof, "convex-latency"), objective=objective)


def convex_energy(problem: PruningProblem) -> Allocation:
    """Least energy by cvxpy and Clarabel, for noise of a fixed power; certified to 1e-4 of the joules.

    Raises:
        ValueError: noise is a density; b t (e^(s / (b t)) - 1) is convex, but not by the rules that cvxpy knows.
    """
    if problem.snr is not None:
        raise ValueError("convex-energy states noise of a fixed power only; leave snr away, or use energy.")
    task, on = Task.of(problem), problem.feasible
    least_shares(problem)  # raises where full clocks and powers do not do
    share, air_s, power_w, price = *np.zeros((3, len(on))), 0.0
    if task.sends.any():
        share[task.sends], air_s[task.sends], price = _least_energy(task)
        share /= max(1.0, float(share.sum()))
        power = task.radio.power(share[task.sends], air_s[task.sends])
        power_w[task.sends] = np.minimum(power, task.radio.p_max)
        price = raised(task, share, power_w, price)
    cpu_hz = clocks(task, air_s)
    joules, proof = certified_energy(task, share, cpu_hz, power_w, price, ENERGY_GAP)
    rho = np.where(on, problem.rho_min, problem.rho_max)
    left_out = tuple(np.flatnonzero(~on).tolist())
    return Allocation(share, rho, price, proof, left_out, "convex-energy", joules, cpu_hz, power_w, problem)


def _least_energy(task: Task) -> tuple[Array, Array, float]:
    """(shares [S], air times [S], s, price) of Clarabel."""
    radio, count = task.radio, int(task.sends.sum())
    unit = np.full(count, 1.0 / count)
    computes = radio.tau_max > 0
    usual_s = np.where(computes, np.clip(0.5 * radio.time_s, radio.tau_min, radio.tau_max), radio.time_s)
    level = np.expm1(np.minimum(2.0 * count * radio.s / radio.longest_s, np.log1p(radio.snr)))
    sending, computing = level / radio.gain * radio.time_s, radio.work / usual_s**2
    joule = float((sending + computing).sum())
    beta, u, price = energy_model(count).solve(
        **_band_values(task.problem, np.flatnonzero(task.sends), unit, 1.0),
        busy=np.where(computes, usual_s / radio.time_s, 0.0),
        v_min=np.where(computes, radio.tau_min / usual_s, 0.5),
        v_max=np.where(computes, radio.tau_max / usual_s, 1.0),
        level=level,
        load=radio.s / radio.time_s / unit,
        most=radio.snr / level,
        computing=computing / joule,
        sending=sending / joule,
    )
    return unit * beta, u * radio.time_s, price / unit.max() * joule


def _usual_shares(problem: PruningProblem, on: Array) -> Array:
    """Shares [S] with which the devices `on` [S] would prune nothing if they had nothing to compute."""
    rate_bps = np.zeros(problem.num_devices)
    rate_bps[on] = (problem.bits[on] + problem.bits_fixed[on]) / problem.slack_s[on]
    return np.minimum(1.0, problem.share_for_rate(rate_bps)[on])


def _pruning_values(problem: PruningProblem, on: Array, low: Array, unit: Array) -> dict[str, Array]:
    """Parameters of the pruning models for the devices `on` [S], with shares in units [S]."""
    bits, fixed, slack_s = problem.bits[on], problem.bits_fixed[on], problem.slack_s[on]
    full = _rates(problem, on, unit) * slack_s  # bits that beta = 1 sends within the slack
    u, phi, g = bits / full, fixed / full, problem.compute_s[on] / slack_s
    flat = g < FLAT * u
    with np.errstate(divide="ignore", invalid="ignore"):
        c, fall = np.where(flat, g / u, 0.0), np.where(flat, (1.0 + phi * g / u) / u, 0.0)
        forms = {
            "start": np.where(flat, 1.0 + phi / u, 0.0),
            "c": c,
            "fall": fall,
            "fall_c": fall * c,
            "end": np.where(flat, 0.0, 1.0 - 1.0 / g),
            "scale": np.where(flat, 0.0, (u / g + phi) / g),
            "shift": np.where(flat, 1.0, u / g),
        }
    bounds = {"rho_min": problem.rho_min[on], "rho_max": problem.rho_max[on]}
    left = 1.0 - float(low.sum() - low[on].sum())
    return _band_values(problem, on, unit, left) | bounds | forms


def _forms(values: dict[str, Array]) -> tuple[bool, bool]:
    """Is there a device with little, and one with much curvature?"""
    return bool((values["start"] > 0).any()), bool((values["start"] == 0).any())


def _band_values(problem: PruningProblem, on: Array, unit: Array, band: float) -> dict[str, Array | float]:
    values = {"part": unit / unit.max(), "band": band / unit.max(), "unit": unit}
    if problem.snr is None:
        return values
    snr = problem.snr[on] / unit
    return values | {"snr": snr, "log_snr": np.log1p(snr)}


def _rates(problem: PruningProblem, on: Array, unit: Array) -> Array:
    """R(unit) of the devices `on` [S], bit/s."""
    share = np.ones(problem.num_devices)
    share[on] = unit
    return problem.rate_at(share)[on]
