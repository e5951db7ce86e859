"""What binds for whom, in words: who keeps the full model, who is pruned to the bound, what the band is worth."""

from __future__ import annotations

import numpy as np

from solvers.arrays import Array
from solvers.min_energy.energy_certificate import AT_LIMIT
from solvers.min_energy.energy_problem import EnergyProblem
from solvers.problem import FEASIBILITY_TOLERANCE
from solvers.solution import Solution

NAMED = 12  # devices that are named in one list
NEAR = 1e-9  # relative difference that counts as none
FULL_BAND = 1.0 - 1e-9
SECONDS, JOULES = (
    ("latency", "convex-latency"),
    ("energy", "convex-energy"),
)  # methods that keep rho_min


def explain(allocation: Solution) -> str:
    """A few sentences on an allocation, one a line.

    Raises:
        ValueError: the allocation does not know its problem.
    """
    if allocation.problem is None:
        raise ValueError(
            "This allocation does not carry its problem; explain the answer of solvers.allocate."
        )
    limits = _limits(allocation) if allocation.method in JOULES else []
    return "\n".join([*_devices(allocation), *limits, _band(allocation), _proof(allocation)])


def _devices(a: Solution) -> list[str]:
    p = a.problem
    on, finish_s = p.feasible, p.finish_s(a.share, a.rho)
    late = on & (finish_s > p.slack_s * (1.0 + FEASIBILITY_TOLERANCE))
    on_time = on & ~late
    least, most = a.rho <= p.rho_min, (a.rho >= p.rho_max) & (p.rho_max > p.rho_min)
    full, unsent = (
        on_time & least & (a.rho == 0),
        on_time & most & (a.rho == 1) & (p.bits_fixed == 0),
    )
    between = on_time & ~least & ~most
    kinds = (
        (~on, "no time is left for what can be pruned (A <= 0): left out"),
        (late, _late(a.method)),
        (full, "the full model, within the deadline"),
        (on_time & least & ~full, "pruned to rho_min and no more, within the deadline"),
        (between & ~p.needs_no_band, _between(p)),
        (
            between & p.needs_no_band,
            "nothing to send: pruned until the deadline is met, time alone binds",
        ),
        (on_time & most & ~unsent, "held at rho_max: the least band that meets the deadline"),
        (unsent, "pruned altogether: nothing is sent, the band is worth more to others"),
    )
    return [f"{_named(np.flatnonzero(who))}: {words}." for who, words in kinds if who.any()]


def _between(problem) -> str:
    if problem.levels is not None:
        return "pruned to one of the allowed levels, so that the deadline is met"
    return "pruned just so far that the deadline is met: time and band bind"


def _late(method: str) -> str:
    if method in SECONDS:
        return f"late: {method} keeps rho_min, and a deadline is no bound of it"
    return "late even so: the share, or what rho_max leaves to send, is beyond the deadline"


def _limits(a: Solution) -> list[str]:
    """Whose clock, power or deadline binds, of an answer that chooses clocks and powers."""
    task = EnergyProblem.of(a.problem)
    busy, terms = a.problem.feasible & (task.terms.cycles > 0), task.terms
    used_s = task.computing_s(a.cpu_hz) + task.air_s(a.share, a.power_w)
    kinds = (
        (busy & (a.cpu_hz <= terms.f_min_hz * (1.0 + NEAR)), "the clock is at f_min"),
        (busy & (a.cpu_hz >= terms.f_max_hz * (1.0 - NEAR)), "the clock is at f_max"),
        (task.sends & (a.power_w >= terms.p_max_w * (1.0 - AT_LIMIT)), "the power is at p_max"),
        (
            a.problem.feasible & (used_s >= task.time_s * (1.0 - NEAR)),
            "the deadline binds, all of the time is used",
        ),
    )
    return [f"{_named(np.flatnonzero(who))}: {words}." for who, words in kinds if who.any()]


def _named(devices: Array) -> str:
    names = ", ".join(str(k) for k in devices[:NAMED])
    if len(devices) > NAMED:
        return f"Devices {names} and {len(devices) - NAMED} more"
    return f"Device{'s' if len(devices) > 1 else ''} {names}"


def _band(a: Solution) -> str:
    used, price = float(a.share.sum()), a.multiplier
    if used < FULL_BAND:
        why = "; nobody has a use for it, its price is 0" if price == 0 else ""
        return f"Of the band {100 * (1 - used):.3g} % is idle{why}."
    if not np.isfinite(price):
        return "The band is full; this method puts no price on it."
    unit, what = _unit(a.method)
    return f"The band is full; its price is {price:.4g}{unit}: 1 % more would lower {what} by {price / 100:.3g}{unit}."


def _unit(method: str) -> tuple[str, str]:
    """Of the price of the whole band, and what it lowers."""
    if method in SECONDS:
        return " s", "the last finish"
    return (" J", "the energy") if method in JOULES else ("", "the objective")


def _proof(a: Solution) -> str:
    proof = a.certificate
    gap = "" if np.isnan(proof.gap) else f", duality gap {proof.gap:.1g}"
    broken = f" Broken: {'; '.join(proof.broken)}." if proof.broken else ""
    return f"{a.method} claims: {proof.claim} (worst residual {proof.residual:.1g}{gap}).{broken}"
