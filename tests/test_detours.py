"""What training could not do as chosen is said at the end of a run and in summary.json, and changes
no result.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from edgesim import load, simulate
from edgesim.cli.app import app
from fl.executors import batched
from fl.stacked_training.vmapped_gradients import VmappedGradients

CELL = """
name: four
rounds: 2
network: {bandwidth: 4 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 95 dB}}}
devices: [{count: 4, tx_power: 23 dBm, cpu: {frequency: 2 GHz, flops_per_cycle: 4}}]
allocation: {solver: equal}
learning:
  dataset: digits
  partition: {kind: iid}
  samples_per_device: 20
  model: liu-cnn
  batch_size: 10
  method: {name: fedavg, lr: 0.1, local_steps: 2}
"""
TABLES = (
    "rounds.csv",
    "device_rounds.parquet",
    "spans.parquet",
    "scores.parquet",
    "model.safetensors",
)


@pytest.mark.slow
def test_a_run_that_was_interrupted_says_the_same_detours(tmp_path, monkeypatch):
    """They are counted from the first round on, not from where the run went on: every file has the
    same bytes.
    """

    class Stop(Exception):
        pass

    def after_the_second(event):
        if event["kind"] == "round" and event["round"] == 1:
            raise Stop

    unknown(monkeypatch)
    (tmp_path / "four.yaml").write_text(CELL)
    scenario = load(tmp_path / "four.yaml", ["rounds=3", "learning.executor=batched"])
    simulate(scenario, out=tmp_path / "straight")
    with pytest.raises(Stop):
        simulate(scenario, out=tmp_path / "stopped", progress=after_the_second)
    simulate(scenario, out=tmp_path / "stopped")
    assert "(12 jobs)" in (tmp_path / "straight" / "summary.json").read_text()
    for name in (*TABLES, "summary.json"):
        assert (tmp_path / "straight" / name).read_bytes() == (
            tmp_path / "stopped" / name
        ).read_bytes(), name


@pytest.fixture
def run(tmp_path):
    """Runs the scenario with an executor into a folder; what the command said, and the folder."""
    (tmp_path / "four.yaml").write_text(CELL)

    def make(executor: str, name: str, model: str) -> tuple[str, Path]:
        command = [
            "run",
            str(tmp_path / "four.yaml"),
            f"learning.executor={executor}",
            f"learning.model={model}",
            "--out",
            str(tmp_path / name),
        ]
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
        return result.output, tmp_path / name

    return make


def too_small(monkeypatch) -> None:
    """The memory holds two models."""
    train = batched.train_stack

    def small(task, gradients, rows, *rest):
        if len(rows) > 2:
            raise torch.OutOfMemoryError
        return train(task, gradients, rows, *rest)

    monkeypatch.setattr(batched, "train_stack", small)


def unknown(monkeypatch) -> None:
    """The architecture has an operation that vmap does not know."""

    def refuse(*_):
        raise NotImplementedError("no batching rule for aten::knead")

    monkeypatch.setattr(VmappedGradients, "__call__", refuse)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trouble", "model", "reference", "reported"),
    [
        (too_small, "mlp", "batched", "too large for the memory"),
        (unknown, "liu-cnn", "resident", "no batching rule for aten::knead"),
    ],
)
def test_a_detour_is_reported_and_changes_nothing(
    run, monkeypatch, tmp_path, trouble, model, reference, reported
):
    _, straight = run(reference, "straight", model)
    trouble(monkeypatch)
    output, round_about = run("batched", "round-about", model)
    detours = json.loads((round_about / "summary.json").read_text())["training"]["detours"]
    assert detours and all(reported in detour and detour in output for detour in detours)
    assert json.loads((straight / "summary.json").read_text())["training"]["detours"] == []
    for table in TABLES:
        assert (straight / table).read_bytes() == (round_about / table).read_bytes(), table
