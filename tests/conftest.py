"""Settings of hypothesis, and a tiny cell that learns.

Hypothesis has no deadlines and tries the same examples at each run; with HYPOTHESIS_SEARCH=1 in the
environment it tries new ones instead. Generators without a seed of their own begin each test alike.
Temporary folders lie in memory where the system has room for them.
"""

from __future__ import annotations

import functools
import gc
import os
import random
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import typer.testing
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from edgesim import load

# Most tests write small files, which cost ten times as much on a disk.
MEMORY, ROOM_BYTES = Path("/dev/shm"), 4 << 30
CHOSEN = {"PYTEST_DEBUG_TEMPROOT", "TMPDIR"} & os.environ.keys()
if not CHOSEN and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM_BYTES:
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY)

# The runner builds all commands from their annotations at every call, which takes longer than most.
if hasattr(typer.testing, "_get_command"):
    typer.testing._get_command = functools.cache(typer.testing._get_command)

patient = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("search", **patient)
settings.register_profile("repeatable", derandomize=True, **patient)
if os.environ.get("HYPOTHESIS_SEARCH"):
    settings.load_profile("search")
else:
    settings.load_profile("repeatable")
    # It also tries constants of all modules that are loaded by then: the examples of a test would
    # depend on what ran before it, and on edits of any file.
    if hasattr(providers, "_get_local_constants"):
        providers._get_local_constants = lambda: providers._local_constants


def pytest_collection_finish():
    gc.freeze()  # modules stay: not to go through them again and again saves 3 % of the time


TINY = """
name: tiny
rounds: 3
network:
  bandwidth: 1.5 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: [95 dB, 100 dB, 104 dB, 107 dB]}}
devices:
  - {count: 4, tx_power: 23 dBm, idle_power: 0.1 W,
     cpu: {frequency: {uniform: [1 GHz, 3 GHz]}, cycles_per_weight: 100}}
budget: {latency_threshold: 20 ms}
learning:
  dataset: digits
  partition: {kind: labels, labels_per_device: 3}
  samples_per_device: 60
  model: digits-cnn
  batch_size: 10
  method: {name: liu, personal_lr: 0.05, global_lr: 0.05}
"""
FEW = """
name: few
rounds: 3
network:
  bandwidth: 4 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 95 dB}}
devices:
  - count: 4
    tx_power: 23 dBm
    cpu: {frequency: [2 GHz, 1 GHz, 700 MHz, 100 MHz], flops_per_cycle: 4}
allocation: {solver: equal}
learning: {dataset: none, model: mlp, batch_size: 10, method: {name: fedavg}}
"""
TIMED = """\
name: timed
rounds: 3
network:
  bandwidth: 20 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 100 dB}}
devices:
  - {count: 3, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}
budget: {latency_threshold: 25 ms}
learning: {dataset: none, model: mlp, batch_size: 20, method: {name: fedavg}}
allocation: {solver: equal}
"""
ENDLESS = TIMED.replace("name: timed\nrounds: 3", "name: endless\nrounds: 1000000000").replace(
    "100 dB}}", "100 dB}, fading: {kind: rayleigh, coherence: 10 ms}}"
)
RESULTS = (
    *("rounds.csv", "device_rounds.parquet", "spans.parquet", "scores.parquet", "measures.csv"),
    *("summary.json", "model.safetensors", "trace.json", "scenario.yaml", "partition.json"),
    "devices.csv",
)


@pytest.fixture(autouse=True)
def same_random_numbers():
    """What a test draws without a seed does not depend on the tests before it."""
    random.seed(0)
    np.random.seed(0)
    if torch := sys.modules.get("torch"):
        torch.default_generator.manual_seed(0)  # torch.manual_seed keeps a stack trace of each call


@pytest.fixture
def tiny(tmp_path):
    """The file of a cell of four devices that learns the digits in three rounds."""
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return path


@pytest.fixture
def few(tmp_path):
    """few(*changes): four unequal devices that only count time, with changes as ``key=value``."""
    path = tmp_path / "few.yaml"
    path.write_text(FEW)
    return lambda *changes: load(path, list(changes))


@pytest.fixture(scope="session")
def bytes_of():
    """bytes_of(folder): file -> content, of all results of a finished run."""

    def read(folder: Path) -> dict[str, bytes]:
        return {name: (folder / name).read_bytes() for name in RESULTS}

    return read
