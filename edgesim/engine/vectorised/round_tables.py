"""Tables of a round whose spans are columns: `edgesim.records.rows_from_spans` as arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from edgesim.engine.vectorised.device_spans import DeviceSpans, SpanColumns
from edgesim.network.grants import Grants
from edgesim.records.rows_from_spans import RADIO
from edgesim.records.run_tables.table_columns import ROUND_SCHEMAS
from fl.contracts import Array, RoundPlan

STATUS, INFEASIBLE = np.array(["arrived", "late"], dtype=object), "infeasible"
TIMED = ("rate_bps", "download_s", "compute_s", "upload_s", "finish_s")  # nan where left out
NUMBERS = [name for name in ROUND_SCHEMAS["spans"] if name not in ("round", "phase")]


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
        columns[name] = np.concatenate([begun(span, name) for span in spans])[order]
    return columns


def begun(span: SpanColumns, name: str) -> Array:
    """A column of the spans that have begun; what all have alike may be one number."""
    values = getattr(span, name)
    return values[span.begun] if np.ndim(values) else np.full(span.begun.sum(), values)


def device_columns(
    g: int,
    plan: RoundPlan,
    grants: Grants,
    played: DeviceSpans,
    idle: SpanColumns,
    start_s: float,
    late_s: float,
) -> dict[str, Array]:
    """Rows of device_rounds, by device: those with a grant, and those left out as infeasible."""
    left_out = len(plan.infeasible)
    columns = job_rows(played, grants, start_s, late_s)
    absent = {"device": list(plan.infeasible), "status": [INFEASIBLE] * left_out}
    absent |= {name: [math.nan] * left_out for name in TIMED}
    for name, values in columns.items():
        more = np.array(absent.get(name, [0.0] * left_out), dtype=values.dtype)
        columns[name] = np.append(values, more)
    columns["round"] = np.full(len(grants) + left_out, g)
    columns["energy_j"] = energies(columns["device"], played.spans, idle, len(grants))
    order = np.argsort(columns["device"], kind="stable")
    return {name: columns[name][order] for name in ROUND_SCHEMAS["device_rounds"]}


def job_rows(
    played: DeviceSpans, grants: Grants, start_s: float | Array, late_s: float
) -> dict[str, Array]:
    """Columns of device_rounds [S] but its joules: `edgesim.records.rows_from_spans.device_row`."""
    size, spans = len(grants), played.spans
    seconds = {name: np.zeros(size) for name in ("download_s", "compute_s", "upload_s")}
    for span in spans:
        seconds[RADIO.get(span.phase, "compute_s")] += np.where(span.begun, span.seconds, 0.0)
    finish_s = np.where(played.arrived, played.busy_until_s - start_s, np.nan)
    bits = {
        phase: per_device("bits", [span for span in spans if span.phase == phase], size)
        for phase in RADIO
    }
    upload_s = seconds["upload_s"]
    with np.errstate(divide="ignore", invalid="ignore"):
        rate_bps = np.where(upload_s > 0.0, bits["upload"] / upload_s, np.nan)
    amounts = {name: per_device(name, spans, size) for name in ("flops", "cycles")}
    return {
        "device": grants.device,
        "status": STATUS[np.where(finish_s <= late_s, 0, 1)],
        "share": grants.share,
        "rho": grants.rho,
        "rate_bps": rate_bps,
        **seconds,
        "finish_s": finish_s,
        "bits_up": bits["upload"],
        "bits_down": bits["download"],
        **amounts,
    }


def energies(device: Array, spans: Sequence[SpanColumns], idle: SpanColumns, size: int) -> Array:
    """Joules of ``device`` [S + infeasible], waiting included; the first S have ``spans``."""
    parts = [
        np.append(spent, np.zeros(len(device) - size)) for spent in column_parts("energy_j", spans)
    ]
    waited = np.zeros(1 + max(device.max(initial=0), idle.device.max(initial=0)))
    waited[idle.device] = idle.energy_j
    return exact_sum([*parts, waited[device]], len(device))


def per_device(name: str, spans: Sequence[SpanColumns], size: int) -> Array:
    """Sums [S] of a column over the spans of each device."""
    return exact_sum(column_parts(name, spans), size)


def column_parts(name: str, spans: Sequence[SpanColumns]) -> list[Array]:
    """A column of each span [S], 0 where it has not begun."""
    return [np.where(span.begun, getattr(span, name), 0.0) for span in spans]


def exact_sum(parts: Sequence[Array], size: int) -> Array:
    """Sum of arrays [S], each entry rounded once as by `edgesim.records.rows_from_spans.total`."""
    filled = [part for part in parts if part.any()]
    if len(filled) < 2:
        return filled[0] if filled else np.zeros(size)
    if len(filled) == 2:
        return filled[0] + filled[1]  # one addition is rounded once
    sums = map(math.fsum, zip(*(part.tolist() for part in filled), strict=True))
    return np.fromiter(sums, float, size)
