"""The files that a finished run writes into its folder, beside the checkpoint."""

from __future__ import annotations

import csv
import math
import platform
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from edgesim.extensions.entry_points import entries_named
from edgesim.hierarchy.edge_cells import gathered
from edgesim.network.device import Fleet
from edgesim.network.interference.sector_channel import SectorChannel
from edgesim.network.make_channel import receiver_loss
from edgesim.records.atomic_files import json_text, write_atomic
from edgesim.records.checksums import SummedFiles
from edgesim.records.event_log import EventLog
from edgesim.records.perfetto_trace import trace_json
from edgesim.records.summary import promises, summarise
from edgesim.runs.own_files import keep_own_files
from edgesim.runs.setup.setup import Setup
from edgesim.scenario.radio.channel_schema import Tr38901PathLoss
from fl.contracts import State
from fl.data.samples import Federated
from fl.stored_files import BLANK, sealed

NO_SECTOR = -1  # of devices that no sector reaches


def write_artifacts(
    path: Path,
    setup: Setup,
    resolved: str,
    log: EventLog,
    state: State,
    summary: dict,
    timing: dict[str, Any],
) -> None:
    """Write all files of a finished run; summary.json comes last and marks it finished.

    Args:
        path: of the run's folder.
        setup: what was run.
        resolved: content of scenario.yaml, from `resolved_scenario`.
        log: the event log, frozen.
        state: the method's last state.
        summary: content of summary.json.
        timing: content of timing.json: wall seconds by purpose, executor, memory.
    """
    from safetensors.numpy import save

    arrays, _ = state.to_arrays()
    (path / "summary.json").unlink(missing_ok=True)  # of a run whose files are written again
    files = SummedFiles()
    log.write_tables(path, files.write)
    keep_own_files(path, setup, files)
    files.write(path / "scenario.yaml", resolved)
    files.write(path / "model.safetensors", save(arrays))
    files.write(path / "trace.json", trace_json(log.columns("spans")))
    if not setup.counts_only:
        files.write(path / "partition.json", json_text(partition(setup.task.data)))
    files.write(path / "devices.csv", devices_csv(setup))
    # Wall seconds differ from run to run; with its own digest, it leaves SHA256SUMS the same.
    write_atomic(path / "timing.json", sealed(json_text({**timing, "digest": BLANK}).encode()))
    text = json_text(summary)
    files.add("summary.json", text)
    files.write_sums(path)
    write_atomic(path / "summary.json", text)


def resolved_scenario(setup: Setup) -> str:
    """scenario.yaml: every key with its value, the seed, and what made the run."""
    packages = [entry.dist for entry in entries_named(setup.scenario) if entry.dist]
    provenance = {**versions(), **{each.name: each.version for each in packages}}
    provenance |= {"git": git_state()}
    return setup.scenario.to_yaml(provenance, seed=setup.seed)


def summary_of(
    setup: Setup, log: EventLog, warnings: list[str], detours: Sequence[str] = ()
) -> dict[str, Any]:
    """summary.json: what was run, and the figures that follow from the event log.

    Args:
        setup: what was run.
        log: the event log.
        warnings: of the check before the run, and of the run.
        detours: what the training could not do as chosen and did in another way; it changes no
            other number.
    """
    scenario = setup.scenario
    return {
        "scenario": scenario.name,
        "scheme": scenario.label,
        "method": scenario.learning.method.name,
        "solver": scenario.allocation.solver,
        "seed": setup.seed,
        "rounds": len(log.columns("rounds")["round"]),
        "devices": len(setup.fleet),
        **({"edges": len(setup.edges)} if setup.edges else {}),
        "weights": setup.method.weights(),
        "training": {"arithmetic": setup.arithmetic(), "detours": list(detours)},
        "warnings": warnings,
        "stretched_rounds": log.stretched_rounds,
        **summarise(
            log.tables["rounds"],
            scenario.evaluate.targets,
            scenario.budget.latency_threshold_s,
            log.columns("spans"),
        ),
        **promises(log.columns("upload_forecasts")),
    }


def partition(data: Federated) -> dict:
    """Who holds what: training samples per device and label."""
    counts = data.label_counts()
    by_label = data.classes and not data.at_every_step
    return {"labels": list(data.classes) if by_label else ["samples"], "counts": counts.tolist()}


def devices_csv(setup: Setup) -> str:
    """The devices of the cell in round 0, one a line; the rate is that over the whole band."""
    columns = device_columns(setup)
    if setup.task.data.clients is not None:
        columns["client"] = setup.task.data.clients
    texts = [
        ["" if x != x else str(x) for x in np.asarray(column).tolist()]
        for column in columns.values()
    ]
    lines = StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(["device", *columns, "samples"])
    samples = setup.task.samples.tolist()
    writer.writerows(zip(range(len(samples)), *texts, samples, strict=True))
    return lines.getvalue()


def device_columns(setup: Setup) -> dict[str, Any]:
    """Columns [K] of devices.csv; with tiers, as each device's own edge sees it."""
    if setup.hierarchy:
        edges, here = setup.hierarchy.edges, [device_columns(edge) for edge in setup.edges]
        columns = {name: gathered(edges, [each[name] for each in here]) for name in here[0]}
        if "x_m" in columns:
            columns |= {"x_m": setup.fleet.x_m, "y_m": setup.fleet.y_m}
        return columns | {"edge": setup.hierarchy.edge_of}
    fleet, channel = setup.fleet, setup.channel
    # the channel counts what the receiver loses as a part of the path
    path_gain = channel.path_gain * receiver_loss(setup.scenario.network)
    sent_w = channel.sent_w(1.0, fleet.tx_power_w, 0.0)
    return {
        "distance_m": fleet.distance_m,
        "path_gain_db": [10 * math.log10(gain) if gain else -math.inf for gain in path_gain],
        "tx_power_w": fleet.tx_power_w,
        "cpu_hz": fleet.cpu_hz,
        "capability": fleet.capability,
        "model_budget": fleet.model_budget,
        "rate_bps": channel.flow_bps(0.0, np.arange(len(fleet)), 1.0, sent_w, channel.gains(0.0)),
        **placed(setup),
    }


def placed(setup: Setup) -> dict[str, np.ndarray]:
    """Columns on the places of the devices, where the scenario gives places."""
    scenario, fleet, links = setup.scenario, setup.fleet, setup.channel.links
    columns: dict[str, np.ndarray] = {}
    if isinstance(setup.channel, SectorChannel):
        return sectors(setup.channel, fleet)
    by_position = isinstance(scenario.network.channel.path_loss, Tr38901PathLoss)
    given = any(each.position is not None or each.mobility for each in scenario.devices)
    if by_position or given:
        columns |= {"x_m": fleet.x_m, "y_m": fleet.y_m}
    if by_position and links is not None:
        columns |= {"line_of_sight": links.line_of_sight * 1, "indoor": links.indoor * 1}
        columns |= {"shadowing_db": links.shadowing_db}
    return columns


def sectors(channel: SectorChannel, fleet: Fleet) -> dict[str, np.ndarray]:
    """The same columns in a network: those towards the sector that serves a device at the start.

    A device that no sector reaches has the number of one in the channel, and here -1.
    """
    away = channel.couplings.own == 0.0
    sector = np.where(away, NO_SECTOR, channel.couplings.serving)
    columns = {"x_m": fleet.x_m, "y_m": fleet.y_m, "sector": sector}
    if channel.sites is not None:
        columns["distance_m"] = np.where(away, np.nan, channel.sites.distance_m)
        columns["line_of_sight"] = channel.sites.line_of_sight * 1
    return columns


def peak_memory_bytes() -> int | None:
    """Peak memory of this process plus that of its largest ended child, bytes; None: unknown.

    What a child shares with this process counts twice.
    """
    try:
        import resource
    except ImportError:  # not Unix
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return unit * sum(resource.getrusage(kind).ru_maxrss for kind in kinds)


@cache
def versions() -> dict[str, str]:
    """Versions of what can change the last bits of a result."""
    names = "edgesim", "numpy", "scipy", "torch", "simpy", "cvxpy", "clarabel", "highspy"
    return {"python": platform.python_version(), **{name: _version(name) for name in names}}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # edgesim runs from its folder, too
        return "not installed"


@cache
def git_state() -> str:
    """Commit of the code, +changes where the work tree differs; unknown without checkout or git.

    Asked once, as the process keeps its code.
    """
    folder = str(Path(__file__).parent)
    git = ["git", "-C", folder, "describe", "--always", "--dirty=+changes", "--exclude=*"]
    try:
        done = subprocess.run(git, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown (git cannot be run)"
    return done.stdout.strip() or "unknown"
