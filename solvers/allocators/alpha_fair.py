"""The alpha-fair allocation: from the least sum of pruning to the least pruning of the worst.

Maximises sum_k w_k U(1 - rho_k) with U(x) = x^(1 - alpha) / (1 - alpha), at alpha = 1 log x (Mo and
Walrand, IEEE/ACM Transactions on Networking 2000). alpha = 0 is `kkt`, alpha = 1 proportional
fairness, and alpha to infinity leads to `fair`. The kept share x_k(b_k) is concave under every
noise, and U is concave and rising: the problem is convex, and

    w_k x_k^-alpha x_k'(b_k) = lambda

within the bounds is optimal. The left side falls with b_k: shares are roots by lambda, and lambda
is the root of sum_k b_k = 1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from solvers.acceptance import accepted_solution
from solvers.allocators.alpha_fair_slopes import AlphaFairSlopes, kept_share
from solvers.allocators.fair import fair
from solvers.allocators.kkt import kkt, mixture
from solvers.arrays import EPS, Array, numbers
from solvers.certificate import certify
from solvers.deadline_feasibility import fitting_bounds
from solvers.marginal_gains import marginal_gain
from solvers.problem import FULL_BAND, PruningProblem
from solvers.solution import Certificate, Solution

CLAIM = (
    "no shares and ratios have a larger weighted sum of U(1 - rho) by more than the duality gap, "
    "which is that of the problem with the weights w (1 - rho)^-alpha, its tangent"
)
LEAST_PART = 1e-18  # of the way from the least share to the largest one that counts as none
LEAST_KEPT = 1e-30  # below the rounding of any share that is kept
TURNS = 100  # at most, of Newton's method in a bracket
NUDGE = 1e-6  # of the logarithm of that part, for slopes
CLOSE = 1e-12  # difference of logarithms that counts as none
STATIONARITY = 1e-6  # the gap, which must be below 1e-8, is quadratic in the error of marginals
NEGLIGIBLE = 1e-250  # weight of a device in the tangent, beside the largest one


def alpha_fair(problem: PruningProblem, alpha: float = 1.0) -> Solution:
    """Shares and ratios of the largest weighted sum of U(1 - rho); see `solvers.allocate`.

    The objective is the weighted sum of rho, for comparison between values of alpha.

    Args:
        problem: K devices.
        alpha: 0: `kkt`; inf: `fair`.

    Raises:
        InfeasibleError: the least shares do not fit into the band.
        UncertifiedError: off by more than 1e-8.
        ValueError: a device has no deadline, or a set of levels; alpha is below 0.
    """
    alpha = checked_alpha(alpha)
    if alpha == 0:
        return kkt(problem)
    if alpha == np.inf:
        return fair(problem)
    problem.refuse_levels("alpha-fair")
    low, cap = fitting_bounds(problem)
    if cap.sum() <= 1:  # every device gets all that is of use
        share, price = cap, -np.inf
    elif low.sum() >= FULL_BAND:  # no device can get more than the least
        share, price = low.copy(), np.inf
    else:
        share, price = _shares(problem, alpha, low, cap)
    proof = certified_tangent(problem, alpha, share, price)
    return alpha_fair_solution(problem, alpha, share, proof, "alpha-fair")


def checked_alpha(alpha: Any) -> float:
    """The fairness as a number.

    Raises:
        ValueError: it is below 0, or no number.
    """
    allowed = "allowed is 0, a positive number, or inf"
    given = numbers("alpha", alpha, allowed)
    if given.ndim or not given >= 0:
        shown = ", ".join(f"{each:g}" for each in given.flat)
        raise ValueError(f"alpha is {shown}; {allowed}.")
    return float(given)


class AlphaFairResponse:
    """Shares [K] by the logarithm of a price: where w x^-alpha x' falls to it.

    Remembers where it ended, as the next price is mostly a near one; the answer depends on that
    in the last digit only.

    Args:
        problem: K devices.
        alpha: positive.
        low: least shares [K].
        cap: largest shares [K].
    """

    def __init__(self, problem: PruningProblem, alpha: float, low: Array, cap: Array) -> None:
        self.problem, self.alpha, self.low, self.cap = problem, alpha, low, cap
        self.live = (cap > low) & (problem.gain > 0)
        self.span = np.where(self.live, cap - low, 0.0)
        self.deepest = float(np.log(LEAST_PART))
        self.first, self.last = self._value(low + LEAST_PART * self.span), self._value(cap)
        # the band filled with the same part of everybody's way
        self.filled = low + (1.0 - float(low.sum())) / float(self.span.sum()) * self.span
        self.part = np.full(len(low), 0.5 * self.deepest)  # log of (b - low) / span

    def ends(self) -> tuple[float, float]:
        """Logarithms of prices with which the shares take at least, and at most, the band.

        Those of shares that fill it, each with the same part of its way: nobody takes less at the
        least of their prices, and nobody more at the largest.
        """
        prices = self._value(self.filled)[self.live]
        return float(prices.min()), float(prices.max())

    def _value(self, share: Array) -> Array:
        """log w x^-alpha x' [K]: what band is worth, falling with it."""
        kept = np.maximum(kept_share(self.problem, share), LEAST_KEPT)
        return np.log(marginal_gain(self.problem, share)) - self.alpha * np.log(kept)

    def __call__(self, price: float) -> Array:
        below, above = np.full_like(self.low, self.deepest), np.zeros_like(self.low)
        part = np.clip(self.part, below, above)
        moves = self.live & (self.first > price) & (self.last < price)
        for turn in range(TURNS):
            height = self._value(self.low + np.exp(part) * self.span) - price
            step = self._value(self.low + np.exp(part - NUDGE) * self.span) - price - height
            below, above = np.where(height > 0, part, below), np.where(height > 0, above, part)
            following = part + NUDGE * height / step
            inside = (following > below) & (following < above) & (turn % 4 < 3)
            following = np.where(inside, following, 0.5 * (below + above))
            done = np.abs(following - part) <= CLOSE
            part = np.where(moves, following, part)
            if (done | ~moves | (above - below <= CLOSE)).all():
                break
        self.part = part
        # U' is infinite at 0, so that nobody ends there: the least part stands for all below it
        part = np.where(moves, part, self.deepest)
        share = self.low + np.exp(part) * self.span
        return np.where(self.live & (self.last >= price), self.cap, share)


def _shares(problem: PruningProblem, alpha: float, low: Array, cap: Array) -> tuple[Array, float]:
    """Shares that fill the band, and the logarithm of lambda."""
    from scipy.optimize import brentq

    respond = AlphaFairResponse(problem, alpha, low, cap)
    least, most = respond.ends()
    if most - least <= CLOSE:
        return respond.filled, most
    price, _ = brentq(
        lambda each: float(respond(each).sum()) - 1.0,
        least - CLOSE,
        most + CLOSE,
        xtol=CLOSE,
        rtol=4 * EPS,
        maxiter=200,
        full_output=True,
        disp=False,
    )
    # prices are told apart by rounding alone now: a mixture of two neighbours fills the band
    share = mixture(lambda mu: (respond(price - 2.0 * np.log(mu)), low), 0.5, 2.0, 1.0)
    return share, float(price)


def alpha_fair_solution(
    problem: PruningProblem,
    alpha: float,
    share: Array,
    proof: Certificate,
    method: str,
    dual: float = STATIONARITY,
) -> Solution:
    """The solution, if its certificate is good.

    Its multiplier is the fall of its objective, the sum of w rho, per unit of band.
    """
    rho, price = problem.rho_at(share), AlphaFairSlopes(problem, alpha, share).price
    accepted = accepted_solution(problem, share, rho, price, proof, method, dual)
    return replace(accepted, alpha=alpha)


def certified_tangent(
    problem: PruningProblem, alpha: float, share: Array, price: float
) -> Certificate:
    """The certificate of shares.

    U is concave, so what any other answer could add to the sum is at most what it adds to the
    tangent sum_k w_k x_k^-alpha x: a problem of `kkt`, with its certificate.

    Args:
        problem: K devices.
        alpha: positive.
        share: b [K].
        price: logarithm of lambda; inf where no device has more than its least share.
    """
    tangent, unit = tangent_problem(problem, alpha, share)
    multiplier = 0.0
    if np.isfinite(price):
        multiplier = float(np.exp(price - unit))
    elif price > 0:
        low, cap = problem.share_bounds()
        multiplier = float(marginal_gain(tangent, low).max(where=cap > low, initial=0.0))
    return replace(certify(tangent, share, problem.rho_at(share), multiplier), claim=CLAIM)


def tangent_problem(
    problem: PruningProblem, alpha: float, share: Array
) -> tuple[PruningProblem, float]:
    """The problem with the weights w x^-alpha, and the logarithm of the unit that they have."""
    low, cap = problem.share_bounds()
    kept = kept_share(problem, share)
    moves = (cap > low) & (problem.gain > 0) & (kept > 0)
    log_weight = np.log(problem.weight) - alpha * np.log(np.where(moves, kept, 1.0))
    unit = float(log_weight.max(where=moves, initial=-np.inf)) if moves.any() else 0.0
    weight = np.exp(np.maximum(log_weight - unit, np.log(NEGLIGIBLE)))
    return replace(problem, weight=np.where(moves, weight, 1.0)), unit
