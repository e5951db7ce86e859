"""A folder with tiny scenarios, and the command line."""

import pytest
from typer.testing import CliRunner

from edgesim.cli.app import app

TEXT = """\
name: tiny
rounds: 1
network:
  bandwidth: 20 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 100 dB}}
devices: [{count: 3, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}]
budget: {latency_threshold: 25 ms}
learning: {dataset: none, model: mlp, batch_size: 20, method: {name: fedavg}}
allocation: {solver: equal}
"""
SCHEMES = "schemes: {one: {}, two: {rounds: 2}, three: {rounds: 3}}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(TEXT)
    (tmp_path / "three.yaml").write_text(TEXT + SCHEMES)
    return tmp_path


@pytest.fixture
def invoke():
    """`edgesim ARGUMENTS`, which must end with that exit code and without a traceback."""

    def call(*arguments, code=0):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result

    return call
