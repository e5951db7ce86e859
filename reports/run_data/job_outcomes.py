"""What became of the devices' work: used updates, wasted bits and joules, shares of the devices.

A row of device_rounds is a job. Clocks that number their jobs say which version an update went
into; with the others late uploads are used unless the deadline interrupted them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgesim.results.finished_run import FinishedRun
from reports.run_data.scheme_grouping import Scheme

FRESH, STALE, HELD, LATE, DISCARDED = "fresh", "stale", "held", "late", "discarded"
KINDS = (FRESH, STALE, HELD, LATE, "failed", "left", "cancelled", DISCARDED, "unfinished")
USED = (FRESH, STALE)


def numbers_jobs(run: FinishedRun) -> bool:
    """Do the tables say of each job from which version it started?"""
    return "job" in run.device_rounds


def overlaps(run: FinishedRun) -> bool:
    """Was any device at work while a version was made?"""
    return numbers_jobs(run) and bool((run.rounds["in_flight"] > 0).any())


def any_overlaps(schemes: Sequence[Scheme]) -> bool:
    """Has any of the schemes a clock whose jobs overlap?"""
    return any(overlaps(scheme.first) for scheme in schemes)


def kinds(run: FinishedRun) -> np.ndarray:
    """The kind of every row of device_rounds, one of `KINDS` or "infeasible" [rows].

    fresh and stale are used; held: an upload that still waited in the buffer at the end.
    """
    table = run.device_rounds
    kind = table["status"].to_numpy(dtype=object).copy()
    arrived = kind == "arrived"
    if numbers_jobs(run):
        used = table["version_out"].to_numpy() >= 0
        kind[arrived & ~used] = HELD
        kind[used] = np.where(table["staleness"].to_numpy()[used] > 0, STALE, FRESH)
    else:
        # a late upload is used like any other, unless the deadline cut it
        came = ~np.isnan(table["finish_s"].to_numpy(dtype=float)) if "finish_s" in table else True
        kind[arrived | ((kind == LATE) & came)] = FRESH
    return kind


def used_updates(run: FinishedRun) -> np.ndarray:
    """How many updates of each device the server used, int [K]."""
    used = np.isin(kinds(run), USED)
    devices = run.device_rounds["device"].to_numpy()[used]
    return np.bincount(devices, minlength=int(run.summary["devices"]))


def jain_index(values: np.ndarray) -> float:
    """Jain's fairness index of shares [K], (sum x)^2 / (K sum x^2); nan where all are zero.

    1: all are equal; 1 / K: one has everything. R. Jain, D. Chiu, W. Hawe, "A quantitative measure
    of fairness and discrimination for resource allocation in shared computer systems", DEC-TR-301,
    1984.
    """
    squares = float(np.square(values, dtype=float).sum())
    return float(values.sum()) ** 2 / (len(values) * squares) if squares else float("nan")


def jain_of(run: FinishedRun) -> float:
    """Jain's index of the used updates over all devices."""
    return jain_index(used_updates(run))


def wasted(run: FinishedRun, column: str) -> float:
    """Joules (``energy_j``) or bits (``bits_up``, ``bits_down``) of jobs that were never used.

    Joules without those of idling.
    """
    table = run.device_rounds
    lost = ~np.isin(kinds(run), (*USED, "infeasible"))
    if column != "energy_j" or numbers_jobs(run):
        return float(table.loc[lost, column].sum()) if column in table else float("nan")
    spans = run.spans[run.spans["phase"] != "idle"]
    # below a cloud a device has a job in each round of its edge
    keys = [name for name in ("round", "device", "edge_round") if name in table]
    of_jobs = spans.groupby(keys)["energy_j"].sum()
    found = list(table.loc[lost, keys].itertuples(index=False, name=None))
    return float(of_jobs.reindex(found).sum()) if found else 0.0


def any_wasted(schemes: Sequence[Scheme]) -> bool:
    """Is there a job in any of the schemes that was asked for and never used?"""
    every = (*USED, "infeasible")
    return any((~np.isin(kinds(run), every)).any() for scheme in schemes for run in scheme.runs)
