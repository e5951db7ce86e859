"""Scores of the devices of all edges: means over devices are those of one cell."""

from __future__ import annotations

import numpy as np
import pytest

from edgesim import load, simulate

LINES = """
name: lines
rounds: 1
network: {bandwidth: 4 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 95 dB}}}
devices: [{count: 4, tx_power: 23 dBm, cpu: {frequency: 1 GHz, flops_per_cycle: 4}}]
allocation: {solver: equal}
learning:
  dataset: ./lines.npz
  partition: {kind: natural}
  validation: 0.2
  metric: ./line.py:distance
  model: ./line.py:Line
  batch_size: 2
  method: {name: fedavg, lr: 0.1, local_steps: 1}
"""
LINE = """
import torch


class Line(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Linear(1, 1, bias=False)

    def forward(self, x):
        return self.w(x)


def distance(outputs, y):
    return (outputs - y).abs().mean(1)
"""
SAMPLES, TESTED = (10, 2, 5, 2), (2, 0, 1, 0)  # device 1 holds nothing out, and has no test data


@pytest.mark.parametrize("members", [[0, 0, 1, 0], [0, 0, 0, 1]])
def test_measures_are_means_over_the_devices_that_have_data(tmp_path, members):
    (tmp_path / "lines.yaml").write_text(LINES)
    (tmp_path / "line.py").write_text(LINE)
    data = {}
    for part, counts in (("train", SAMPLES), ("test", TESTED)):
        owner = np.repeat(np.arange(4), counts)
        data[f"x_{part}"] = np.ones((len(owner), 1), dtype=np.float32)
        data[f"y_{part}"] = 2.0 + owner[:, None].astype(np.float32)
        data[f"clients_{part}"] = owner
    np.savez(tmp_path / "lines.npz", **data)
    tiers = f"tiers={{edges: [{{}}, {{}}], association: list, members: {members}}}"
    star, edges = (
        simulate(load(tmp_path / "lines.yaml", more), allow_code=True) for more in ([], [tiers])
    )
    one, other = (run.measures.set_index("name").value for run in (star, edges))
    assert sorted(one.index) == ["metric distance", "validation_loss"] == sorted(other.index)
    assert other.to_dict() == pytest.approx(one.to_dict(), rel=1e-6)
    assert edges.rounds.loss[0] == pytest.approx(star.rounds.loss[0], rel=1e-6)
