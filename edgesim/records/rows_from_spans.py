"""The rows of a round in the tables: sums over its spans."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from edgesim.records.run_tables.table_columns import SCHEMAS, Columns, as_list
from edgesim.records.span import Span
from fl.contracts import Array, Outcome, RoundPlan, Scores

NAN = float("nan")
RADIO = {"download": "download_s", "upload": "upload_s", "handover": "upload_s"}
WAITING = ("idle", "off", "repair")  # phases without a job; off: without energy
ENDINGS = ("discarded", "cancelled", "unfinished", "left")  # of jobs that are numbered
COUNTED = ("bits_up", "bits_down", "flops", "cycles")  # columns that a round sums over devices


class JobRecord(NamedTuple):
    """What the tables say of a job beside its outcome.

    Args:
        job: its number.
        version_in: version of the model that its device downloaded.
        version_out: version that was made with its update; -1: it was not used.
        dispatched_s: simulated time of its dispatch, s.
    """

    job: int
    version_in: int
    version_out: int
    dispatched_s: float


def job_columns(record: JobRecord, outcome: Outcome) -> dict[str, Any]:
    """Further columns of a row of device_rounds."""
    return {
        **record._asdict(),
        "staleness": outcome.staleness,
        "weight": outcome.weight if record.version_out >= 0 else 0.0,
    }


def columns_of_jobs(rows: Columns, waiting: Mapping[str, int]) -> Columns:
    """Further columns of the row of rounds where jobs are numbered, column -> [value].

    Args:
        rows: of device_rounds, by column.
        waiting: further counts, such as dispatched, held, in_flight.
    """
    status = Counter(as_list(rows["status"]))
    stale = np.asarray(rows["staleness"])[np.asarray(rows["version_out"]) >= 0]
    row: dict[str, float] = {**waiting, **{name: status[name] for name in ENDINGS}}
    row |= {"staleness_mean": _known(np.mean, stale), "staleness_max": _known(np.max, stale)}
    return {name: [value] for name, value in row.items()}


def device_row(g: int, outcome: Outcome, spans: Sequence[Span]) -> dict[str, Any]:
    """One row of device_rounds; ``rate_bps`` is bits_up / upload_s, nan without an upload."""
    grant, left_out = outcome.grant, outcome.status == "infeasible"
    seconds = {"download_s": 0.0, "compute_s": 0.0, "upload_s": 0.0}
    for span in spans:
        if span.phase not in WAITING:
            seconds[RADIO.get(span.phase, "compute_s")] += span.seconds
    up_bits = total(span.bits for span in spans if span.phase == "upload")
    return {
        "round": g,
        "device": grant.device,
        "status": outcome.status,
        "share": 0.0 if left_out else grant.share,
        "rho": 0.0 if left_out else grant.rho,
        "rate_bps": up_bits / seconds["upload_s"] if seconds["upload_s"] > 0.0 else NAN,
        **(dict.fromkeys(seconds, NAN) if left_out else seconds),
        "finish_s": outcome.finish_s,
        "bits_up": up_bits,
        "bits_down": total(span.bits for span in spans if span.phase == "download"),
        "flops": total(span.flops for span in spans),
        "cycles": total(span.cycles for span in spans),
        "energy_j": total(span.energy_j for span in spans),
        "transmissions": _transmissions(spans),
        **_sector(spans),
        "handovers": sum(span.phase == "handover" for span in spans),
    }


def _sector(spans: Sequence[Span]) -> dict[str, Any]:
    """The sector that served the last upload, and the uploads' ratio to interference and noise."""
    uploads = [span for span in spans if span.phase == "upload"]
    return {"sector": uploads[-1].sector if uploads else -1, "sinr_db": _sinr_db(uploads)}


def _sinr_db(uploads: Sequence[Span]) -> float:
    """That of the mean of log2(1 + SINR) over the parts of an upload, dB; nan: nothing was sent."""
    if len(uploads) == 1:
        return uploads[0].sinr_db
    served = [span for span in uploads if span.served_s > 0.0]
    carried = total(
        span.served_s * math.log1p(10.0 ** (span.sinr_db / 10.0))
        for span in served
        if not math.isnan(span.sinr_db)
    )
    if carried <= 0.0:
        return NAN
    return 10.0 * math.log10(math.expm1(carried / total(span.served_s for span in served)))


def _transmissions(spans: Sequence[Span]) -> float:
    """Mean number of transmissions of a block of the uploads, by their bits; nan: not known."""
    known = [span for span in spans if span.transmissions > 0.0 and span.bits > 0.0]
    bits = total(span.bits for span in known)
    return total(span.bits * span.transmissions for span in known) / bits if bits else NAN


def round_block(
    g: int,
    start_s: float,
    end_s: float,
    plan: RoundPlan,
    spans: Columns,
    rows: Columns,
    received: int,
    rho: Sequence[float] | Array,
    scores: Scores | None,
    threshold_s: float,
) -> dict[str, Columns]:
    """A block of the log, table -> column -> values: a round by its spans and device rounds.

    Args:
        g: number of the round.
        start_s: simulated time of its start, s.
        end_s: simulated time of its end, s.
        plan: the round's allocation.
        spans: columns of the table; its joules are those of the round, also of devices that wait.
        rows: columns of the table device_rounds; ``late`` are those after the threshold.
        received: uploads that the server received, also late ones; the column ``arrived``.
        rho: pruning ratios of the devices with a grant.
        scores: of the evaluation after the round, if there was one.
        threshold_s: T_th, s; a plan for a longer time counts as stretched.
    """
    status = Counter(as_list(rows["status"]))
    row = {
        "round": g,
        "time_s": end_s,
        "latency_s": end_s - start_s,
        "selected": status.total(),
        "arrived": received,
        **{name: status[name] for name in ("late", "failed", "infeasible")},
        "loss": _known(np.mean, scores.loss if scores else ()),
        "accuracy": _known(np.mean, scores.accuracy if scores else ()),
        "accuracy_std": _known(np.std, scores.accuracy if scores else ()),
        "rho_mean": _known(np.mean, rho),
        "rho_max": _known(np.max, rho),
        **{name: total(as_list(rows[name])) for name in COUNTED},
        "energy_j": total(as_list(spans["energy_j"])),
        "solver_residual": plan.residual,
        "pruning_per_hz": plan.pruning_per_hz,
        "pruning_per_s": plan.pruning_per_s,
    }
    stretched = int(plan.budget_s > threshold_s)
    block: dict[str, Columns] = {
        "spans": spans,
        "device_rounds": rows,
        "rounds": {name: [value] for name, value in row.items()},
        "plans": {"round": [g], "budget_s": [plan.budget_s], "stretched": [stretched]},
        "unsettled_plans": _unsettled_columns(g, plan),
        "upload_forecasts": _forecast_columns(g, plan),
    }
    if scores is not None:
        block |= {"scores": _score_columns(g, scores), "measures": _measure_columns(g, scores)}
    return block


def _unsettled_columns(g: int, plan: RoundPlan) -> Columns:
    """A row where the plan has not settled."""
    rounds, changes = ([g], [plan.unsettled]) if plan.unsettled else ([], [])
    return {"round": rounds, "change": changes}


def _forecast_columns(g: int, plan: RoundPlan) -> Columns:
    """Rows of upload_forecasts, by device; none where the plan does not count with fading."""
    if plan.forecast is None:
        return {name: [] for name in SCHEMAS["upload_forecasts"]}
    device = np.array([grant.device for grant in plan.grants], dtype=int)
    order, said = np.argsort(device, kind="stable"), plan.forecast
    return {
        "round": np.full(len(device), g),
        "device": device[order],
        "planned_bps": said.rate_bps[order],
        "late_probability": said.late[order],
        "pruning_per_late": said.pruning_per_late[order],
    }


def state_columns(g: int, devices: Sequence[int], states: Sequence[Any]) -> Columns:
    """Rows of device_states.

    Args:
        g: number of the round.
        devices: their numbers, ascending.
        states: of each, with the other columns of the table as attributes.
    """
    names = [name for name in SCHEMAS["device_states"] if name not in ("round", "device")]
    columns: Columns = {name: [getattr(each, name) for each in states] for name in names}
    return {"round": [g] * len(devices), "device": list(devices), **columns}


def _score_columns(g: int, scores: Scores) -> Columns:
    """Rows of scores: one for every device that has test data."""
    tested = np.flatnonzero(~np.isnan(scores.loss))
    values = {
        name: np.asarray(getattr(scores, name), dtype=float)[tested].tolist()
        for name in ("loss", "accuracy")
    }
    return {"round": [g] * len(tested), "device": tested.tolist(), **values}


def _measure_columns(g: int, scores: Scores) -> Columns:
    """Rows of measures, in the order in which the method gives them."""
    return {
        "round": [g] * len(scores.measures),
        "name": list(scores.measures),
        "value": list(scores.measures.values()),
    }


def total(values: Iterable[float]) -> float:
    """Sum that does not depend on the order of its terms."""
    return math.fsum(values)


def _known(statistic: Any, values: Any) -> float:
    """A statistic of the values that are not nan; nan where there are none."""
    values = np.asarray(values, dtype=float)
    values = values[~np.isnan(values)]
    return float(statistic(values)) if values.size else NAN
