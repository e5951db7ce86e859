"""The rows of a round whose spans are columns: what `edgesim.records.row_totals` and the log add up device by device."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from edgesim.engine.rounds import SLACK
from edgesim.engine.vectorised.device_batch import Played, Stretch
from edgesim.network.grants import Grants
from edgesim.records.row_totals import COUNTED, RADIO, plan_row, round_row
from edgesim.records.table_files import SCHEMAS, Columns
from fl.contracts import Array, RoundPlan, Scores

STATUS = np.array(["arrived", "late", "infeasible"], dtype=object)
TOLD = [name for name in SCHEMAS["spans"] if name not in ("round", "phase")]


def rows(
    g: int,
    plan: RoundPlan,
    grants: Grants,
    played: Played | None,
    idle: Stretch,
    start_s: float,
    end_s: float,
    threshold_s: float,
    scores: Scores | None,
) -> dict[str, Columns]:
    """A block of the log: spans, device_rounds, rounds, plans.

    Args:
        played: None where nobody was granted anything.     idle: who waited.     threshold_s: T_th.
    """
    spans, late_s = [*(played.spans if played else ()), idle], threshold_s * (1.0 + SLACK)
    table, devices = (
        span_columns(g, spans),
        device_columns(g, plan, grants, played, idle, start_s, late_s),
    )
    totals = {name: exact(devices[name]) for name in COUNTED}
    totals["energy_j"] = exact(table["energy_j"])
    status = {name: int(np.count_nonzero(devices["status"] == name)) for name in STATUS}
    received = int(played.back.sum()) if played else 0
    row = round_row(g, start_s, end_s, plan, status, received, grants.rho, totals, scores)
    return {
        "spans": table,
        "device_rounds": devices,
        "rounds": row,
        "plans": plan_row(g, plan, threshold_s),
    }


def span_columns(g: int, spans: Sequence[Stretch]) -> Columns:
    """Rows of spans, by device and then in the order in which they happened."""
    device = np.concatenate([span.device[span.begun] for span in spans])
    order = np.argsort(device, kind="stable")
    columns = {
        "round": np.full(len(device), g),
        "phase": np.repeat(words(spans), [s.begun.sum() for s in spans]),
    }
    for name in TOLD:
        parts = [
            np.broadcast_to(getattr(span, name), span.device.shape)[span.begun] for span in spans
        ]
        columns[name] = np.concatenate(parts)
    return {name: values[order] for name, values in columns.items()}


def words(spans: Sequence[Stretch]) -> Array:
    return np.array([span.phase for span in spans], dtype=object)


def device_columns(
    g: int,
    plan: RoundPlan,
    grants: Grants,
    played: Played | None,
    idle: Stretch,
    start_s: float,
    late_s: float,
) -> Columns:
    """Rows of device_rounds, by device: those with a grant, and those left out as infeasible."""
    size, out = len(grants), len(plan.infeasible)
    device = np.concatenate([grants.device, np.array(plan.infeasible, dtype=int)])
    spans = played.spans if played else ()
    seconds = {name: np.zeros(size) for name in ("download_s", "compute_s", "upload_s")}
    for span in spans:
        seconds[RADIO.get(span.phase, "compute_s")] += np.where(span.begun, span.seconds, 0.0)
    back = played.back if played else np.zeros(0, dtype=bool)
    finish_s = np.where(back, played.busy_until_s - start_s, np.nan) if played else np.zeros(0)
    in_time = back & ~(finish_s > late_s)
    up_bits = per_device("bits", [span for span in spans if span.phase == "upload"], size)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate_bps = np.where(seconds["upload_s"] > 0.0, up_bits / seconds["upload_s"], np.nan)
    granted = {"share": grants.share, "rho": grants.rho}
    timed = {"rate_bps": rate_bps, **seconds, "finish_s": finish_s}
    added = {
        "bits_up": up_bits,
        "bits_down": per_device("bits", [span for span in spans if span.phase == "download"], size),
        **{name: per_device(name, spans, size) for name in ("flops", "cycles")},
    }
    columns = {"round": np.full(size + out, g), "device": device}
    columns["status"] = STATUS[np.append(np.where(in_time, 0, 1), np.full(out, 2))]
    for names, absent in ((granted, 0.0), (timed, np.nan), (added, 0.0)):
        columns |= {name: np.append(values, np.full(out, absent)) for name, values in names.items()}
    columns["energy_j"] = energies(device, spans, idle, size)
    order = np.argsort(device, kind="stable")
    return {name: columns[name][order] for name in SCHEMAS["device_rounds"]}


def energies(device: Array, spans: Sequence[Stretch], idle: Stretch, size: int) -> Array:
    """Joules of each of ``device`` [S + infeasible], of whom the first ``size`` have ``spans``, idle ones too."""
    parts = [
        np.append(spent, np.zeros(len(device) - size))
        for spent in column_parts("energy_j", spans, size)
    ]
    waited = np.zeros(1 + max(device.max(initial=0), idle.device.max(initial=0)))
    waited[idle.device] = idle.energy_j
    return added_up([*parts, waited[device]], len(device))


def per_device(name: str, spans: Sequence[Stretch], size: int) -> Array:
    """Sums [S] of a column over the spans of each device."""
    return added_up(column_parts(name, spans, size), size)


def column_parts(name: str, spans: Sequence[Stretch], size: int) -> list[Array]:
    return [np.where(span.begun, np.broadcast_to(getattr(span, name), size), 0.0) for span in spans]


def added_up(parts: Sequence[Array], size: int) -> Array:
    """Sum of arrays, each entry rounded once, as `edgesim.records.row_totals.total` does it."""
    filled = [part for part in parts if part.any()]
    if len(filled) < 2:
        return filled[0] if filled else np.zeros(size)
    if len(filled) == 2:
        return filled[0] + filled[1]  # one addition is rounded once
    return np.fromiter(
        map(math.fsum, zip(*(part.tolist() for part in filled), strict=True)), float, size
    )


def exact(values: Array) -> float:
    """Sum of a column that does not depend on the order of its terms."""
    return math.fsum(values.tolist())
