"""Nothing that is read back is a pickle, and commands open no socket: seen by Python's audit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCENARIO = """\
name: watched
rounds: 2
network:
  bandwidth: 20 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 100 dB}}
devices:
  - {count: 2, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}
budget: {latency_threshold: 25 ms}
learning:
  dataset: digits
  partition: {kind: iid}
  samples_per_device: 20
  model: mlp
  batch_size: 20
  method: {name: fedavg}
allocation: {solver: equal}
"""
# Runs, resumes from the checkpoint alone, reads a finished run, verifies, compares, reports; one
# figure, as all read the same tables.
WATCHED = """
import os, sys
FORBIDDEN = ("pickle.find_class", "socket.connect", "socket.bind", "os.system")
def watch(event, arguments):
    if event in FORBIDDEN:
        os.write(1, f"{event} {arguments}".encode())
sys.addaudithook(watch)
from typer.testing import CliRunner
from edgesim.cli.app import app
def edgesim(*arguments):
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
edgesim("run", "watched.yaml", "--out", "r")
os.remove("r/summary.json")
edgesim("run", "watched.yaml", "--out", "r")
edgesim("run", "watched.yaml", "--out", "r")
edgesim("verify", "r")
edgesim("compare", "r", "r")
edgesim("report", "r", "figures=accuracy")
"""


@pytest.mark.slow
def test_no_pickle_is_read_and_no_socket_opened(tmp_path):
    (tmp_path / "watched.yaml").write_text(SCENARIO)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    watched = subprocess.run(
        [sys.executable, "-c", WATCHED],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert watched.stdout == ""
