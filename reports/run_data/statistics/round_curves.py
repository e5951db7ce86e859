"""Curves of a scheme over its evaluated rounds: mean and interval, and what was spent by then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from edgesim.records.costs_over_time import UNCLOSED, spent_by_versions
from edgesim.records.simulated_times import multiples_passed
from edgesim.results.finished_run import FinishedRun
from edgesim.scenario.units import parse
from reports.run_data.scheme_grouping import Scheme
from reports.run_data.statistics.seed_intervals import LEAST_SEEDS, half_width

OF_ROUNDS = ("latency_s",)  # columns that each round has, evaluated or not


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
    def can_be_drawn(self) -> bool:
        """Is any mean finite? Losses of training that diverged are inf."""
        return bool(np.isfinite(self.mean).any())

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


def _moments(run: FinishedRun, column: str) -> np.ndarray:
    """By which values of several seeds belong together, a number for each round.

    The round itself, or of evaluations where `evaluate.every` is a time, how many of it have
    passed.
    """
    every = (run.scenario.get("evaluate") or {}).get("every")
    # of rounds that end after a multiple, long ones are too many: theirs is no mean latency
    if isinstance(every, str) and column not in OF_ROUNDS:
        every_s = parse(every, "s")
        return np.array([multiples_passed(time_s, every_s) for time_s in run.rounds["time_s"]])
    return run.rounds["round"].to_numpy()


def any_curve(schemes: Sequence[Scheme], column: str) -> bool:
    """Has any of them a curve of this column that can be drawn?"""
    curves = (round_curve(scheme, column) for scheme in schemes)
    return any(curve is not None and curve.can_be_drawn for curve in curves)


def round_curve(scheme: Scheme, column: str) -> RoundCurve | None:
    """Mean over seeds at the rounds that all evaluated, with its interval; None without any.

    Of `OF_ROUNDS` that is at the rounds that all played. Where they are evaluated after times,
    these are other rounds with every seed: then it is the mean over what they evaluated first
    after a time that all have evaluated after.
    """
    tables = [{name: run.rounds[name].to_numpy() for name in run.rounds} for run in scheme.runs]
    if not all(column in table for table in tables):
        return None
    at = [np.flatnonzero(~np.isnan(table[column])) for table in tables]
    if len(at) > 1:
        found = [
            np.unique(_moments(run, column)[each], return_index=True)
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
