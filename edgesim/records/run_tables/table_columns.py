"""The tables of a run: which columns each has, and values of a column as its kind has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

SPANS = {
    "round": int,
    "device": int,
    "phase": str,
    "start_s": float,
    "end_s": float,
    "bits": float,
    "cycles": float,
    "energy_j": float,
}
DEVICE_ROUNDS = {
    "round": int,
    "device": int,
    "status": str,  # arrived | late | failed | left | infeasible, and with jobs that are numbered
    #                 cancelled | discarded | unfinished
    "share": float,
    "rho": float,
    "rate_bps": float,
    "download_s": float,
    "compute_s": float,
    "upload_s": float,
    "finish_s": float,
    "bits_up": float,
    "bits_down": float,
    "flops": float,
    "cycles": float,
    "energy_j": float,
}
ROUNDS = {
    "round": int,
    "time_s": float,
    "latency_s": float,
    "selected": int,
    "arrived": int,
    "late": int,
    "failed": int,
    "infeasible": int,
    "loss": float,
    "accuracy": float,
    "accuracy_std": float,
    "rho_mean": float,
    "rho_max": float,
    "bits_up": float,
    "bits_down": float,
    "flops": float,
    "cycles": float,
    "energy_j": float,
    "solver_residual": float,
    "pruning_per_hz": float,  # derivatives of the summed pruning ratios, see RoundPlan
    "pruning_per_s": float,
}
SCORES = {"round": int, "device": int, "loss": float, "accuracy": float}  # of evaluated rounds
MEASURES = {"round": int, "name": str, "value": float}  # a method's own, of evaluated rounds
PLANS = {"round": int, "budget_s": float, "stretched": int}  # in the checkpoint only
UNSETTLED_PLANS = {"round": int, "change": float}  # see RoundPlan; in the checkpoint only
UPLOAD_FORECASTS = {  # of plans that count with fading, see UploadForecast
    "round": int,
    "device": int,
    "planned_bps": float,
    "late_probability": float,
    "pruning_per_late": float,
}
DEVICE_STATES = {  # at the end of each round, of devices whose state changes as they work
    "round": int,
    "device": int,
    "time_s": float,
    "temperature_c": float,
    "throttled": int,
    "battery_j": float,
    "alive": int,
    "used_j": float,  # these four since the start of the run
    "charged_j": float,
    "throttled_s": float,
    "off_s": float,
}
BACKHAUL = {  # transfers between edges and cloud
    "round": int,
    "edge": int,
    "direction": str,  # down | up
    "start_s": float,
    "end_s": float,
    "bits": float,
    "energy_j": float,
}
PRESENCE = {"device": int, "start_s": float, "end_s": float}  # where devices come and go
FurtherColumns = dict[str, dict[str, type]]  # table -> column -> kind
# Columns of clocks with cancelled or overlapping jobs; tables of other clocks lack them.
JOB_COLUMNS: FurtherColumns = {
    "rounds": {
        "dispatched": int,
        "discarded": int,
        "cancelled": int,
        "unfinished": int,
        "held": int,
        "in_flight": int,
        "staleness_mean": float,
        "staleness_max": float,
    },
    "device_rounds": {
        "job": int,
        "version_in": int,
        "version_out": int,  # -1: not used
        "staleness": int,
        "weight": float,
        "dispatched_s": float,
    },
    "spans": {"job": int},  # -1: none
}
# Columns of runs with edge servers below a cloud; tables of other runs lack them.
TIER_COLUMNS: FurtherColumns = {
    "rounds": {
        "backhaul_bits_up": float,
        "backhaul_bits_down": float,
        "backhaul_energy_j": float,
    },
    "device_rounds": {"edge": int, "edge_round": int},
    "spans": {"edge": int, "edge_round": int},  # -1: waits for other edges
    "upload_forecasts": {"edge": int, "edge_round": int},
}
# Columns of runs in which devices move between sectors.
HANDOVER_COLUMNS: FurtherColumns = {"device_rounds": {"handovers": int}}
# Columns of runs in which blocks are lost by an estimate of the channel.
ERROR_COLUMNS: FurtherColumns = {"device_rounds": {"transmissions": float}}
# Columns of networks of several sectors.
SECTOR_COLUMNS: FurtherColumns = {
    "device_rounds": {"sector": int, "sinr_db": float}  # -1: no upload
}
ROUND_SCHEMAS: dict[str, dict[str, type]] = {  # of clocks without them
    "rounds": ROUNDS,
    "device_rounds": DEVICE_ROUNDS,
    "spans": SPANS,
    "scores": SCORES,
    "measures": MEASURES,
    "plans": PLANS,
    "unsettled_plans": UNSETTLED_PLANS,
    "upload_forecasts": UPLOAD_FORECASTS,
    "device_states": DEVICE_STATES,
    "backhaul": BACKHAUL,
    "presence": PRESENCE,
}
# Columns of runs whose devices come and go by `edgesim.presence`; other tables lack them.
ABSENCE_COLUMNS: FurtherColumns = {"rounds": {"left": int}}
SERVER_COLUMNS: FurtherColumns = {"rounds": {"server_failures": int}}  # if it can fail


def schemas_with(*more: FurtherColumns) -> dict[str, dict[str, type]]:
    """The columns of every table, those of `ROUND_SCHEMAS` first."""
    found = {name: dict(kinds) for name, kinds in ROUND_SCHEMAS.items()}
    for columns in more:
        for name, kinds in columns.items():
            found[name] |= kinds
    return found


FURTHER_COLUMNS = (
    JOB_COLUMNS,
    TIER_COLUMNS,
    ABSENCE_COLUMNS,
    SERVER_COLUMNS,
    ERROR_COLUMNS,
    SECTOR_COLUMNS,
    HANDOVER_COLUMNS,
)
SCHEMAS = schemas_with(*FURTHER_COLUMNS)  # every column that a run can have
DTYPES = {int: np.int64, float: np.float64, str: object}
Columns = dict[str, list | np.ndarray]


def rows_of(columns: Mapping[str, Any]) -> int:
    """How many rows a table has."""
    return len(next(iter(columns.values())))


def typed(values: Any, kind: type) -> list | np.ndarray:
    """A column with values of its kind; arrays stay arrays."""
    if isinstance(values, np.ndarray):
        return values.astype(DTYPES[kind], copy=False)
    return [kind(value) for value in values]


def joined(blocks: Sequence[Columns], schema: Mapping[str, type]) -> Columns:
    """Blocks of one table, one behind the other; a list if all blocks are lists."""
    if len(blocks) == 1:
        return dict(blocks[0])
    return {
        column: _concatenated([block[column] for block in blocks], kind)
        for column, kind in schema.items()
    }


def _concatenated(parts: Sequence[list | np.ndarray], kind: type) -> list | np.ndarray:
    if all(isinstance(part, list) for part in parts):
        return [value for part in parts for value in part]
    return np.concatenate([np.asarray(part, dtype=DTYPES[kind]) for part in parts])


def as_list(values: list | np.ndarray) -> list:
    """A column as a list of Python's own numbers and strings."""
    return values.tolist() if isinstance(values, np.ndarray) else values
