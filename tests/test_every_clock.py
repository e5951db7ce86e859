"""Every method under the clocks with overlapping jobs: what they have in common with rounds."""

from __future__ import annotations

import numpy as np
import pytest

from edgesim import load, simulate
from fl.methods import available, resolve

CELL = """
name: three
rounds: 3
network:
  bandwidth: 4 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 95 dB}}
devices:
  - count: 3
    tx_power: 23 dBm
    cpu: {frequency: [2 GHz, 1 GHz, 300 MHz], flops_per_cycle: 4}
    model_budget: [1, 0.25, 0.25]
budget: {latency_threshold: 20 s}
allocation: {solver: equal}
learning:
  dataset: digits
  partition: {kind: labels, labels_per_device: 3}
  samples_per_device: 20
  model: mlp
  batch_size: 10
  method: {name: fedavg}
"""
PARAMS = {
    "liu": "personal_lr: 0.05, global_lr: 0.05",
    "fedalt": "personal_lr: 0.05, global_lr: 0.05",
    "fedsim": "personal_lr: 0.05, global_lr: 0.05",
    "fedmap": "phase_rounds: 1",
}
USED = "clock={mode: buffered, buffer: 3, slot: until_used}"
STALE = "clock={mode: buffered, buffer: 2}"
SINGLE = "clock={mode: asynchronous}"
FAST = ("fedavg", "liu", "scaffold", "fedpm")
TAKES_STALE = [
    pytest.param(name, marks=() if name in FAST else pytest.mark.slow)
    for name in available()
    if resolve(name).stale != "refuse"
]


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "three.yaml"
    path.write_text(CELL)

    def make(name, *changes):
        params = PARAMS.get(name, "lr: 0.05" + (", local_steps: 2" if name == "fedavg" else ""))
        return load(path, [f"learning.method={{name: {name}, {params}}}", *changes])

    return make


@pytest.mark.parametrize("name", TAKES_STALE)
def test_a_full_buffer_of_all_devices_is_the_synchronous_clock(scenario, name):
    """K = M = N, slots taken until used: every column that both have, bit for bit."""
    rounds, buffered = (simulate(scenario(name, *changes)) for changes in ([], [USED]))
    for table in ("rounds", "scores", "measures"):
        one, two = getattr(rounds, table), getattr(buffered, table)
        for column in one.columns:
            assert np.array_equal(one[column], two[column], equal_nan=one[column].dtype == float), (
                table,
                column,
            )
    assert (buffered.rounds.staleness_max == 0).all() and (buffered.rounds.held == 0).all()


@pytest.mark.parametrize("name", TAKES_STALE)
def test_stale_updates_are_used(scenario, name):
    for clock in (STALE, SINGLE):
        run = simulate(scenario(name, clock, "rounds=6"))
        used = run.device_rounds[run.device_rounds.version_out >= 0]
        assert (used.staleness == used.version_out - 1 - used.version_in).all()
        assert used.staleness.max() > 0 and used.weight.to_numpy() == pytest.approx(
            (1.0 + used.staleness.to_numpy()) ** -0.5
        )
        assert np.isfinite(run.rounds.loss).all() and run.rounds.accuracy.between(0, 1).all()
        assert run.rounds.bits_up.sum() == pytest.approx(
            run.spans.bits[run.spans.phase == "upload"].sum()
        )
        assert run.rounds.energy_j.sum() == pytest.approx(run.spans.energy_j.sum())
