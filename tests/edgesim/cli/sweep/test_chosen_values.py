"""edgesim sweep --select: the table, the warning, and a scenario that can be run."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from edgesim.cli.app import app
from edgesim.cli.sweep.chosen_values import grid_in_words
from edgesim.results.best_validation import Candidate, Choice
from edgesim.scenario.loader import expand
from edgesim.sweep.workers.point_task import ENDED, PointOutcome, WorkerEvent

SCENARIO = """\
name: chosen
rounds: 4
clock: {mode: synchronous}
network:
  bandwidth: 20 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 100 dB}}
devices: [{count: 3, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}]
allocation: {solver: equal}
learning:
  dataset: digits
  partition: {kind: iid}
  model: mlp
  batch_size: 20
  method: {name: fedavg, local_steps: 10, lr: 0.1}
schemes:
  averaged: {sweep: {learning.method.lr: [0.001, 0.01, 0.3]}}
  partial:
    learning: {method: {name: fedsim}}
    sweep: {"learning.method.personal_lr:learning.method.global_lr": "0.001:0.001,0.3:0.3,60:60"}
"""


def command(*words):
    return CliRunner().invoke(app, ["sweep", "scenario.yaml", *words, "--workers", "1"])


@pytest.mark.slow
def test_the_choice_is_shown_and_can_be_run(tmp_path, monkeypatch):
    from tests.edgesim.sweep.conftest import InProcessWorkers

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("edgesim.sweep.workers.local_workers.LocalWorkers", InProcessWorkers)
    Path("scenario.yaml").write_text(SCENARIO)
    options = ("learning.validation=0.2", "--out", "tuned", "--select", "best-validation")
    result = command("evaluate.every=2", "~clock", *options)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    (averaged,) = [line for line in lines if line.startswith("averaged ")]
    (partial,) = [line for line in lines if line.startswith("partial ")]
    assert averaged.split()[1:5] == ["lr=0.3", "0.001", "to", "0.3"]
    assert partial.split()[1:5] == ["global_lr=personal_lr=0.3", "0.001", "to", "60"]
    edge = "averaged: learning.method.lr=0.3 is at the edge of its values; widen them"
    assert [line for line in lines if "edge" in line] == [edge]
    chosen = {label: s.learning.method.params for label, s in expand("tuned/best-validation.yaml")}
    assert chosen["averaged"]["lr"] == 0.3 and chosen["partial"]["personal_lr"] == 0.3
    assert {s.evaluate.every for _, s in expand("tuned/best-validation.yaml")} == {2}
    head, text = Path("tuned/best-validation.yaml").read_text().split("base:")
    assert "validation" not in text and "run it with '~clock' too" in head
    assert lines[-1].endswith("the scenario with these values; run it with '~clock'")


def test_without_samples_held_out_nothing_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("scenario.yaml").write_text(SCENARIO)
    result = command("--select", "best-validation")
    assert (result.exit_code, Path("runs").exists()) == (2, False)
    assert "--select needs samples that are held out; add learning.validation=0.2" in result.output


def test_real_targets_are_refused_before_anything_is_run(tmp_path, monkeypatch):
    """They were when all points had run."""
    monkeypatch.chdir(tmp_path)
    x = np.linspace(-1.0, 1.0, 80, dtype=np.float32).reshape(40, 2)
    np.savez("real.npz", x_train=x, y_train=x.sum(1), x_test=x, y_test=x.sum(1))
    Path("scenario.yaml").write_text(SCENARIO.replace("digits", "./real.npz"))
    result = command(
        "rounds=1", "learning.validation=0.2", "--only", "averaged", "--select", "best-validation"
    )
    assert (result.exit_code, Path("runs").exists()) == (2, False), result.output
    assert "--select chooses by accuracy, which real targets do not have" in result.output
    assert "compare the validation_loss in the measures of the sweep" in result.output


@pytest.mark.parametrize(("status", "code"), [("failed", 1), ("infeasible", 3)])
def test_points_that_are_not_done_end_it_with_the_exit_code_of_a_sweep(
    tmp_path, monkeypatch, status, code
):
    """It was 2 for each, as for bad input."""
    from tests.edgesim.sweep.conftest import InProcessWorkers

    class Refused(InProcessWorkers):
        def events(self, timeout_s):
            yield WorkerEvent(ENDED, self.tasks.pop().id, PointOutcome(status, "no luck"))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("edgesim.sweep.workers.local_workers.LocalWorkers", Refused)
    Path("scenario.yaml").write_text(SCENARIO)
    result = command("learning.validation=0.2", "--only", "averaged", "--select", "best-validation")
    assert f"lr=0.001 is {status}; --select needs every point" in result.stderr
    assert result.exit_code == code


def test_one_value_tried_is_printed_alone():
    tried = [{"name": "fedavg", "lr": lr} for lr in ("0.01", "0.1")]
    grid = Choice("fedavg", tuple(Candidate(values, 0.5, 1) for values in tried))
    assert grid_in_words(grid) == "fedavg, 0.01 to 0.1 (2)"
