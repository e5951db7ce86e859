"""Finished runs and a sweep without training, made once and copied to be changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import edgesim

STATIC = """
name: static
rounds: 3
network: {bandwidth: 1.2 MHz, noise: -110 dBm,
          channel: {path_loss: {model: constant, loss: [98 dB, 100 dB, 103 dB]}}}
devices:
  - {count: 3, tx_power: 23 dBm, idle_power: 0.1 W,
     cpu: {frequency: {uniform: [1 GHz, 3 GHz]}, cycles_per_weight: 100}}
budget: {latency_threshold: 30 ms}
allocation: {solver: kkt}
learning: {dataset: none, model: digits-cnn, batch_size: 20, method: {name: liu}}
"""


@pytest.fixture(scope="session")
def static_scenario(tmp_path_factory) -> Path:
    """Liu's method on a channel that stands still; nothing is trained."""
    path = tmp_path_factory.mktemp("static") / "static.yaml"
    path.write_text(STATIC, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def static_run(static_scenario, tmp_path_factory) -> Path:
    """The folder of a finished run of it; only to be read."""
    folder = tmp_path_factory.mktemp("made") / "run"
    edgesim.simulate(edgesim.load(static_scenario), out=folder)
    return folder


@pytest.fixture
def copied(static_run, tmp_path) -> Path:
    """A copy of that folder, which may be changed."""
    return Path(shutil.copytree(static_run, tmp_path / "run"))
