"""Tables of a round whose spans are columns: `edgesim.records.rows_from_spans` as arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from edgesim.engine.rounds import SLACK
from edgesim.engine.vectorised.device_spans import DeviceSpans, SpanColumns
from edgesim.network.grants import Grants
from edgesim.records.rows_from_spans import (
    COUNTED,
    RADIO,
    forecast_columns,
    plan_row,
    round_row,
    total,
)
from edgesim.records.table_files import ROUND_SCHEMAS, Columns
from fl.contracts import Array, RoundPlan, Scores

STATUS = np.array(["arrived", "late", "infeasible"], dtype=object)
NUMBERS = [name for name in ROUND_SCHEMAS["spans"] if name not in ("round", "phase")]


def round_tables(
    g: int,
    plan: RoundPlan,
    grants: Grants,
    played: DeviceSpans | None,
    idle: SpanColumns,
    start_s: float,
    end_s: float,
    threshold_s: float,
    scores: Scores | None,
) -> dict[str, Columns]:
    """A block of the log: spans, device_rounds, rounds, plans, upload_forecasts.

    Args:
        g: number of the round.
        plan: its allocation.
        grants: of the plan [S].
        played: the spans of their devices; None without grants.
        idle: the spans of waiting devices.
        start_s: simulated time of the start, s.
        end_s: simulated time of the end, s.
        threshold_s: T_th, s.
        scores: of the evaluation after the round, if there was one.
    """
    spans = span_columns(g, [*(played.spans if played else ()), idle])
    late_s = threshold_s * (1.0 + SLACK)
    devices = device_columns(g, plan, grants, played, idle, start_s, late_s)
    totals = {name: total(devices[name].tolist()) for name in COUNTED}
    totals["energy_j"] = total(spans["energy_j"].tolist())
    status = {name: int(np.count_nonzero(devices["status"] == name)) for name in STATUS}
    received = int(played.arrived.sum()) if played else 0
    row = round_row(g, start_s, end_s, plan, status, received, grants.rho, totals, scores)
    return {
        "spans": {**spans},
        "device_rounds": {**devices},
        "rounds": row,
        "plans": plan_row(g, plan, threshold_s),
        "upload_forecasts": forecast_columns(g, plan),
    }


def span_columns(g: int, spans: Sequence[SpanColumns]) -> dict[str, Array]:
    """Rows of spans, by device and then in the order in which they happened."""
    device = np.concatenate([span.device[span.begun] for span in spans])
    order = np.argsort(device, kind="stable")
    phases = np.array([span.phase for span in spans], dtype=object)
    # each column is put in order at once: both forms of all of them would be the peak of a run
    columns = {
        "round": np.full(len(device), g),
        "phase": np.repeat(phases, [span.begun.sum() for span in spans])[order],
    }
    for name in NUMBERS:
        parts = [
            np.broadcast_to(getattr(span, name), span.device.shape)[span.begun] for span in spans
        ]
        columns[name] = np.concatenate(parts)[order]
    return columns


def device_columns(
    g: int,
    plan: RoundPlan,
    grants: Grants,
    played: DeviceSpans | None,
    idle: SpanColumns,
    start_s: float,
    late_s: float,
) -> dict[str, Array]:
    """Rows of device_rounds, by device: those with a grant, and those left out as infeasible."""
    size, left_out = len(grants), len(plan.infeasible)
    device = np.concatenate([grants.device, np.array(plan.infeasible, dtype=int)])
    spans = played.spans if played else ()
    seconds = {name: np.zeros(size) for name in ("download_s", "compute_s", "upload_s")}
    for span in spans:
        seconds[RADIO.get(span.phase, "compute_s")] += np.where(span.begun, span.seconds, 0.0)
    arrived = played.arrived if played else np.zeros(0, dtype=bool)
    finish_s = np.where(arrived, played.busy_until_s - start_s, np.nan) if played else np.zeros(0)
    in_time = arrived & ~(finish_s > late_s)
    bits = {
        phase: per_device("bits", [span for span in spans if span.phase == phase], size)
        for phase in RADIO
    }
    with np.errstate(divide="ignore", invalid="ignore"):
        upload_s = seconds["upload_s"]
        rate_bps = np.where(upload_s > 0.0, bits["upload"] / upload_s, np.nan)
    granted = {"share": grants.share, "rho": grants.rho}
    timed = {"rate_bps": rate_bps, **seconds, "finish_s": finish_s}
    counted = {"bits_up": bits["upload"], "bits_down": bits["download"]}
    counted |= {name: per_device(name, spans, size) for name in ("flops", "cycles")}
    columns = {"round": np.full(size + left_out, g), "device": device}
    columns["status"] = STATUS[np.append(np.where(in_time, 0, 1), np.full(left_out, 2))]
    for values, absent in ((granted, 0.0), (timed, np.nan), (counted, 0.0)):
        columns |= {
            name: np.append(column, np.full(left_out, absent)) for name, column in values.items()
        }
    columns["energy_j"] = energies(device, spans, idle, size)
    order = np.argsort(device, kind="stable")
    return {name: columns[name][order] for name in ROUND_SCHEMAS["device_rounds"]}


def energies(device: Array, spans: Sequence[SpanColumns], idle: SpanColumns, size: int) -> Array:
    """Joules of ``device`` [S + infeasible], waiting included; the first S have ``spans``."""
    parts = [
        np.append(spent, np.zeros(len(device) - size))
        for spent in column_parts("energy_j", spans, size)
    ]
    waited = np.zeros(1 + max(device.max(initial=0), idle.device.max(initial=0)))
    waited[idle.device] = idle.energy_j
    return exact_sum([*parts, waited[device]], len(device))


def per_device(name: str, spans: Sequence[SpanColumns], size: int) -> Array:
    """Sums [S] of a column over the spans of each device."""
    return exact_sum(column_parts(name, spans, size), size)


def column_parts(name: str, spans: Sequence[SpanColumns], size: int) -> list[Array]:
    """A column of each span [S], 0 where it has not begun."""
    return [np.where(span.begun, np.broadcast_to(getattr(span, name), size), 0.0) for span in spans]


def exact_sum(parts: Sequence[Array], size: int) -> Array:
    """Sum of arrays [S], each entry rounded once as by `edgesim.records.rows_from_spans.total`."""
    filled = [part for part in parts if part.any()]
    if len(filled) < 2:
        return filled[0] if filled else np.zeros(size)
    if len(filled) == 2:
        return filled[0] + filled[1]  # one addition is rounded once
    sums = map(math.fsum, zip(*(part.tolist() for part in filled), strict=True))
    return np.fromiter(sums, float, size)
