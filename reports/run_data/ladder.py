"""Schemes on the rungs of `network.fidelity`, and whether their order is the same on all."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np

from edgesim.results.finished_run import FinishedRun
from edgesim.scenario.radio.fidelity import RUNGS
from reports.run_data.scheme_grouping import Scheme
from reports.run_data.statistics.metrics import ENERGY, LATENCY, RHO
from reports.run_data.statistics.run_totals import evaluated, rho_mean, share_of_selected
from reports.run_data.statistics.seed_intervals import LEAST_SEEDS, half_width

KEY = "network.fidelity"
EQUAL = 1e-9  # relative; less is rounding, no order
ACCURACY_THEN = "accuracy at that time"

Ladder = dict[str, dict[str, Scheme]]  # rung, from the simplest on -> name -> scheme


class Quantity(NamedTuple):
    """What schemes are compared by: its name, the value of a run, and whether less is better."""

    name: str
    of: Callable[[FinishedRun], float]
    less: bool = True


def ladder_of(schemes: list[Scheme]) -> Ladder:
    """The schemes by rung and name; empty where fewer than two rungs were played."""
    on = [scheme for scheme in schemes if scheme.values.get(KEY) in RUNGS]
    found: Ladder = {rung: {} for rung in RUNGS if any(s.values[KEY] == rung for s in on)}
    for scheme in on:
        name = str(scheme.first.summary["scheme"])
        name = f"{name} ({scheme.point})" if scheme.point else name
        rung = found[scheme.values[KEY]]
        rung[scheme.label if name in rung else name] = scheme
    return found if len(found) > 1 else {}


def common_time_s(schemes: list[Scheme]) -> float:
    """The end of the shortest run: until then all of them have learnt."""
    return min(float(run.rounds["time_s"].iloc[-1]) for s in schemes for run in s.runs)


def accuracy_at(run: FinishedRun, time_s: float) -> float:
    """The last accuracy that was measured by then; nan where none was."""
    rows = evaluated(run)
    rows = rows[rows["time_s"] <= time_s * (1 + EQUAL)]
    return float(rows["accuracy"].iloc[-1]) if len(rows) else math.nan


def quantities(time_s: float) -> tuple[Quantity, ...]:
    """By what the schemes of a rung are compared, accuracy at a common time."""
    return (
        Quantity("latency", LATENCY.of),
        Quantity("late share", lambda run: share_of_selected(run, "late")),
        Quantity(f"pruning ratio {RHO}", rho_mean),
        Quantity("energy", ENERGY.of),
        Quantity(ACCURACY_THEN, lambda run: accuracy_at(run, time_s), less=False),
    )


def before(a: Scheme, b: Scheme, by: Quantity) -> int:
    """1: a is better than b; -1: it is worse; 0: they are equal, or the seeds do not decide it.

    With `LEAST_SEEDS` common seeds or more the 95 % interval of the paired difference (Student t)
    has to leave out zero; with fewer its mean decides.
    """
    ours, theirs = ({run.seed: by.of(run) for run in scheme.runs} for scheme in (a, b))
    pairs = np.array([(ours[seed], theirs[seed]) for seed in ours if seed in theirs]).reshape(-1, 2)
    pairs = pairs[~np.isnan(pairs).any(axis=1)]
    if not len(pairs):
        return 0
    gap = pairs[:, 1] - pairs[:, 0]
    mean, size = float(gap.mean()), float(np.abs(pairs).max())
    half = float(half_width(gap)) if len(gap) >= LEAST_SEEDS else 0.0
    if abs(mean) <= max(half, EQUAL * size):
        return 0
    return 1 if (mean > 0) == by.less else -1


def reversed_pairs(ladder: Ladder, rung: str, by: dict[str, Quantity]) -> list[str]:
    """Pairs that are decided one way on the first rung and the other way on this one.

    Args:
        ladder: of `ladder_of`.
        rung: the one to compare.
        by: rung -> quantity.

    Returns:
        "A before B" in the order of this rung.
    """
    first = next(iter(ladder))
    names = [name for name in ladder[first] if name in ladder[rung]]
    turned = []
    for a, b in combinations(names, 2):
        was = before(ladder[first][a], ladder[first][b], by[first])
        now = before(ladder[rung][a], ladder[rung][b], by[rung])
        if was * now == -1:
            turned.append(f"{a} before {b}" if now > 0 else f"{b} before {a}")
    return turned
