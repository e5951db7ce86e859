"""A small cell under tiers, and quadratic losses that are solved by hand."""

from __future__ import annotations

import pytest

from edgesim import load

CELL = """
name: four
rounds: 3
network:
  bandwidth: 4 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: [95 dB, 97 dB, 93 dB, 99 dB]}}
devices:
  - count: 4
    tx_power: 23 dBm
    idle_power: 0.1 W
    cpu: {frequency: [2 GHz, 1 GHz, 700 MHz, 500 MHz], flops_per_cycle: 4}
    model_budget: [1, 0.25, 0.25, 1]
budget: {latency_threshold: 20 s}
allocation: {solver: equal}
learning:
  dataset: digits
  partition: {kind: labels, labels_per_device: 3}
  samples_per_device: 20
  model: mlp
  batch_size: 10
  method: {name: fedavg, lr: 0.05}
"""
ONE = "tiers={edges: [{}], association: list, members: [0, 0, 0, 0]}"
TWO = "tiers={edges: [{}, {}], association: list, members: [0, 1, 0, 1]}"


@pytest.fixture
def scenario(tmp_path):
    """scenario(*changes) -> the cell of four devices with them."""
    path = tmp_path / "four.yaml"
    path.write_text(CELL)
    return lambda *changes: load(path, changes)
