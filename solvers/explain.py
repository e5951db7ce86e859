"""What binds for whom, in words: who keeps the full model, who is pruned to the bound, what the band is worth."""

from __future__ import annotations

import numpy as np

from solvers.problem import Allocation, Array

NAMED = 12  # devices that are named in one list
NEAR = 1e-9  # relative difference that counts as none
FULL_BAND = 1.0 - 1e-9


def explain(allocation: Allocation) -> str:
    """A few sentences on an allocation, one a line.

    Raises:
        ValueError: the allocation does not know its problem.
    """
    if allocation.problem is None:
        raise ValueError("This allocation does not carry its problem; explain the answer of solvers.allocate.")
    return "\n".join([*_devices(allocation), _band(allocation), _proof(allocation)])


def _devices(a: Allocation) -> list[str]:
    p = a.problem
    on, finish_s = p.feasible, p.finish_s(a.share, a.rho)
    late = on & (finish_s > p.slack_s * (1.0 + NEAR))
    on_time = on & ~late
    least, most = a.rho <= p.rho_min, (a.rho >= p.rho_max) & (p.rho_max > p.rho_min)
    full, unsent = on_time & least & (a.rho == 0), on_time & most & (a.rho == 1)
    kinds = (
        (~on, "no time is left for what can be pruned (A <= 0): left out"),
        (late, "late even so: the share, or what rho_max leaves to send, is beyond the deadline"),
        (full, "the full model, within the deadline"),
        (on_time & least & ~full, "pruned to rho_min and no more, within the deadline"),
        (on_time & ~least & ~most, _between(p)),
        (on_time & most & ~unsent, "held at rho_max: their band is the least that meets the deadline"),
        (unsent, "pruned altogether: nothing is sent, the band is worth more to others"),
    )
    return [f"{_named(np.flatnonzero(who))}: {words}." for who, words in kinds if who.any()]


def _between(problem) -> str:
    if problem.levels is not None:
        return "pruned to one of the allowed levels, so that the deadline is met"
    return "pruned just so far that the deadline is met: for them time and band bind"


def _named(devices: Array) -> str:
    names = ", ".join(str(k) for k in devices[:NAMED])
    if len(devices) > NAMED:
        return f"Devices {names} and {len(devices) - NAMED} more"
    return f"Device{'s' if len(devices) > 1 else ''} {names}"


def _band(a: Allocation) -> str:
    used, price = float(a.share.sum()), a.multiplier
    if used < FULL_BAND:
        why = "; nobody has a use for it, its price is 0" if price == 0 else ""
        return f"Of the band {100 * (1 - used):.3g} % is idle{why}."
    if not np.isfinite(price):
        return "The band is full; this method puts no price on it."
    return f"The band is full; its price is {price:.4g}: 1 % more would lower the objective by {price / 100:.3g}."


def _proof(a: Allocation) -> str:
    proof = a.certificate
    gap = "" if np.isnan(proof.gap) else f", duality gap {proof.gap:.1g}"
    broken = f" Broken: {'; '.join(proof.broken)}." if proof.broken else ""
    return f"{a.method} claims: {proof.claim} (worst residual {proof.residual:.1g}{gap}).{broken}"
