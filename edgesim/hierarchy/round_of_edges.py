"""The rows of a round of the cloud, from those of the rounds of its edges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from edgesim.hierarchy.edge_server import EdgeServer
from edgesim.hierarchy.make_hierarchy import Hierarchy
from edgesim.records.rows_from_spans import columns_of_jobs, round_block, total
from edgesim.records.run_tables.table_columns import Columns
from fl.contracts import RoundPlan, Scores

WAITING = -1  # edge_round of a device that waits for other edges


def round_of_edges(
    g: int,
    start_s: float,
    end_s: float,
    hierarchy: Hierarchy,
    servers: Sequence[EdgeServer],
    scores: Scores | None,
    jobs_before: int = 0,
) -> dict[str, Columns]:
    """A block of the log: table -> column -> array.

    Args:
        g: round of the cloud.
        start_s: simulated time of its start, s.
        end_s: simulated time of its end, s.
        hierarchy: the edges and the backhaul.
        servers: of the edges, after the round.
        scores: of the evaluation after the round, if there was one.
        jobs_before: that all edges have handed out before the round.
    """
    below = [server.rows() for server in servers]
    rows = _stacked(servers, [tables["device_rounds"] for tables, _ in below], g)
    rounds = [tables["rounds"] for tables, _ in below]
    spans = [_stacked(servers, [tables["spans"] for tables, _ in below], g)]
    spans.append(_stacked(servers, [waiting for _, waiting in below], g, WAITING))
    device_rounds = _sorted(rows, ("device", "edge_round"))
    all_spans = _sorted(_concatenated(spans), ("device", "start_s"))
    if "job" in device_rounds:
        _number_jobs(device_rounds, all_spans, jobs_before)
    transfers = _transfers(g, hierarchy, servers)
    plans = [tables["plans"] for tables, _ in below]
    taking_part = np.asarray(device_rounds["rho"])[device_rounds["status"] != "infeasible"]
    plan = RoundPlan(
        (),
        residual=_worst(_all("solver_residual", rounds)),
        pruning_per_hz=_only(_all("pruning_per_hz", rounds)),
        pruning_per_s=_only(_all("pruning_per_s", rounds)),
        budget_s=max(_all("budget_s", plans), default=math.inf),
        unsettled=max(
            _all("change", [tables["unsettled_plans"] for tables, _ in below]), default=0.0
        ),
    )
    about = sum(_all("arrived", rounds)), taking_part, scores, math.inf
    block = round_block(g, start_s, end_s, plan, all_spans, device_rounds, *about)
    block["rounds"] |= _backhaul_columns(transfers)
    if "job" in device_rounds:
        waiting = {name: sum(_all(name, rounds)) for name in ("dispatched", "held", "in_flight")}
        block["rounds"] |= columns_of_jobs(device_rounds, waiting)
    block["plans"]["stretched"] = [int(any(_all("stretched", plans)))]
    forecasts = _stacked(servers, [tables["upload_forecasts"] for tables, _ in below], g)
    block["upload_forecasts"] = _sorted(forecasts, ("device", "edge_round"))
    return block | {"backhaul": transfers}


def _stacked(
    servers: Sequence[EdgeServer], tables: Sequence[Columns], g: int, edge_round: int | None = None
) -> Columns:
    """Rows of all edges, with the devices' own numbers and the columns of a hierarchy."""
    parts: list[Columns] = []
    for server, table in zip(servers, tables, strict=True):
        part: Columns = {name: np.asarray(values) for name, values in table.items()}
        count = len(part["round"])
        local = np.asarray(part["round"], dtype=int) - g * server.local_rounds
        part["edge"] = np.full(count, server.edge.number)
        part["edge_round"] = local if edge_round is None else np.full(count, edge_round)
        part["device"] = server.edge.members[np.asarray(part["device"], dtype=int)]
        part["round"] = np.full(count, g)
        parts.append(part)
    return _concatenated(parts)


def _concatenated(parts: Sequence[Columns]) -> Columns:
    filled = [part for part in parts if len(part["round"])] or parts[:1]
    return {name: np.concatenate([part[name] for part in filled]) for name in filled[0]}


def _sorted(columns: Columns, keys: Sequence[str]) -> Columns:
    order = np.lexsort([columns[key] for key in reversed(keys)])
    return {name: np.asarray(values)[order] for name, values in columns.items()}


def _number_jobs(rows: Columns, spans: Columns, first: int) -> None:
    """Give the jobs of all edges the numbers of their dispatch; at one instant by edge."""
    edge, job = np.asarray(rows["edge"]), np.asarray(rows["job"])
    order = np.lexsort((job, edge, rows["dispatched_s"]))
    number = np.empty(len(job), dtype=int)
    number[order] = first + np.arange(len(job))
    known = dict(zip(zip(edge.tolist(), job.tolist(), strict=True), number.tolist(), strict=True))
    rows["job"] = number
    own = zip(np.asarray(spans["edge"]).tolist(), np.asarray(spans["job"]).tolist(), strict=True)
    spans["job"] = np.array([known.get(each, -1) for each in own], dtype=int)


def _transfers(g: int, hierarchy: Hierarchy, servers: Sequence[EdgeServer]) -> Columns:
    """The table backhaul: one row per transfer, by edge and time."""
    rows: list[tuple[Any, ...]] = []
    for server in servers:
        e, bits = server.edge.number, server.model_bits
        for direction, start_s, end_s in server.transfers:
            path = hierarchy.backhaul.path(e, up=direction == "up")
            joules = hierarchy.backhaul.energy_j(path, bits)
            rows.append((g, e, direction, start_s, end_s, bits, joules))
    names = ("round", "edge", "direction", "start_s", "end_s", "bits", "energy_j")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _backhaul_columns(transfers: Columns) -> Columns:
    """Further columns of the row of rounds, column -> [value]."""

    def summed(column: str, *directions: str) -> float:
        values = zip(transfers["direction"], transfers[column], strict=True)
        return total(value for direction, value in values if direction in directions)

    return {
        "backhaul_bits_up": [summed("bits", "up")],
        "backhaul_bits_down": [summed("bits", "down")],
        "backhaul_energy_j": [summed("energy_j", "up", "down")],
    }


def _all(column: str, tables: Sequence[Columns]) -> list[Any]:
    return [value for each in tables for value in each[column]]


def _only(values: Sequence[float]) -> float:
    """The price of the one plan of a round; nan where there are several."""
    return values[0] if len(values) == 1 else math.nan


def _worst(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return max(known, default=math.nan)
