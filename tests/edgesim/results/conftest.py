"""Folders of real runs and sweeps without training, made once and copied to be damaged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import edgesim

BAND = "network.bandwidth"
TINY = """
name: tiny
rounds: 3
network: {bandwidth: 5 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 100 dB}}}
devices:
  - count: 2
    tx_power: 23 dBm
    cpu: {frequency: {uniform: [1 GHz, 3 GHz]}, cycles_per_weight: 100}
allocation: {solver: equal}
learning: {dataset: none, model: mlp, batch_size: 20, method: {name: fedavg, lr: 0.1}}
"""


@pytest.fixture(scope="session")
def tiny_scenario(tmp_path_factory) -> Path:
    """A scenario of two devices and three rounds that trains nothing."""
    path = tmp_path_factory.mktemp("tiny") / "tiny.yaml"
    path.write_text(TINY, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def finished_folder(tiny_scenario, tmp_path_factory) -> Path:
    """The folder of a finished run of it; only to be read."""
    folder = tmp_path_factory.mktemp("made") / "run"
    edgesim.simulate(edgesim.load(tiny_scenario), out=folder)
    return folder


@pytest.fixture
def copied_run(finished_folder, tmp_path):
    """copied_run(name) -> a copy of that folder."""

    def copy(name: str) -> Path:
        return Path(shutil.copytree(finished_folder, tmp_path / name))

    return copy


@pytest.fixture
def run(copied_run) -> Path:
    """A copy of that folder, which may be damaged: without SHA256SUMS, as of foreign origin."""
    folder = copied_run("a")
    (folder / "SHA256SUMS").unlink()
    (folder / "timing.json").unlink()  # its digest says that there were sums
    return folder


@pytest.fixture(scope="session")
def four_runs(tiny_scenario, tmp_path_factory):
    """Two bands and two seeds in one folder; only to be read."""
    place = tmp_path_factory.mktemp("four") / "tiny"
    for band in (5, 10):
        scenario = edgesim.load(tiny_scenario, [f"{BAND}={band} MHz"])
        for seed in (0, 1):
            edgesim.simulate(scenario, seed=seed, out=place / f"{band}-{seed}")
    return place


@pytest.fixture
def swept(four_runs, tmp_path):
    """A sweep of three points, of which one has failed."""
    place, points = tmp_path / "all" / "sweep", []
    for name in ("5-0", "10-0"):
        shutil.copytree(four_runs / name, place / "points" / name)
        points.append({"folder": f"points/{name}", "status": "done", "error": None})
    points.append({"folder": "points/none", "status": "failed", "error": "no such luck"})
    for point, band in zip(points, ("5MHz", "10MHz", "1GHz"), strict=True):
        point |= {"label": "fedavg", "seed": 0, "values": {BAND: band}}
    (place / "sweep.json").write_text(json.dumps({"points": points, "linked": []}))
    return place
