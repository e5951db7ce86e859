"""Statements of Liu et al. (Table I, Fig. 5), tested over the seeds of runs that ask for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from edgesim.errors import counted
from edgesim.results.finished_run import FinishedRun
from reports.run_data import liu_reported_results as liu
from reports.run_data.scheme_grouping import Scheme
from reports.run_data.statistics.metrics import ACCURACY, LATENCY
from reports.run_data.statistics.round_latencies import mean_latency_s
from reports.run_data.statistics.run_totals import rho_mean, total
from reports.run_data.statistics.seed_intervals import (
    LEAST_SEEDS,
    final_accuracy,
    half_width,
    seed_mean,
)
from reports.styling.number_formats import half_interval
from reports.text.number_text import SPACE, is_known, milliseconds, percent

MORE_TIME = 0.01  # relative; less counts as equally long
MORE_ACCURACY = 0.005  # half a point
CLOSE_ACCURACY = 0.02
ABOUT_HALF = 0.1  # of the bits, to either side
OF_A_SCHEME = ("learning.method.", "allocation.")  # keys in which the paper's schemes differ
ROUNDING = 1e-9  # relative; sums of the same numbers in another order differ by as much
AS_REPORTED, DIFFERS, UNDECIDED = "as reported", "differs", "not decided"
SIDE_BY_SIDE = "side by side"


@dataclass(frozen=True)
class TestedClaim:
    """One statement of Liu et al. and the outcome of its test.

    verdict: AS_REPORTED, DIFFERS, UNDECIDED; or SIDE_BY_SIDE, where nothing could be tested.
    """

    verdict: str
    text: str


def compare_with_liu(schemes: list[Scheme]) -> list[TestedClaim]:
    """The statements whose two schemes the scenario names, on the same scenario and threshold."""
    claims = []
    present = [role for role in liu.LATENCY_MS if _of(schemes, role)]
    for one, other in pairwise(present):
        stated = liu.LATENCY_MS[one], liu.LATENCY_MS[other]
        claims += [_latency_claim(a, b, stated) for a, b in _pairs(schemes, one, other)]
    for one, other in liu.HIGHER_ACCURACY:
        claims += [
            _accuracy_claim(a, b, "more accurate than", (MORE_ACCURACY, math.inf))
            for a, b in _pairs(schemes, one, other)
            if _evaluated(a, b)
        ]
    for a, b in _pairs(schemes, liu.PROPOSED, liu.PERSONAL):
        if _evaluated(a, b):
            bounds = -CLOSE_ACCURACY, CLOSE_ACCURACY
            claims.append(_accuracy_claim(a, b, "as accurate, within 2 points, as", bounds))
        claims.append(_bits_claim(a, b))
    return claims


def verdict_over_seeds(values: np.ndarray, low: float, high: float) -> str:
    """Whether a quantity lies between two bounds, by its 95 % interval (Student t) over seeds.

    Args:
        values: one per seed [n].
        low: lower bound of what is stated.
        high: upper bound.

    Returns:
        AS_REPORTED: the whole interval lies between them; DIFFERS: none of it; UNDECIDED: some.
    """
    mean, half = float(values.mean()), float(half_width(values))
    if low < mean - half and mean + half < high:
        return AS_REPORTED
    return DIFFERS if mean + half < low or mean - half > high else UNDECIDED


def _of(schemes: list[Scheme], role: str) -> list[Scheme]:
    return [scheme for scheme in schemes if scheme.role == role]


def _pairs(schemes: list[Scheme], one: str, other: str) -> Iterator[tuple[Scheme, Scheme]]:
    for a in _of(schemes, one):
        for b in _of(schemes, other):
            if _same_point(a, b):
                yield a, b


def _same_point(a: Scheme, b: Scheme) -> bool:
    """Have they one scenario, and differ in method and allocator only?"""
    keys = {key for key in a.values.keys() | b.values.keys() if not key.startswith(OF_A_SCHEME)}
    return a.first.summary["scenario"] == b.first.summary["scenario"] and all(
        a.values.get(key) == b.values.get(key) for key in keys
    )


def _evaluated(a: Scheme, b: Scheme) -> bool:
    return is_known(final_accuracy(a), final_accuracy(b))


def _of_common_seeds(
    a: Scheme, b: Scheme, value: Callable[[FinishedRun], float]
) -> tuple[np.ndarray, np.ndarray]:
    """The values of both at the seeds that both have, in the same order."""
    ours, theirs = ({run.seed: value(run) for run in scheme.runs} for scheme in (a, b))
    seeds = [seed for seed in ours if seed in theirs]
    return np.array([ours[seed] for seed in seeds]), np.array([theirs[seed] for seed in seeds])


def _tested(
    a: Scheme,
    b: Scheme,
    values: np.ndarray,
    bounds: tuple[float, float],
    unit: str,
    needs_data: bool = False,
) -> tuple[str, str]:
    """The verdict, and the words about what it rests on.

    Args:
        a, b: the schemes.
        values: what is stated of them, one per common seed, as a share.
        bounds: between which the statement puts the values.
        unit: of the values in percent.
        needs_data: does it hold for the paper's data only, and not for any of the same shape?
    """
    for scheme in (a, b):
        model, data = (scheme.values.get(f"learning.{key}", "none") for key in ("model", "dataset"))
        if model != liu.MODEL or (data not in liu.DATA and (needs_data or data != "none")):
            return SIDE_BY_SIDE, f"no verdict: the paper has no {model} on {data}"
    seeds = counted(len(values), "common seed")
    if len(values) < LEAST_SEEDS:
        return SIDE_BY_SIDE, f"no verdict over {seeds}: three are needed"
    mean, half = values.mean() * 100, float(half_width(values)) * 100
    verdict = verdict_over_seeds(values, *bounds)
    if half <= ROUNDING * 100:
        return verdict, f"{mean:+.2f}{SPACE}{unit} with each of {seeds}"
    return verdict, f"{mean:+.2f} ± {half_interval(half, 2)}{SPACE}{unit} over {seeds}"


def _latency_claim(a: Scheme, b: Scheme, stated_ms: tuple[float, float]) -> TestedClaim:
    here, there = _of_common_seeds(a, b, LATENCY.of)
    change = here / there - 1
    change[np.abs(change) < ROUNDING] = 0.0
    verdict, test = _tested(a, b, change, (-math.inf, -MORE_TIME), "%")
    rho = [seed_mean(scheme, rho_mean) for scheme in (a, b)]
    return TestedClaim(
        verdict,
        f"Stated: {a.label} takes less time per round than {b.label} ({stated_ms[0]:g} against "
        f"{stated_ms[1]:g}{SPACE}ms, Table I). Here: {milliseconds(mean_latency_s(a))} against "
        f"{milliseconds(mean_latency_s(b))}, {test}; mean pruning ratios {rho[0]:.3f} and "
        f"{rho[1]:.3f}.",
    )


def _accuracy_claim(a: Scheme, b: Scheme, stated: str, bounds: tuple[float, float]) -> TestedClaim:
    ours, theirs = _of_common_seeds(a, b, ACCURACY.of)
    verdict, test = _tested(a, b, ours - theirs, bounds, "points", needs_data=True)
    return TestedClaim(
        verdict,
        f"Stated: {a.label} ends {stated} {b.label} (Fig. 5). Here: {percent(final_accuracy(a))} "
        f"against {percent(final_accuracy(b))}, {test}.",
    )


def _bits_claim(a: Scheme, b: Scheme) -> TestedClaim:
    ours, theirs = _of_common_seeds(a, b, lambda run: total(run, "bits_up") / len(run.rounds))
    share = np.divide(ours, theirs, out=np.full_like(ours, math.nan), where=theirs > 0)
    bounds = liu.BITS_SHARE - ABOUT_HALF, liu.BITS_SHARE + ABOUT_HALF
    verdict, test = _tested(a, b, share, bounds, "%")
    each = [seed_mean(s, lambda run: total(run, "bits_up") / len(run.rounds)) for s in (a, b)]
    return TestedClaim(
        verdict,
        f"Stated: {a.label} sends about half of the uplink bits of {b.label} (Fig. 5). Here: "
        f"{each[0] / 1e6:.4g} against {each[1] / 1e6:.4g} Mbit per round, {test}.",
    )
