"""Numbers of a run or a scheme, read from its event log. Times in s, payloads in bit, energy in J, shares in [0, 1]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reports.run_data.load_runs import Run
from reports.run_data.schemes import Scheme

if TYPE_CHECKING:
    import pandas as pd

SLACK = 2e-6  # relative; the engine itself lets a deadline round end at T_th (1 + 1e-6)
PHASES_FIRST, PHASES_LAST = ("download",), ("upload", "idle")


@dataclass(frozen=True)
class Reached:
    """What a run had spent when it first reached a target accuracy: the round that was evaluated, and sums up to it."""

    round: int
    time_s: float
    bits: float
    energy_j: float


def reached(run: Run, target: float) -> Reached | None:
    """First evaluated round with accuracy >= target; None where no round has it. bits is up plus down."""
    table = run.rounds
    hits = np.flatnonzero(table["accuracy"].to_numpy() >= target)
    if not len(hits):
        return None
    upto = slice(0, int(hits[0]) + 1)
    row = table.iloc[int(hits[0])]
    bits = table["bits_up"].iloc[upto].sum() + table["bits_down"].iloc[upto].sum()
    return Reached(
        int(row["round"]),
        float(row["time_s"]),
        float(bits),
        float(table["energy_j"].iloc[upto].sum()),
    )


def evaluated(run: Run, column: str = "accuracy") -> pd.DataFrame:
    """The rounds in which the column was measured."""
    return run.rounds[run.rounds[column].notna()]


def final(run: Run, column: str) -> float:
    """The column in the last round with an accuracy; nan where none was evaluated."""
    rows = evaluated(run)
    return float(rows[column].iloc[-1]) if len(rows) else math.nan


def latencies_s(scheme: Scheme) -> np.ndarray:
    """Latency of every round of every seed [rounds x seeds], s."""
    return np.concatenate([run.rounds["latency_s"].to_numpy(dtype=float) for run in scheme.runs])


def over_runs(scheme: Scheme, value) -> float:
    """Mean of ``value(run)`` over the seeds, nan where a seed has none."""
    return float(np.mean([value(run) for run in scheme.runs]))


@dataclass(frozen=True)
class Estimate:
    """A mean over n seeds with half of its 95 % interval (Student's t); half is nan with one seed."""

    mean: float
    half: float
    n: int


def estimate(scheme: Scheme, value) -> Estimate:
    """``value(run)`` over the seeds that have one; nan, nan, 0 where none has."""
    known = np.array([x for run in scheme.runs if not math.isnan(x := float(value(run)))])
    if not len(known):
        return Estimate(math.nan, math.nan, 0)
    half = float(half_width(known)) if len(known) > 1 else math.nan
    return Estimate(float(known.mean()), half, len(known))


def half_width(values: np.ndarray, axis: int = 0) -> np.ndarray | float:
    """Half of the 95 % confidence interval of the mean over n >= 2 seeds (Student's t)."""
    from scipy.special import stdtrit

    n = values.shape[axis]
    return stdtrit(n - 1, 0.975) * values.std(axis=axis, ddof=1) / math.sqrt(n)


def total(run: Run, column: str) -> float:
    return float(run.rounds[column].sum())


def late_share(run: Run, column: str = "late") -> float:
    """Late (or infeasible) device-rounds over all selected ones."""
    selected = total(run, "selected")
    return total(run, column) / selected if selected else math.nan


def rho_mean(run: Run) -> float:
    """Mean pruning ratio over the device-rounds that took part."""
    table = run.device_rounds
    return float(table.loc[table["status"] != "infeasible", "rho"].mean())


def certificate_worst(run: Run) -> float:
    """Worst KKT residual of the run's allocations, relative; nan where no solver certified one."""
    return float(run.rounds["solver_residual"].max())


@dataclass(frozen=True)
class Gap:
    """How the latencies of a scheme lie to its threshold T_th. Times in s, shares of rounds in [0, 1]."""

    threshold_s: float
    mean_s: float
    least_s: float
    most_s: float
    above: float
    below: float


def gap(scheme: Scheme) -> Gap | None:
    """None where the scenario sets no threshold. Within 2e-6 (relative) counts as on the threshold."""
    limit = scheme.threshold_s
    if limit is None:
        return None
    value = latencies_s(scheme)
    above, below = (value > limit * (1 + SLACK)).mean(), (value < limit * (1 - SLACK)).mean()
    return Gap(
        limit,
        float(value.mean()),
        float(value.min()),
        float(value.max()),
        float(above),
        float(below),
    )


def per_device(scheme: Scheme, column: str) -> pd.DataFrame:
    """Mean, min, max of a device_rounds column over the rounds a device took part in; one row per device."""
    import pandas as pd

    tables = [run.device_rounds for run in scheme.runs]
    table = pd.concat(
        [each.loc[each["status"] != "infeasible", ["device", column]] for each in tables]
    )
    return table.groupby("device")[column].agg(["mean", "min", "max"])


def energy_by_phase(run: Run) -> dict[str, float]:
    """Joules per phase: download, the compute stages in order of appearance, upload, idle."""
    sums = run.spans.groupby("phase", sort=False)["energy_j"].sum()
    return {phase: float(sums[phase]) for phase in ordered_phases(list(sums.index))}


def ordered_phases(phases: list[str]) -> list[str]:
    """Download first, upload and idle last, compute stages between them as they appear."""
    middle = [phase for phase in phases if phase not in PHASES_FIRST + PHASES_LAST]
    return (
        [p for p in PHASES_FIRST if p in phases] + middle + [p for p in PHASES_LAST if p in phases]
    )


@dataclass(frozen=True)
class Curve:
    """A measure over the evaluated rounds [n]: mean over seeds, and a band around it (None: no band).

    time_s, bits (up and down), energy_j: what had passed by the end of the round, mean over seeds.
    """

    round: np.ndarray
    time_s: np.ndarray
    bits: np.ndarray
    energy_j: np.ndarray
    mean: np.ndarray
    spread: np.ndarray | None
    over: str  # what the spread is over: seeds (95 % interval), devices (standard deviation), or nothing


def curve(scheme: Scheme, column: str) -> Curve | None:
    """Mean over seeds at equal rounds with its 95 % interval; a single seed has accuracy_std as its band."""
    tables = [evaluated(run, column).set_index("round") for run in scheme.runs]
    common = sorted(set.intersection(*[set(table.index) for table in tables]))
    if not common:
        return None
    values = np.stack([table.loc[common, column].to_numpy(dtype=float) for table in tables])
    times = np.mean([table.loc[common, "time_s"].to_numpy(dtype=float) for table in tables], axis=0)
    bits, joules = (
        np.mean([so_far(run, columns)[common].to_numpy(dtype=float) for run in scheme.runs], axis=0)
        for columns in (["bits_up", "bits_down"], ["energy_j"])
    )
    if len(tables) > 1:
        spread, over = half_width(values), "seeds"
    elif f"{column}_std" in tables[0]:
        spread, over = tables[0].loc[common, f"{column}_std"].to_numpy(dtype=float), "devices"
    else:
        spread, over = None, ""
    return Curve(np.asarray(common), times, bits, joules, values.mean(axis=0), spread, over)


def so_far(run: Run, columns: list[str]) -> pd.Series:
    """Sum of some columns of rounds up to and with each round, by round."""
    return run.rounds.set_index("round")[columns].sum(axis=1).cumsum()


def middle_round(schemes: list[Scheme]) -> int:
    """A round in the middle of the shortest run, one that every scheme has."""
    rounds = min((scheme.first.rounds["round"].to_numpy() for scheme in schemes), key=len)
    return int(rounds[len(rounds) // 2])
