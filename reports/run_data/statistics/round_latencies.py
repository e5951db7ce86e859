"""Latencies of a scheme's rounds, s, how they lie to the threshold, and the order of phases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reports.run_data.job_outcomes import overlaps
from reports.run_data.scheme_grouping import Scheme
from reports.run_data.statistics.seed_intervals import seed_mean

SLACK = 2e-6  # relative; the engine itself lets a deadline round end at T_th (1 + 1e-6)
PHASES_FIRST, PHASES_LAST = ("download",), ("upload", "handover", "idle", "off")


def latencies_s(scheme: Scheme) -> np.ndarray:
    """Latency of every round of every seed [rounds x seeds], s."""
    return np.concatenate([run.rounds["latency_s"].to_numpy(dtype=float) for run in scheme.runs])


def mean_latency_s(scheme: Scheme) -> float:
    """Mean over the seeds of their mean latencies, s: each counts once, however many rounds."""
    return seed_mean(scheme, lambda run: float(run.rounds["latency_s"].mean()))


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


def ordered_phases(phases: list[str]) -> list[str]:
    """Each phase once: download first, upload and idle last, computing phases as they appear."""
    names = dict.fromkeys(phases)
    middle = [phase for phase in names if phase not in PHASES_FIRST + PHASES_LAST]
    first, last = ([p for p in ends if p in names] for ends in (PHASES_FIRST, PHASES_LAST))
    return first + middle + last
