"""Key figures of a finished run, computed from the event log alone."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from edgesim.errors import counted
from edgesim.records.costs_over_time import UNCLOSED, share_until
from edgesim.records.run_tables.table_columns import SCHEMAS, Columns

ROUNDING = 1e-12  # relative, of a mean of accuracies


def first_at(accuracy: np.ndarray, target: float) -> int | None:
    """The first row whose accuracy is the target or more; None where no row has it.

    Args:
        accuracy: of each round, nan where it was not evaluated [rounds].
        target: in [0, 1].
    """
    # the mean of six times 0.8 is 0.7999999999999999
    reached = np.flatnonzero(accuracy >= target * (1 - ROUNDING))  # nan compares false
    return int(reached[0]) if reached.size else None


def to_target(rounds: Columns, target: float, spans: Columns | None = None) -> dict | None:
    """What it took until the accuracy first reached ``target``; None if it never did.

    Args:
        rounds: columns of the table rounds.
        target: accuracy in [0, 1].
        spans: columns of the table spans; None: no job goes on while a version is made.

    Returns:
        The round, simulated time (s), bits up and down, and energy (J).
    """
    first = first_at(np.asarray(rounds["accuracy"], float), target)
    if first is None:
        return None
    end = first + 1
    g, time_s = int(rounds["round"][end - 1]), float(rounds["time_s"][end - 1])
    bits = math.fsum(rounds["bits_up"][:end]) + math.fsum(rounds["bits_down"][:end])
    spent = {"bits": bits, "energy_j": math.fsum(rounds["energy_j"][:end])}
    if spans is not None and any(rounds[name][end - 1] for name in UNCLOSED if name in rounds):
        spent = _spent(spans, g, time_s)
    return {"round": g, "time_s": time_s, **spent}


def _spent(spans: Columns, g: int, time_s: float) -> dict[str, float]:
    """Bits and joules of all spans until version g is made."""
    share = share_until(spans, g, time_s)
    columns = {"bits": spans["bits"], "energy_j": spans["energy_j"]}
    return {name: math.fsum(share * np.asarray(each, float)) for name, each in columns.items()}


def summarise(
    rounds: Columns, targets: tuple[float, ...], threshold_s: float | None, spans: Columns
) -> dict:
    """The part of summary.json that follows from the tables; what does not exist is null.

    Args:
        rounds: columns of the table rounds; beside those of all runs the task's own metric.
        targets: accuracies whose time, bits and joules are reported.
        threshold_s: T_th, s; None: none.
        spans: columns of the table spans.
    """
    column = {name: np.asarray(values, float) for name, values in rounds.items()}
    seen = np.flatnonzero(~np.isnan(column["accuracy"]))
    selected = column["selected"].sum()
    own = {name: _last(column[name]) for name in column if name not in SCHEMAS["rounds"]}
    return {
        "latency_threshold_s": threshold_s,
        "final_accuracy": _last(column["accuracy"]),
        "final_loss": _last(column["loss"]),
        **({"final_metric": own} if own else {}),
        "best_accuracy": float(column["accuracy"][seen].max()) if seen.size else None,
        "targets": {f"{target:.12g}": to_target(rounds, target, spans) for target in targets},
        "time_s": float(column["time_s"][-1]),
        "mean_latency_s": float(column["latency_s"].mean()),
        "max_latency_s": float(column["latency_s"].max()),
        "late_share": _ratio(column["late"].sum(), selected),
        "infeasible_share": _ratio(column["infeasible"].sum(), selected),
        "bits_up": math.fsum(rounds["bits_up"]),
        "bits_down": math.fsum(rounds["bits_down"]),
        "energy_j": math.fsum(rounds["energy_j"]),
        "rho_mean": _mean(column["rho_mean"]),
        "certificate_worst": _max(column["solver_residual"]),
    }


def divergence_warnings(rounds: Columns, params: Mapping[str, object]) -> list[str]:
    """One sentence where a loss was no finite number, with the first round that shows it.

    Args:
        rounds: columns of the table rounds; the loss is inf where that of a device is inf or nan.
        params: of the method, of which those called lr are named as the likely cause.
    """
    diverged = np.flatnonzero(np.isinf(np.asarray(rounds["loss"], float)))
    if not diverged.size:
        return []
    done = int(rounds["round"][diverged[0]]) + 1
    rates = ", ".join(f"{name} {value}" for name, value in params.items() if name.endswith("lr"))
    return [
        f"training diverged: the loss after {counted(done, 'round')} is inf or nan; most "
        "likely a step size is too large" + (f" ({rates})" if rates else "")
    ]


def unsettled_warnings(plans: Columns) -> list[str]:
    """One sentence where plans were taken as they were after their last turn.

    Args:
        plans: columns of the table unsettled_plans.
    """
    if not (count := len(plans["round"])):
        return []
    return [
        f"the plans of {counted(count, 'round')}, first of round {plans['round'][0]}, have not "
        f"settled: what they take for the channel is up to {max(plans['change']):.2%} off what "
        "follows from their shares and powers"
    ]


def promises(forecasts: Columns) -> dict:
    """What plans that count with fading promised; nothing where none did.

    Args:
        forecasts: columns of the table upload_forecasts.

    Returns:
        promised_late_share: mean probability of being late, to be held against late_share; and
        pruning_per_late_share: derivative of the pruning summed over the devices of a round by the
        late share that is accepted of each of them, mean over the rounds.
    """
    late = np.asarray(forecasts["late_probability"], float)
    if not late.size:
        return {}
    rounds = np.unique(np.asarray(forecasts["round"])).size
    price = float(np.asarray(forecasts["pruning_per_late"], float).sum()) / rounds
    return {
        "promised_late_share": float(late.mean()),
        "pruning_per_late_share": price if math.isfinite(price) else None,
    }


def _last(values: np.ndarray) -> float | None:
    seen = values[~np.isnan(values)]
    return float(seen[-1]) if seen.size and math.isfinite(seen[-1]) else None


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


def _mean(values: np.ndarray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None


def _max(values: np.ndarray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.max()) if known.size else None
