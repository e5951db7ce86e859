"""What a finished run leaves in its folder, beside the checkpoint."""

from __future__ import annotations

import math
import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from edgesim.records.event_log import EventLog
from edgesim.records.perfetto_trace import trace_json
from edgesim.records.run_folder import write_atomic, write_json
from edgesim.runs.user_code import plain_user_files


def keep(
    path: Path, setup: Any, log: EventLog, state: Any, summary: dict, spent: dict[str, Any]
) -> None:
    """Write all files of a finished run; summary.json comes last and says that the rest is there.

    Args:
        setup: the run's `Setup`.     state: the method's last state.     spent: wall seconds by purpose, the executor.
    """
    from safetensors.numpy import save

    arrays, _ = state.to_arrays()
    provenance = {**versions(), "git": git_state()}
    log.write_tables(path)
    for name in plain_user_files(
        setup.scenario
    ):  # so that the resolved scenario runs again from here
        write_atomic(path / name, (setup.scenario.folder / name).read_bytes())
    write_atomic(path / "scenario.yaml", setup.scenario.to_yaml(provenance, seed=setup.seed))
    write_atomic(path / "model.safetensors", save(arrays))
    write_atomic(path / "trace.json", trace_json(log.columns("spans")))
    if not setup.counts_only:
        write_json(path / "partition.json", partition(setup.task.data))
    write_atomic(path / "devices.csv", devices_csv(setup))
    write_json(path / "timing.json", spent)
    write_json(path / "summary.json", summary)


def partition(data: Any) -> dict:
    """Who holds what: training samples per device and label."""
    return {"labels": list(data.classes), "counts": data.label_counts().tolist()}


def devices_csv(setup: Any) -> str:
    """Who is in the cell: one line a device, with what round 0 has: the rate over the whole band, the capability."""
    fleet, air = setup.fleet, setup.channel
    columns = {
        "distance_m": fleet.distance_m,
        "path_gain_db": [10 * math.log10(gain) for gain in air.path_gain],
        "tx_power_w": fleet.tx_power_w,
        "cpu_hz": fleet.cpu_hz,
        "capability": fleet.capability,
        "model_budget": fleet.model_budget,
        "rate_bps": air.rate_bps(1.0, fleet.tx_power_w, air.gains(0.0)),
    }
    lines = [",".join(["device", *columns, "samples"])]
    texts = [
        ["" if math.isnan(x) else repr(x) for x in np.asarray(column).tolist()]
        for column in columns.values()
    ]
    for k, row in enumerate(zip(*texts, setup.task.samples.tolist(), strict=True)):
        lines.append(f"{k},{','.join(row[:-1])},{row[-1]}")
    return "\n".join(lines) + "\n"


@cache
def versions() -> dict[str, str]:
    """Versions that can move the last bits of a result. Read once: each takes a millisecond."""
    names = ("edgesim", "numpy", "torch", "simpy", "cvxpy")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def git_state() -> str:
    """Commit of the code, with +changes where the work tree differs; unknown outside of a checkout."""
    git = [
        "git",
        "-C",
        str(Path(__file__).parent),
        "describe",
        "--always",
        "--dirty=+changes",
        "--exclude=*",
    ]
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
