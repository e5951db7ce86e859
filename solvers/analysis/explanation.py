"""An allocation in words: which constraint binds for which device, what the band is worth."""

from __future__ import annotations

import numpy as np

from solvers.arrays import Counts, Mask
from solvers.min_energy.energy_certificate import AT_LIMIT
from solvers.min_energy.energy_problem import EnergyProblem
from solvers.problem import FEASIBILITY_TOLERANCE, PruningProblem
from solvers.solution import Solution

NAMED = 12  # devices that are named in one list
NEAR = 1e-9  # relative difference that counts as none
FILLED = 1.0 - 1e-9  # a band that is filled less has idle parts
IN_SECONDS = ("latency", "convex-latency")  # methods by the unit of their objective
IN_JOULES = ("energy", "convex-energy")


def explain(allocation: Solution) -> str:
    """A few sentences on an allocation, one a line.

    Args:
        allocation: the answer of `solvers.allocate`.
    """
    limits = _limits(allocation) if allocation.method in IN_JOULES else []
    return "\n".join([*_devices(allocation), *limits, _band(allocation), _proof(allocation)])


def _devices(a: Solution) -> list[str]:
    """What binds, by groups of devices."""
    p = a.problem
    on, finish_s = p.feasible, p.finish_s(a.share, a.rho)
    late = on & (finish_s > p.slack_s * (1.0 + FEASIBILITY_TOLERANCE))
    beyond = on & ~late & (a.rho > p.rho_at(a.share) + NEAR)
    on_time = on & ~late & ~beyond
    least, most = a.rho <= p.rho_min, (a.rho >= p.rho_max) & (p.rho_max > p.rho_min)
    full = on_time & least & (a.rho == 0)
    unsent = on_time & most & (a.rho == 1) & (p.bits_fixed == 0)
    between = on_time & ~least & ~most
    altogether = "pruned altogether: nothing is sent"
    if np.isfinite(a.multiplier) and _claims(a):
        altogether += ", the band is worth more to others"
    silent = "nothing to send: pruned until the deadline is met, time alone binds"
    return _sentences(
        (~on, "no time is left for what can be pruned (A <= 0): left out"),
        (late, _late(a.method)),
        (full, "the full model, within the deadline"),
        (on_time & least & ~full, "pruned to rho_min and no more, within the deadline"),
        (between & ~p.needs_no_band, _between(p)),
        (between & p.needs_no_band, silent),
        (on_time & most & ~unsent, "held at rho_max: the least band that meets the deadline"),
        (unsent, altogether),
        (beyond, "pruned more than the deadline asks for with this share"),
    )


def _between(problem: PruningProblem) -> str:
    """Why a ratio is between its bounds."""
    if problem.levels is not None:
        return "pruned to one of the allowed levels, so that the deadline is met"
    return "pruned just so far that the deadline is met: time and band bind"


def _late(method: str) -> str:
    """Why a device is late."""
    if method in IN_SECONDS:
        return f"late: {method} keeps rho_min, and a deadline is no bound of it"
    return "late even so: the share, or what rho_max leaves to send, is beyond the deadline"


def _limits(a: Solution) -> list[str]:
    """Whose clock, power or deadline binds, of an answer that chooses clocks and powers."""
    if a.cpu_hz is None or a.power_w is None:
        return []
    task = EnergyProblem.of(a.problem)
    on, terms = a.problem.feasible, task.terms
    busy = on & (terms.cycles > 0)
    used_s = task.computing_s(a.cpu_hz) + task.air_s(a.share, a.power_w)
    full_power = task.sends & (a.power_w >= terms.p_max_w * (1.0 - AT_LIMIT))
    in_time = on & (used_s >= task.time_s * (1.0 - NEAR))
    return _sentences(
        (busy & (a.cpu_hz <= terms.f_min_hz * (1.0 + NEAR)), "the clock is at f_min"),
        (busy & (a.cpu_hz >= terms.f_max_hz * (1.0 - NEAR)), "the clock is at f_max"),
        (full_power, "the power is at p_max"),
        (in_time, "the deadline binds, all of the time is used"),
    )


def _sentences(*kinds: tuple[Mask, str]) -> list[str]:
    """One sentence for each group that has devices."""
    return [f"{_named(np.flatnonzero(who))}: {words}." for who, words in kinds if who.any()]


def _named(devices: Counts) -> str:
    """The first devices by number."""
    names = ", ".join(str(k) for k in devices[:NAMED])
    if len(devices) > NAMED:
        return f"Devices {names} and {len(devices) - NAMED} more"
    return f"Device{'s' if len(devices) > 1 else ''} {names}"


def _band(a: Solution) -> str:
    """How much of the band is used, and what more of it would be worth."""
    used, price = float(a.share.sum()), a.multiplier
    if used < FILLED:
        why = "; nobody has a use for it, its price is 0" if price == 0 else ""
        return f"Of the band {100 * (1 - used):.3g} % is idle{why}."
    if not np.isfinite(price):
        return "The band is full; this method puts no price on it."
    if not _claims(a):
        return f"The band is full; its price is {price:.4g}, says {a.method}."
    if a.method == "levels" or np.isnan(a.certificate.gap):
        steps = "a little more may lower nothing: blocks and levels are whole"
        return f"The band is full; its price is {price:.4g}, but {steps}."
    unit, what = "", "the objective"
    if a.method in IN_SECONDS:
        unit, what = " s", "the last finish"
    elif a.method in IN_JOULES:
        unit, what = " J", "the energy"
    return (
        f"The band is full; its price is {price:.4g}{unit}: "
        f"1 % more would lower {what} by {price / 100:.3g}{unit}."
    )


def _claims(a: Solution) -> bool:
    """Is anything known of how good the answer is? Of a user's own allocator there is not."""
    return not np.isnan(a.certificate.dual)


def _proof(a: Solution) -> str:
    """What the certificate claims, and what it finds broken."""
    proof = a.certificate
    gap = "" if np.isnan(proof.gap) else f", duality gap {proof.gap:.1g}"
    broken = f" Broken: {'; '.join(proof.broken)}." if proof.broken else ""
    return f"{a.method} claims: {proof.claim} (worst residual {proof.residual:.1g}{gap}).{broken}"
