"""kill -9 in the middle of a version, under every clock: the run goes on with the same bytes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

CELL = """
name: four
rounds: 12
network:
  bandwidth: 4 MHz
  noise: -110 dBm
  channel: {{path_loss: {{model: constant, loss: 95 dB}}}}
  uplink: {{share: {share}}}
devices:
  - count: 4
    tx_power: 23 dBm
    idle_power: 0.1 W
    failure_rate: 20 Hz
    cpu: {{frequency: [2 GHz, 1 GHz, 700 MHz, 100 MHz], flops_per_cycle: 4}}
    {more}
budget: {{latency_threshold: 25 ms}}
allocation: {{solver: equal}}
clock: {{{clock}}}
learning: {{dataset: none, model: mlp, batch_size: 10, method: {{name: fedavg{asked}}}}}
"""
BUFFERED = "mode: buffered, buffer: 2"
LEAVE = "presence: {kind: onoff, on: 20 ms, off: 10 ms}"
CLOCKS = {  # clock, and what else is not as in the other cells
    "synchronous": ("mode: synchronous", {}),
    "deadline": ("mode: deadline", {}),
    "overcommit": ("mode: overcommit, over_commit: 1.4", {"asked": ", participants: 3"}),
    "buffered": (BUFFERED, {}),
    "until-used": (f"{BUFFERED}, slot: until_used", {}),
    "asynchronous": ("mode: asynchronous, max_staleness: 2", {}),
    "window": ("mode: window, window: 4 ms", {}),
    "tt-fed": ("mode: tt-fed, window: 5 ms", {}),
    "speed-tiers": ("mode: speed-tiers, speed_tiers: 2", {}),
    "shared-band": (BUFFERED, {"share": "fair"}),
    "presence": (BUFFERED, {"more": f"{LEAVE}\n    on_leave: resume"}),
}
TABLES = ("rounds.csv", "device_rounds.parquet", "spans.parquet", "summary.json")


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """(folder, kills of each clock) of one program that runs and kills them all."""
    folder = tmp_path_factory.mktemp("killed")
    for name, (clock, more) in CLOCKS.items():
        given = {"share": "fixed", "more": "", "asked": "", **more}
        (folder / f"{name}.yaml").write_text(CELL.format(clock=clock, **given))
    program = [sys.executable, str(Path(__file__).with_name("killed_runs.py"))]
    said = subprocess.run(
        [*program, *sorted(map(str, folder.glob("*.yaml")))],
        cwd=Path(__file__).parents[4],
        capture_output=True,
        check=True,
        text=True,
        timeout=300,
    ).stdout
    return folder, json.loads(said)


@pytest.mark.slow
@pytest.mark.parametrize("clock", CLOCKS)
def test_killed_in_the_middle_of_versions_it_goes_on_with_the_same_bytes(killed, clock):
    folder, kills = killed
    (first, begun), (second, later) = kills[clock]
    assert first == second == signal.SIGKILL
    assert 0 < begun < later < 12
    for name in TABLES:
        one, other = (folder / clock / run / name for run in ("whole", "killed"))
        assert one.read_bytes() == other.read_bytes(), name
