"""The key figures of a run as the columns of a table: summary.json without its lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edgesim.results.run_files import ResultsError

COUNTS = ("rounds", "devices", "weights", "stretched_rounds")
NUMBERS = (  # of summary.json, in SI
    "latency_threshold_s",
    "final_accuracy",
    "final_loss",
    "best_accuracy",
    "time_s",
    "mean_latency_s",
    "max_latency_s",
    "late_share",
    "infeasible_share",
    "bits_up",
    "bits_down",
    "energy_j",
    "rho_mean",
    "certificate_worst",
    "promised_late_share",
    "pruning_per_late_share",
)
TO_TARGET = {  # of a target in summary.json -> column for the accuracy A
    "round": "round_to_{}",
    "time_s": "time_to_{}_s",
    "bits": "bits_to_{}",
    "energy_j": "energy_to_{}_j",
}


def summary_row(summary: dict[str, Any], place: Path) -> dict[str, float | int | None]:
    """Column -> number; None for what the run does not have.

    Args:
        summary: content of summary.json; empty for a run that has not ended.
        place: of that file, for errors.

    Raises:
        ResultsError: something else stands where a number belongs.
    """
    flat = {**summary, "weights": _mapping(summary.get("weights")).get("total")}
    row = {name: flat.get(name) for name in (*COUNTS, *NUMBERS)}
    for target, reached in _mapping(summary.get("targets")).items():
        for name, column in TO_TARGET.items():
            row[column.format(target)] = _mapping(reached).get(name)
    for name, value in row.items():
        if value is not None and (not isinstance(value, int | float) or isinstance(value, bool)):
            raise ResultsError(f"{place} is damaged: {name} is {str(value)[:40]!r}.")
    return row


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
