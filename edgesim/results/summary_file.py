"""summary.json of a finished run: its reader, what it must hold, its numbers as columns."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from edgesim.errors import ResultsError, shorten
from edgesim.results.run_files import MAX_NUMBER, read_json

MAX_LETTERS = 1000  # of a name
MAX_ROUNDS = MAX_DEVICES = 100_000_000
WORDS = ("scenario", "scheme", "method", "solver")
COUNTS = {"seed": (0, 2**63 - 1), "rounds": (1, MAX_ROUNDS), "devices": (1, MAX_DEVICES)}
NEEDED = (*WORDS, *COUNTS, "latency_threshold_s", "targets")
COUNT_COLUMNS = ("rounds", "devices", "weights", "stretched_rounds")
NUMBER_COLUMNS = (  # of summary.json, in SI
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
TARGET_COLUMNS = {  # of a target in summary.json -> column for the accuracy A
    "round": "round_to_{}",
    "time_s": "time_to_{}_s",
    "bits": "bits_to_{}",
    "energy_j": "energy_to_{}_j",
}


def read_summary(path: Path) -> dict[str, Any]:
    """The content of a summary.json.

    Raises:
        ResultsError: the file cannot be read, is damaged, or lacks something that every run has.
    """
    summary = read_json(path)
    missing = [key for key in NEEDED if key not in summary]
    if missing:
        raise ResultsError(f"{path} lacks {', '.join(missing)}; it is not a run of this version.")
    for key, value in summary.items():
        if problem := _problem(key, value):
            raise ResultsError(f"{path} is damaged: {key[:40]} is {shorten(value)}; {problem}.")
    return summary


def _problem(key: str, value: Any) -> str:
    """What should stand there; "" where the value is right, or the key is not known here."""
    if key in WORDS:
        right = isinstance(value, str) and 0 < len(value) <= MAX_LETTERS
        return "" if right else f"a text of 1 to {MAX_LETTERS} letters belongs there"
    if key in COUNTS:
        low, high = COUNTS[key]
        right = type(value) is int and low <= value <= high
        return "" if right else f"a whole number from {low} to {high} belongs there"
    if key == "stretched_rounds":
        right = type(value) is int and 0 <= value <= MAX_ROUNDS
        return "" if right else "a number of rounds belongs there"
    if key == "targets":
        right = isinstance(value, dict) and all(map(_is_target, value.items()))
        return "" if right else "accuracies with round, time_s, bits and energy_j belong there"
    if key == "final_metric":
        right = isinstance(value, dict) and all(map(_is_number, value.values()))
        return "" if right else "a number or nothing belongs there for each metric"
    if key == "weights":
        right = isinstance(value, dict) and all(map(_is_amount, value.values()))
        return "" if right else "numbers of weights belong there"
    if key == "warnings":
        right = isinstance(value, list) and all(isinstance(text, str) for text in value)
        return "" if right else "a list of sentences belongs there"
    if key == "latency_threshold_s":
        right = value is None or _is_amount(value)
        return "" if right else "seconds or nothing belong there"
    if key in NUMBER_COLUMNS:
        return (
            "" if _is_number(value) else f"nothing or a number up to {MAX_NUMBER:g} belongs there"
        )
    return ""


def _is_target(item: tuple[str, Any]) -> bool:
    """An accuracy as text, with nothing or with what it took to reach it."""
    name, cost = item
    try:
        known = math.isfinite(float(name))
    except ValueError:
        return False
    return known and (
        cost is None or (isinstance(cost, dict) and all(map(_is_amount, cost.values())))
    )


def _is_number(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and abs(value) <= MAX_NUMBER)


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= MAX_NUMBER


def summary_row(summary: dict[str, Any]) -> dict[str, float | int | None]:
    """Column -> number; None for what the run does not have.

    Args:
        summary: of `read_summary`; empty for a run that has not ended.
    """
    flat = {**summary, "weights": summary.get("weights", {}).get("total")}
    row = {name: flat.get(name) for name in (*COUNT_COLUMNS, *NUMBER_COLUMNS)}
    row |= {f"final_{name}": value for name, value in summary.get("final_metric", {}).items()}
    for target, reached in summary.get("targets", {}).items():
        for name, column in TARGET_COLUMNS.items():
            row[column.format(target)] = (reached or {}).get(name)
    return row
