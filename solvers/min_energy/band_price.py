"""The price of the band in energy: the one at which the best responses to it fill the band.

Two searches use nothing but the curves of the devices (`energy_curve`). `newton_search` is
Newton's method on all parameters and the price at once: mostly five to eight turns, but a clock or
a power that reaches its limit bends a curve, so that it may step to and fro. Then
`bracket_search` finds the responses to every price within brackets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from solvers.arrays import EPS, Array
from solvers.min_energy.energy_curve import Radio
from solvers.min_energy.energy_problem import EnergyProblem
from solvers.problem import FULL_BAND
from solvers.problem_checks import range_error

TURNS = 20  # of Newton's method, at most
STEP = 1e-6  # of the logarithm of a parameter, for its slopes
UP = math.exp(STEP)
SAME = 5e-14  # relative error of prices and of the band that ends the search
ROUNDING = 1e-11  # the same where a turn gains no more
FAR, NEAR = 2.0, 0.02  # largest step of a log parameter: at first, and when steps go wrong
WIDE = 1000.0  # the logarithm of a price is never this large
Found = tuple[Array, Array, float]  # shares [S], air times [S], s, price, J per unit of band


def band_filling_shares(task: EnergyProblem, low: Array) -> Iterator[Found]:
    """Best responses that fill the band, from one search and, where asked, from the other.

    Args:
        task: K devices, S of which send.
        low: their least shares [S].

    Yields:
        Shares [S], air times [S], s, and the price, J per unit of band.

    Raises:
        ValueError: numbers that leave the range of doubles.
    """
    radio, count = task.radio, 0
    if low.sum() < FULL_BAND:
        for found in (search(radio, low) for search in (newton_search, bracket_search)):
            if found is not None:
                count += 1
                yield found
    if count:
        return
    least, _, price = radio.at(radio.ends()[1])
    if max(low.sum(), least.sum()) < FULL_BAND:
        raise range_error("energy", task.problem, task.terms)
    # no device can get more than the least
    yield low / low.sum(), radio.longest_s, float(np.exp(price.max()))


def newton_search(radio: Radio, low: Array) -> Found | None:
    """Newton's method in logarithms, as shares and prices are nearly powers of the parameters."""
    (start, end), share = radio.ends(), np.sqrt(low)
    # with these shares, half of the time for sending
    u = np.minimum(4.0 * start * (share.sum() / share), radio.knee)
    price, good, reach, before = None, end, FAR, np.inf
    for _ in range(TURNS):
        (share, more), (air_s, _), (met, higher) = radio.at(np.array((u, u * UP)))
        idle = ~((air_s > 0) & np.isfinite(met) & np.isfinite(higher))
        if idle.any():  # no time is left for sending at such a low price: back
            start, u = np.where(idle, u, start), np.where(idle, np.sqrt(u * good), u)
            continue
        good, total = u, float(share.sum())
        if price is None:
            price = float(share @ met) / total
        held = (u >= end) & (met < price)  # at the least share whatever the price
        off = max(float(np.abs(np.where(held, 0.0, price - met)).max()), abs(math.log(total)))
        if off < SAME or (ROUNDING > off > 0.5 * before):
            return _fitted_to_band(share, more), air_s, math.exp(price)
        reach, before = max(reach / 4, NEAR) if off > before else min(2 * reach, FAR), off
        rise = np.maximum(higher - met, 1e-300)
        elastic = np.where(held, 0.0, np.log(more / share) / rise)
        price = _filling_price(share, met, elastic, price, off)
        step = np.where(held, 0.0, STEP * (price - met) / rise)
        u = np.minimum(np.maximum(u * np.exp(np.clip(step, -reach, reach)), start), end)
    return None


def _fitted_to_band(share: Array, more: Array) -> Array:
    """Shares [S] that add up to one.

    Who answers to a price takes the rounding, not who has the most: `more` [S] is the answer to a
    step of the parameters.
    """
    for _ in range(2):
        gives = np.maximum(share - more, 0.0)
        parts = gives / gives.sum() if gives.sum() > 0 else share / share.sum()
        share = share + (1.0 - share.sum()) * parts
    return share


def _filling_price(share: Array, met: Array, elastic: Array, price: float, off: float) -> float:
    """The log price at which shares that follow their elasticities fill the band, to 1 % of off."""
    for _ in range(TURNS):
        wanted = share * np.exp(np.minimum(elastic * (price - met), 50.0))
        total, slope = float(wanted.sum()), float(elastic @ wanted)
        if not slope < 0 < total:
            break
        change = -math.log(total) * total / slope
        price += min(max(change, -5.0), 5.0)
        if abs(change) < 1e-2 * min(1.0, off):
            break
    return price


def bracket_search(radio: Radio, _: Array) -> Found | None:
    """The root of the excess of the responses over the band; None where prices are no numbers."""
    from scipy.optimize import brentq

    start, end = radio.ends()
    # log price -> parameters [S] and log prices [S] that are known
    known = {-np.inf: (start, radio.at(start)[2]), np.inf: (end, radio.at(end)[2])}
    shares: dict[float, Array] = {}

    def excess(log_price: float) -> float:
        if log_price not in shares:  # what is known already narrows the search
            below = max(price for price in known if price < log_price)
            above = min(price for price in known if price > log_price)
            u, met = radio.response(log_price, *known[below], *known[above])
            known[log_price], shares[log_price] = (u, met), radio.at(u)[0]
        return float(np.log(shares[log_price].sum()))

    low_price = high_price = _typical_price(radio, start, end)
    step = 0.25
    while abs(low_price) < WIDE and excess(low_price) < 0:
        low_price, high_price, step = low_price - step, low_price, 2.0 * step
    while abs(high_price) < WIDE and excess(high_price) > 0:
        low_price, high_price, step = high_price, high_price + step, 2.0 * step
    found = max(abs(low_price), abs(high_price)) < WIDE
    if not (found and excess(high_price) <= 0 <= excess(low_price)):
        return None
    log_price = brentq(excess, low_price, high_price, xtol=1e-14, rtol=4 * EPS)
    u = known[log_price][0]
    (share, more), (air_s, _), _ = radio.at(np.array((u, u * UP)))
    return _fitted_to_band(share, more), air_s, float(np.exp(log_price))


def _typical_price(radio: Radio, start: Array, end: Array) -> float:
    """The logarithm of a price of about the right size: the mean at about equal shares."""
    met = radio.at(np.clip(2.0 * len(start) * start, np.sqrt(start * end), end))[2]
    met = np.where(np.isfinite(met), met, radio.at(end)[2])
    return float(met.mean())
