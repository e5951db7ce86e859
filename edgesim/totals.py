"""The rows of a round, added up from its spans: what a device did, what the round cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from edgesim.contracts import Outcome, Plan, Scores

NAN = float("nan")
RADIO = {"download": "download_s", "upload": "upload_s"}


def device_row(g: int, outcome: Outcome, spans: Sequence[Any]) -> dict[str, Any]:
    """One row of device_rounds. ``rate_bps`` is what emerged, bits_up / upload_s; nan without an upload."""
    grant, out = outcome.grant, outcome.status == "infeasible"
    seconds = {"download_s": 0.0, "compute_s": 0.0, "upload_s": 0.0}
    for span in spans:
        if span.phase != "idle":
            seconds[RADIO.get(span.phase, "compute_s")] += span.seconds
    up_bits = _total(span.bits for span in spans if span.phase == "upload")
    return {
        "round": g,
        "device": grant.device,
        "status": outcome.status,
        "share": 0.0 if out else grant.share,
        "rho": 0.0 if out else grant.rho,
        "rate_bps": up_bits / seconds["upload_s"] if seconds["upload_s"] > 0.0 else NAN,
        **(dict.fromkeys(seconds, NAN) if out else seconds),
        "finish_s": outcome.finish_s,
        "bits_up": up_bits,
        "bits_down": _total(span.bits for span in spans if span.phase == "download"),
        "flops": _total(span.flops for span in spans),
        "cycles": _total(span.cycles for span in spans),
        "energy_j": _total(span.energy_j for span in spans),
    }


def round_row(
    g: int,
    start_s: float,
    end_s: float,
    plan: Plan,
    outcomes: Sequence[Outcome],
    rows: Sequence[dict[str, Any]],
    spans: Sequence[Any],
    scores: Scores | None,
) -> dict[str, Any]:
    """One row of rounds. ``arrived`` counts uploads that the server received, ``late`` those after the threshold;
    energy_j also holds the idle energy of devices that were not selected."""
    status = Counter(outcome.status for outcome in outcomes)
    rho = [grant.rho for grant in plan.grants]
    return {
        "round": g,
        "time_s": end_s,
        "latency_s": end_s - start_s,
        "selected": len(outcomes),
        "arrived": sum(outcome.received for outcome in outcomes),
        **{name: status[name] for name in ("late", "failed", "infeasible")},
        "loss": _known(np.mean, scores.loss if scores else ()),
        "accuracy": _known(np.mean, scores.accuracy if scores else ()),
        "accuracy_std": _known(np.std, scores.accuracy if scores else ()),
        "rho_mean": _known(np.mean, rho),
        "rho_max": _known(np.max, rho),
        **{name: _total(row[name] for row in rows) for name in ("bits_up", "bits_down", "flops", "cycles")},
        "energy_j": _total(span.energy_j for span in spans),
        "solver_residual": plan.residual,
    }


def _total(values: Iterable[float]) -> float:
    """Sum that does not depend on the order of its terms."""
    return math.fsum(values)


def _known(statistic: Any, values: Any) -> float:
    """A statistic of the values that are not nan; nan where there are none."""
    values = np.asarray(values, dtype=float)
    values = values[~np.isnan(values)]
    return float(statistic(values)) if values.size else NAN
