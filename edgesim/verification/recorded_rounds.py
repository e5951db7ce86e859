"""What the tables of a run say of its rounds, and the bounds that every allocation keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgesim.hierarchy.edge_cells import EdgeCell
from edgesim.verification.device_states import STATES

if TYPE_CHECKING:
    import pandas as pd

MAX_RESIDUAL = 1e-3  # relative; far above what a solver accepts of its own certificate


@dataclass(frozen=True)
class RecordedRound:
    """What the tables say of round g.

    Args:
        g: number of the round.
        start_s: simulated time of its plan, s.
        rows: of device_rounds, by device.
        residual: of the certificate.
        states: of devices with a state when the round begins; None: it is the first round, or there
            are none.
    """

    g: int
    start_s: float
    rows: pd.DataFrame
    residual: float
    states: pd.DataFrame | None = None


def recorded_rounds(tables: dict[str, pd.DataFrame]) -> list[RecordedRound]:
    """The rounds of a run, in order."""
    rounds, rows = tables["rounds"], tables["device_rounds"]
    start_s = np.array([0.0, *rounds["time_s"].tolist()[:-1]])
    # The server may have waited until a device was there, or had energy again.
    spans = tables["spans"]
    begun_s = spans[spans["phase"] == "download"].groupby("round")["start_s"].min()
    start_s[begun_s.index] = begun_s
    ends = np.searchsorted(rows["round"].to_numpy(), np.arange(len(rounds) + 1))
    states = dict(list(tables[STATES].groupby("round"))) if STATES in tables else {}
    return [
        RecordedRound(
            g,
            float(start_s[g]),
            rows.iloc[ends[g] : ends[g + 1]],
            float(residual),
            states.get(g - 1),
        )
        for g, residual in enumerate(rounds["solver_residual"].tolist())
    ]


def rounds_of_edge(
    edge: EdgeCell, local_rounds: int, tables: dict[str, pd.DataFrame]
) -> list[RecordedRound]:
    """The rounds of an edge, with its own numbers of rounds and devices."""
    rows, spans = tables["device_rounds"], tables["spans"]
    rows, spans = rows[rows["edge"] == edge.number], spans[spans["edge"] == edge.number]
    begun = spans[spans["phase"] != "idle"].groupby(["round", "edge_round"])["start_s"].min()
    place = {k: n for n, k in enumerate(edge.members.tolist())}
    return [
        RecordedRound(
            g * local_rounds + local,
            float(begun.get((g, local), 0.0)),
            own.assign(device=own["device"].map(place)).reset_index(drop=True),
            math.nan,
        )
        for (g, local), own in rows.groupby(["round", "edge_round"])
    ]


def jobs_overlap(rows: pd.DataFrame) -> bool:
    """Has a job gone on while a version was made, or begun later than another of its version?"""
    if "job" not in rows or "edge" in rows:  # the edges of a hierarchy make rounds
        return False
    crossed = (rows["version_in"] != rows["round"]).any()
    several = rows.groupby("round")["dispatched_s"].nunique() > 1
    return bool(crossed or several.any() or rows.duplicated(["round", "device"]).any())


def outside_bounds(rounds: list[RecordedRound]) -> str:
    """The first round whose shares sum to more than 1, or whose certificate is too weak."""
    for each in rounds:
        bands = [each.rows]
        if "edge" in each.rows:  # each round of each edge has its own
            bands = [rows for _, rows in each.rows.groupby(["edge", "edge_round"])]
        # The sector of a device that sent nothing is not known, nor the one that granted a share
        # where devices are handed over: `sector` is that of the last upload.
        by = "device" if "handovers" in each.rows else "sector"
        if "sector" in each.rows:
            bands = [rows for band in bands for place, rows in band.groupby(by) if place >= 0]
        total = max((math.fsum(rows["share"]) for rows in bands), default=0.0)
        if total > 1.0 + 1e-12:
            return f"round {each.g}: the shares sum to {total}"
        if each.residual > MAX_RESIDUAL:
            return f"round {each.g}: the residual of the certificate is {each.residual:g}"
    return ""
