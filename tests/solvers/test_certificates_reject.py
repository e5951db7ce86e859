"""The kill switch: every method's own answer passes its certificate, and the same answer a little
off does not.

One row per method; a method without a row fails `test_nobody_is_left_out`.
"""

from dataclasses import replace

import numpy as np
import pytest

from solvers import (
    IN_BLOCKS,
    METHODS,
    EnergyTerms,
    InvalidAllocationError,
    PruningProblem,
    UncertifiedError,
    allocate,
)
from solvers.allocators.alpha_fair import tangent_problem
from solvers.allocators.discrete_levels import certify_levels
from solvers.allocators.fair import certify_fair, with_rho_at_most
from solvers.allocators.kkt import largest_marginal_gain
from solvers.allocators.min_max_latency import certify_latency
from solvers.bound_violations import violations
from solvers.certificate import certify
from solvers.marginal_gains import marginal_gain
from solvers.min_energy.energy_certificate import certify_energy
from solvers.min_energy.energy_problem import EnergyProblem
from solvers.resource_blocks.kkt_blocks import certify_blocks
from solvers.resource_blocks.min_max_blocks import check_least_max, check_least_sum

RATES = (4e7, 6e7, 9e7)
MOVED = np.array([1e-3, -1e-3, 0.0])  # of the band, from the second device to the first


def problem(**more):
    return PruningProblem(1e6, 4e-3, 20e-3, RATES, **more)


def sparing():
    """All can send unpruned: 1 Mbit in 100 ms, at clocks and powers to be chosen."""
    terms = EnergyTerms(12e6, 1e-28, 0.0, 3e9, 0.5, np.array([30.0, 60.0, 90.0]))
    return PruningProblem(1e6, 4e-3, 0.1, RATES, energy=terms)


# -- the worst of the certificate of an allocation, by method


def least_sum(a):
    proof = certify(a.problem, a.share, a.rho, a.multiplier)
    return max(proof.primal, proof.complementarity, proof.gap)


def most_utility(a):
    """Of proportional fairness, on the tangent at the answer; nobody is at a bound."""
    tangent, _ = tangent_problem(a.problem, 1.0, a.share)
    price = float(marginal_gain(tangent, a.share).mean())
    proof = certify(tangent, a.share, a.rho, price)
    return max(proof.primal, proof.complementarity, proof.gap)


def least_max(a):
    tied = with_rho_at_most(a.problem, float(a.rho.max()))
    tie = certify(tied, a.share, a.rho, largest_marginal_gain(tied, *tied.share_bounds()))
    proof = certify_fair(a.problem, replace(a, certificate=tie))[2]
    return max(proof.primal, proof.complementarity, proof.gap)


def least_time(a):
    try:
        proof = certify_latency(a.problem, a.share, a.rho)[2]
    except InvalidAllocationError:  # it checks the bounds first
        return np.inf
    return max(proof.residual, proof.gap)


def least_joules(a):
    proof = certify_energy(EnergyProblem.of(a.problem), a.share, a.cpu_hz, a.power_w, a.multiplier)[
        1
    ]
    return max(proof.residual, proof.gap)


def best_levels(a):
    proof = certify_levels(
        a.problem, a.share, a.rho, bound=2.0
    )  # two devices of three are left out
    return max(proof.primal, proof.gap)


def bounds(a):
    return violations(a.problem, a.share, a.rho)[0]


OF = {
    "kkt": (least_sum, problem),
    "convex": (least_sum, problem),
    "fair": (least_max, problem),
    "convex-fair": (least_max, problem),
    "alpha-fair": (most_utility, problem),
    "convex-alpha-fair": (most_utility, problem),
    "latency": (least_time, problem),
    "convex-latency": (least_time, problem),
    "energy": (least_joules, sparing),
    "convex-energy": (least_joules, sparing),
    "levels": (best_levels, lambda: problem(levels=[0.0, 0.5, 1.0])),
    "equal": (bounds, lambda: problem(rho_max=0.95, rho_min=0.1)),
    "proportional": (bounds, lambda: problem(rho_max=0.95, rho_min=0.1)),
    "printed": (least_sum, lambda: PruningProblem(1e6, 4e-3, 20e-3, RATES[:2])),
}
OWN = {"convex-energy": 1e-4}  # what the method itself may show; 1e-8 for the others


def with_share(a, share):
    """The same with other shares, and the pruning that the deadline then asks for."""
    pruned = OF[a.method][0] in (least_sum, most_utility, least_max)
    return replace(a, share=share, rho=a.problem.rho_at(share) if pruned else a.rho)


def spoilt(a, kind):
    if kind == "moved":
        return with_share(a, a.share + MOVED[: len(a.share)])
    if kind == "idle":
        return with_share(a, 0.999 * a.share)
    if kind == "overfull":
        return with_share(a, 1.001 * a.share)
    if kind == "below":
        return replace(a, rho=a.rho - 1.0)
    if kind == "above":
        return replace(a, rho=a.rho + 1.0)
    slower = {"slow": ("cpu_hz", 0.999), "weak": ("power_w", 0.999), "strong": ("power_w", 1.001)}
    name, times = slower[kind]
    return replace(a, **{name: getattr(a, name) * times})


SHARES, RHO, JOULES = ("moved", "idle", "overfull"), ("below", "above"), ("slow", "weak", "strong")
KINDS = {
    bounds: ("overfull", *RHO),
    least_joules: (*SHARES, *JOULES),
    least_time: SHARES,
    best_levels: ("moved", "idle", *RHO),  # a third of the band is idle anyway
}


@pytest.mark.parametrize("method", METHODS)
def test_a_certificate_passes_the_answer_and_stops_what_is_a_little_off(method):
    certificate, make = OF[method]
    a = allocate(make(), method)
    assert certificate(a) <= OWN.get(method, 1e-8)
    for kind in KINDS.get(certificate, (*SHARES, *RHO)):
        assert certificate(spoilt(a, kind)) > OWN.get(method, 1e-7), kind


def test_nobody_is_left_out():
    assert set(OF) == set(METHODS) and set(IN_BLOCKS) == {"kkt", "fair", "latency"}


# -- whole blocks


def test_kkt_in_blocks():
    a = allocate(problem(), blocks=20)
    assert certify_blocks(a.problem, a.share, a.rho, 20)[0].residual <= 1e-12
    for step in ((0.05, -0.05, 0.0), (0.0, -0.05, 0.0), (0.0, 0.0, 0.05), (0.01, -0.01, 0.0)):
        share = a.share + step  # a block moved, idle, one too many; no whole blocks
        assert certify_blocks(a.problem, share, a.problem.rho_at(share), 20)[0].residual > 1e-3, (
            step
        )


@pytest.mark.parametrize("method", ["fair", "latency"])
def test_the_least_maximum_in_blocks(method):
    p = problem()
    cost = {
        "fair": lambda n: p.rho_at(n / 20),
        "latency": lambda n: p.finish_s(np.maximum(n, 1) / 20, p.rho_min),
    }
    low, cap, n = (
        np.ones(3, int),
        np.full(3, 20),
        np.rint(allocate(p, method, blocks=20).share * 20).astype(int),
    )
    check_least_max(cost[method], n, low, cap, 20)
    for step in ((2, -2, 0), (-2, 2, 0), (0, -3, 3), (0, 0, 1)):
        with pytest.raises(UncertifiedError, match="would cost less"):
            check_least_max(cost[method], n + step, low, cap, 20)


def test_ties_of_the_least_maximum_in_blocks():
    """1 Mbit at 20 Mbit/s takes device 0 half of 4 blocks; 0.5 Mbit the others one, and all is
    handed out or not.
    """
    n, least, cap = np.array([2, 1, 1]), np.array([1, 1, 1]), np.array([4, 4, 4])
    finish_s = lambda n: np.array([1.0, 0.5, 0.5]) / 20 / (n / 4)  # noqa: E731
    check_least_sum(finish_s, n, least, cap, 4)
    for other in (
        [1, 2, 1],
        [1, 1, 1],
        [1, 1, 2],
    ):  # 0.05 s less for device 1 costs device 0 0.1 s; one is idle
        with pytest.raises(UncertifiedError, match="least sum: one elsewhere"):
            check_least_sum(finish_s, np.array(other), least, cap, 4)
