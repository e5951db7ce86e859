"""Statistics of runs and schemes. Times in s, payloads in bit, energy in J, shares in [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from edgesim.records.costs_over_time import UNCLOSED, spent_by_versions
from edgesim.records.summary import to_target
from edgesim.results.finished_run import FinishedRun
from edgesim.scenario.units import parse
from reports.run_data.job_outcomes import overlaps
from reports.run_data.scheme_grouping import Scheme

if TYPE_CHECKING:
    import pandas as pd

SLACK = 2e-6  # relative; the engine itself lets a deadline round end at T_th (1 + 1e-6)
ROUNDING = 1e-12  # relative; less of an interval is what sums leave of equal seeds
LEAST_SEEDS = 3  # of an interval or a test
PHASES_FIRST, PHASES_LAST = ("download",), ("upload", "handover", "idle", "off")


@dataclass(frozen=True)
class CostToTarget:
    """What had been spent by the end of the round that first reached a target accuracy.

    rounds: played, that one included.     bits: up and down, of all devices, also in flight.
    """

    rounds: int
    time_s: float
    bits: float
    energy_j: float


def cost_to_target(run: FinishedRun, target: float) -> CostToTarget | None:
    """First evaluated round with the target accuracy or more; None where no round has it."""
    spent = to_target(run.rounds, target, run.spans)
    if spent is None:
        return None
    return CostToTarget(spent["round"] + 1, spent["time_s"], spent["bits"], spent["energy_j"])


def evaluated(run: FinishedRun) -> pd.DataFrame:
    """The rounds with an accuracy."""
    return run.rounds[run.rounds["accuracy"].notna()]


def final(run: FinishedRun, column: str) -> float:
    """The column in the last round that has it; nan where none has."""
    if column not in run.rounds:  # of a metric that only other runs have
        return math.nan
    known = run.rounds[column].dropna()
    return float(known.iloc[-1]) if len(known) else math.nan


def total(run: FinishedRun, column: str) -> float:
    """Sum of a column of rounds over the run."""
    return float(run.rounds[column].sum())


def share_of_selected(run: FinishedRun, column: str) -> float:
    """Late or infeasible device-rounds over all selected ones; nan where none was selected."""
    selected = total(run, "selected")
    return total(run, column) / selected if selected else math.nan


def rho_mean(run: FinishedRun) -> float:
    """Mean pruning ratio over the device-rounds that took part."""
    table = run.device_rounds
    return float(table.loc[table["status"] != "infeasible", "rho"].mean())


def worst_residual(run: FinishedRun) -> float:
    """Worst relative KKT residual of the run's allocations; nan where no solver certified one."""
    return float(run.rounds["solver_residual"].max())


def latencies_s(scheme: Scheme) -> np.ndarray:
    """Latency of every round of every seed [rounds x seeds], s."""
    return np.concatenate([run.rounds["latency_s"].to_numpy(dtype=float) for run in scheme.runs])


def mean_latency_s(scheme: Scheme) -> float:
    """Mean over the seeds of their mean latencies, s: each counts once, however many rounds."""
    return seed_mean(scheme, lambda run: float(run.rounds["latency_s"].mean()))


def seed_mean(scheme: Scheme, value: Callable[[FinishedRun], float]) -> float:
    """Mean of ``value(run)`` over the seeds, nan where a seed has none."""
    return float(np.mean([value(run) for run in scheme.runs]))


def final_accuracy(scheme: Scheme) -> float:
    """Final accuracy, mean over seeds; nan where it was not evaluated."""
    return seed_mean(scheme, lambda run: final(run, "accuracy"))


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with half of its 95 % interval, nan below `LEAST_SEEDS`.

    values: of each seed that has one [n].
    """

    mean: float
    half: float
    values: tuple[float, ...]

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def dots(self) -> tuple[float, ...]:
        """What a figure shows in place of an interval: the values of two seeds."""
        return self.values if 1 < self.n < LEAST_SEEDS else ()


def can_be_ranked(schemes: Sequence[Scheme]) -> bool:
    """Has every scheme the seeds of an interval, and was tuned? Else chance may decide."""
    enough = min(len(scheme.runs) for scheme in schemes) >= LEAST_SEEDS
    return enough and not any(scheme.untuned for scheme in schemes)


def estimate(scheme: Scheme, value: Callable[[FinishedRun], float]) -> Estimate:
    """``value(run)`` over the seeds that have one; nan, nan, () where none has."""
    known = np.array([x for run in scheme.runs if not math.isnan(x := float(value(run)))])
    mean = float(known.mean()) if len(known) else math.nan
    half = float(half_width(known)) if len(known) >= LEAST_SEEDS else math.nan
    return Estimate(mean, half, tuple(known.tolist()))


def overlap(mean: float, half: float, other_mean: float, other_half: float) -> bool:
    """Do two 95 % intervals overlap, of equal means also without width? Not if one is nan."""
    both = half + other_half
    # nan stays nan, as the first of the two
    return abs(mean - other_mean) <= max(both, ROUNDING * abs(mean))


def are_told_apart(estimates: Sequence[Estimate]) -> bool:
    """May these be put in an order: does no interval overlap that of the next one?"""
    ordered = sorted(estimates, key=lambda each: each.mean)
    return not any(
        overlap(one.mean, one.half, other.mean, other.half) for one, other in pairwise(ordered)
    )


def target_estimate(scheme: Scheme, target: float, name: str) -> Estimate:
    """rounds, time_s, bits or energy_j to a target accuracy, over the seeds that reached it."""

    def cost(run: FinishedRun) -> float:
        reached = cost_to_target(run, target)
        return math.nan if reached is None else float(getattr(reached, name))

    return estimate(scheme, cost)


def half_width(values: np.ndarray) -> np.ndarray:
    """Half of the 95 % confidence interval of the mean over seeds (Student's t).

    Args:
        values: [n, ...], seeds along the first axis, n >= `LEAST_SEEDS`: with two, the interval
            of accuracies that differ by a point is 13 points wide and says nothing.

    Returns:
        t(n - 1, 0.975) s / sqrt(n) [...]; nan where a value is not finite.
    """
    from scipy.special import stdtrit

    n = len(values)
    with np.errstate(invalid="ignore"):  # inf - inf, of training that diverged
        spread = values.std(axis=0, ddof=1)
    return np.asarray(stdtrit(n - 1, 0.975) * spread / math.sqrt(n))


@dataclass(frozen=True)
class ThresholdGap:
    """How the latencies of a scheme lie to its threshold T_th.

    mean_s: of `mean_latency_s`.     least_s, most_s: over its rounds.
    above, below: shares of its rounds.
    """

    threshold_s: float
    mean_s: float
    least_s: float
    most_s: float
    above: float
    below: float


def threshold_gap(scheme: Scheme) -> ThresholdGap | None:
    """None without one for rounds: where jobs overlap it is for each job, from its dispatch on.

    Within 2e-6 (relative) counts as on the threshold.
    """
    limit = scheme.threshold_s
    if limit is None or overlaps(scheme.first):
        return None
    value = latencies_s(scheme)
    above, below = (value > limit * (1 + SLACK)).mean(), (value < limit * (1 - SLACK)).mean()
    spread = mean_latency_s(scheme), float(value.min()), float(value.max())
    return ThresholdGap(limit, *spread, float(above), float(below))


def thresholds_s(schemes: Sequence[Scheme]) -> list[float]:
    """Those that rounds of the schemes have, each once, s; see `threshold_gap`."""
    gaps = [gap for scheme in schemes if (gap := threshold_gap(scheme)) is not None]
    return sorted({gap.threshold_s for gap in gaps})


def per_device(scheme: Scheme, column: str) -> pd.DataFrame:
    """Mean, min and max [K, 3] of a column over the rounds in which a device took part."""
    import pandas as pd

    tables = [run.device_rounds for run in scheme.runs]
    parts = [each.loc[each["status"] != "infeasible", ["device", column]] for each in tables]
    return pd.concat(parts).groupby("device")[column].agg(["mean", "min", "max"])


def ordered_phases(phases: list[str]) -> list[str]:
    """Each phase once: download first, upload and idle last, computing phases as they appear."""
    names = dict.fromkeys(phases)
    middle = [phase for phase in names if phase not in PHASES_FIRST + PHASES_LAST]
    first, last = ([p for p in ends if p in names] for ends in (PHASES_FIRST, PHASES_LAST))
    return first + middle + last


@dataclass(frozen=True)
class RoundCurve:
    """A measure over the evaluated rounds [n].

    played: rounds of each seed by then, the evaluated one included [seeds, n].
    time_s: the end of each round [n], mean over seeds.
    values: of each seed [seeds, n].     mean: over the seeds.
    half: of its 95 % interval; None below `LEAST_SEEDS`.
    devices_std: standard deviation over devices, mean over seeds; None where the run has none.
    runs: one a seed.
    """

    played: np.ndarray
    time_s: np.ndarray
    values: np.ndarray
    mean: np.ndarray
    half: np.ndarray | None
    devices_std: np.ndarray | None
    runs: tuple[FinishedRun, ...]

    @property
    def rounds(self) -> np.ndarray:
        """Played by then [n]: of all seeds, or where they differ their mean."""
        alike = (self.played == self.played[0]).all()
        return self.played[0] if alike else self.played.mean(axis=0)

    @property
    def bits(self) -> np.ndarray:
        """Up and down, of all devices by the end of each round [n], mean over seeds."""
        return self._spent[0]

    @property
    def energy_j(self) -> np.ndarray:
        """Of all devices by the end of each round [n], mean over seeds."""
        return self._spent[1]

    @cached_property
    def _spent(self) -> np.ndarray:
        of_seeds = zip(self.runs, self.played, strict=True)
        return np.mean([spent_by(run, played - 1) for run, played in of_seeds], axis=0)


def spent_by(run: FinishedRun, rounds: np.ndarray) -> np.ndarray:
    """Bits (up and down) and joules of all devices by the end of some rounds [n], float [2, n].

    Jobs that go on while a version is made count by their time, as in `cost_to_target`.
    """
    table = run.rounds[run.rounds["round"] <= rounds[-1]]
    bits = (table["bits_up"] + table["bits_down"]).to_numpy(float)
    spent = np.cumsum([bits, table["energy_j"].to_numpy(float)], axis=1)
    kept = np.isin(table["round"], rounds)
    unclosed = table[[name for name in UNCLOSED if name in table]].to_numpy().any(axis=1)
    if (unclosed & kept).any():
        g, time_s = (table[name].to_numpy() for name in ("round", "time_s"))
        spent = np.where(unclosed, spent_by_versions(run.spans, g, time_s), spent)
    return spent[:, kept]


def _moments(run: FinishedRun) -> np.ndarray:
    """By which evaluations of several seeds belong together, a number for each round.

    The round itself, or where `evaluate.every` is a time, how many of it have passed.
    """
    every = (run.scenario.get("evaluate") or {}).get("every")
    if isinstance(every, str):
        return np.floor(run.rounds["time_s"].to_numpy() / parse(every, "s"))
    return run.rounds["round"].to_numpy()


def round_curve(scheme: Scheme, column: str) -> RoundCurve | None:
    """Mean over seeds at the rounds that all evaluated, with its interval; None without any.

    Where they are evaluated after times, these are other rounds with every seed: then it is the
    mean over what they evaluated first after a time that all have evaluated after.
    """
    tables = [{name: run.rounds[name].to_numpy() for name in run.rounds} for run in scheme.runs]
    if not all(column in table for table in tables):
        return None
    at = [np.flatnonzero(~np.isnan(table[column])) for table in tables]
    if len(at) > 1:
        found = [
            np.unique(_moments(run)[each], return_index=True)
            for run, each in zip(scheme.runs, at, strict=True)
        ]
        common = reduce(np.intersect1d, [moments for moments, _ in found])
        at = [
            each[first[np.isin(moments, common)]]
            for each, (moments, first) in zip(at, found, strict=True)
        ]
    if not len(at[0]):
        return None

    def of_seeds(value: Callable[[dict[str, np.ndarray]], np.ndarray]) -> np.ndarray:
        return np.stack([value(table)[kept] for table, kept in zip(tables, at, strict=True)])

    values, spread = of_seeds(lambda table: table[column]), f"{column}_std"
    return RoundCurve(
        played=of_seeds(lambda table: table["round"]) + 1,  # files of a run count from 0
        time_s=of_seeds(lambda table: table["time_s"]).mean(axis=0),
        values=values,
        mean=values.mean(axis=0),
        half=half_width(values) if len(values) >= LEAST_SEEDS else None,
        devices_std=of_seeds(lambda table: table[spread]).mean(axis=0)
        if all(spread in table for table in tables)
        else None,
        runs=scheme.runs,
    )
