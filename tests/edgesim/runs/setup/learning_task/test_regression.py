"""Real targets, losses and metrics of one's own: what is trained, measured, written and refused."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import torch

from edgesim import load, load_run, simulate
from edgesim.cli.run_progress import RunProgress, print_runs
from edgesim.errors import RunError, ScenarioError
from edgesim.records.run_tables.table_columns import ROUNDS

YAML = """
name: real
rounds: 2
network: {bandwidth: 1 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 100 dB}}}
devices: [{count: 3, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}]
allocation: {solver: equal}
learning: {dataset: none.npz, partition: {kind: iid}, model: mlp, batch_size: 10,
           method: {name: fedavg, lr: 0.1, local_steps: 1}}
"""
CODE = """
def within(outputs, y):
    return ((outputs - y).abs() < 1).float().mean(1)

def halved(outputs, y):
    return (outputs - y).square().mean(1) / 2

def one_number(outputs, y):
    return (outputs - y).square().mean()

def of_targets(outputs, y):
    return y.square().mean(1)

def close(outputs, y):
    return ((outputs - y).abs() < 1).all(1)

def count(outputs, y):
    return close(outputs, y).long()

def seed(outputs, y):
    return y.mean(1)

scheme = loss = rounds = bits = dispatched = seed

def as_array(outputs, y):
    return y.square().mean(1).numpy()

def of_outputs(outputs):
    return outputs.mean(1)
"""


def arrays(labels=False):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(50, 4))
    y = (x[:, 0] > 0).astype(int) if labels else np.stack([x[:, 0], -x[:, 1]], axis=1)
    return {"x_train": x[:30], "y_train": y[:30], "x_test": x[30:], "y_test": y[30:]}


@pytest.fixture
def real(tmp_path):
    (tmp_path / "real.yaml").write_text(YAML)
    (tmp_path / "my.py").write_text(CODE)

    def run(*changes, labels=False, data=None, **options):
        scenario = load(tmp_path / "real.yaml", list(changes))
        given = arrays(labels) if data is None else data
        return simulate(scenario, data=given, allow_code=True, **options)

    return run


def test_the_loss_is_the_mean_squared_error_by_hand(real):
    """One linear layer with weights zero: the loss is that of 0, and a step of 0.1 is known."""
    module = torch.nn.Linear(4, 2, bias=False)
    torch.nn.init.zeros_(module.weight)
    one = "devices=[{count: 1, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}]"
    run = real(one, "learning.batch_size=30", "rounds=1", model=module)
    data = {name: each.astype(np.float32) for name, each in arrays().items()}
    gradient = -2 * data["y_train"].T @ data["x_train"] / (30 * 2)
    outputs = data["x_test"] @ (-0.1 * gradient).T
    assert run.rounds.loss[0] == pytest.approx(np.mean((outputs - data["y_test"]) ** 2), rel=1e-5)
    assert np.isnan(run.rounds.accuracy[0]) and run.summary["final_accuracy"] is None


def test_a_metric_is_the_last_column_of_the_rounds(real, tmp_path):
    run = real("learning.metric=./my.py:within", "evaluate.every=2", out=tmp_path / "run")
    again = load_run(tmp_path / "run").rounds[run.rounds.columns]
    pd.testing.assert_frame_equal(again, run.rounds)
    assert list(run.rounds.columns) == [*ROUNDS, "within"]
    assert np.isnan(run.rounds.within[0]) and 0 < run.rounds.within[1] <= 1
    lines = (tmp_path / "run/rounds.csv").read_text().splitlines()
    assert lines[0].endswith(",within") and lines[2].endswith(f",{run.rounds.within[1]}")
    again = load(tmp_path / "run/scenario.yaml")
    assert simulate(again, allow_code=True).rounds.equals(run.rounds)


def test_the_last_value_of_a_metric_is_among_the_results_of_a_run(real, tmp_path, capsys):
    events = []
    run = real("learning.metric=./my.py:within", out=tmp_path / "run", progress=events.append)
    last = float(run.rounds.within.iloc[-1])
    assert run.summary["final_metric"] == {"within": last}
    assert load_run(tmp_path / "run").points["final_within"].tolist() == [last]
    told = [event["metrics"]["within"] for event in events if event["kind"] == "round"]
    assert told == run.rounds.within.tolist()
    with RunProgress("ours") as progress:
        progress(next(event for event in events[::-1] if event["kind"] == "round"))
    print_runs([("ours", run)])
    shown = capsys.readouterr().out
    assert f"loss {run.rounds.loss.iloc[-1]:.4g}, within {last:.4g}\n" in shown
    assert re.search(rf"scheme +loss within .*\n *fedavg +\S+ +{last:.4g} ", shown), shown


def test_a_loss_of_ones_own_is_minimised(real):
    """Half the loss with twice the step size is the same training."""
    plain = real()
    half = real("learning.loss=./my.py:halved", "learning.method.lr=0.2")
    np.testing.assert_allclose(2 * half.rounds.loss, plain.rounds.loss, rtol=1e-5)
    assert real("learning.loss=squared-error").rounds.equals(plain.rounds)


@pytest.mark.parametrize(
    ("y", "how"),
    [
        ([0.0, 1.0, 2.0, 1.0], "y.astype(int)"),
        ([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], "y.argmax(1)"),
        ([1.0, 2.0, 3.0, 1.0], None),
        ([0.0, 0.0, 0.0, 0.0], None),
        ([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.0, 1.0]], None),
    ],
)
def test_real_targets_that_look_like_labels_are_a_warning(real, y, how):
    y = np.array(y)
    data = {"x_train": np.eye(4), "y_train": y, "x_test": np.eye(4), "y_test": y}
    warned = [text for text in real(data=data).summary["warnings"] if "labels" in text]
    assert len(warned) == (how is not None)
    if how is not None:
        assert warned[0].startswith("learning.dataset: y_train holds") and how in warned[0]
        named = real("learning.loss=squared-error", data=data).summary["warnings"]
        assert not any("labels" in text for text in named)


@pytest.mark.parametrize("method", ["heterofl", "oort", "per-fedavg", "spafl"])
def test_methods_learn_real_targets(real, method):
    run = real(f"learning.method={{name: {method}}}", "learning.validation=0.2")
    assert np.isfinite(run.rounds.loss).all()
    assert not any("accuracy" in name for name in run.measures.name)


def test_a_metric_beside_labels_changes_nothing_else(real):
    metric = "learning.metric=./my.py:absent"
    plain = real("learning.executor=resident", labels=True)
    with pytest.raises(ScenarioError, match=r"my\.py defines no absent"):
        real(metric, labels=True)
    measured = real("learning.executor=resident", "learning.metric=cross-entropy", labels=True)
    assert measured.rounds.cross_entropy.to_numpy() == pytest.approx(plain.rounds.loss)
    np.testing.assert_allclose(measured.rounds.accuracy, plain.rounds.accuracy)


@pytest.mark.parametrize(
    ("changes", "labels", "sentence"),
    [
        (["learning.loss=cross-entropy"], False, "does not fit data with real targets; remove it"),
        (["learning.loss=squared-error"], True, "does not fit data with class labels; remove it"),
        (["learning.loss=mse"], False, "loss is mse; allowed are cross-entropy, squared-error"),
        (["learning.metric=./my.py:one_number"], False, r"^command line: \S+metric gives a tensor"),
        (["learning.metric=./my.py:CODE"], False, "my.py defines no CODE"),
        (["learning.loss=./my.py:one_number"], False, r"of each sample, a tensor \[10\]"),
        (
            ["learning.loss=./my.py:of_targets"],
            False,
            "gives values without a gradient; compute",
        ),
        (["learning.loss=./my.py:close"], False, "gives values without a gradient; compute"),
        (["learning.loss=./my.py:count"], False, "gives values without a gradient; compute"),
        (["learning.metric=./my.py:seed"], False, "has a column seed; rename it"),
        (["learning.metric=./my.py:scheme"], False, "has a column scheme; rename it"),
        (["learning.metric=./my.py:bits"], False, "of several runs has a column bits; rename"),
        (["learning.metric=./my.py:dispatched"], False, "rounds has a column dispatched; rename"),
        (["learning.metric=./my.py:rounds"], False, "of several runs has a column rounds; rename"),
        (["learning.metric=./my.py:loss"], False, "has a column loss; rename it"),
        (["learning.loss=./my.py:as_array"], False, "loss gives ndarray for a batch of 10; give a"),
        (
            ["learning.metric=./my.py:of_outputs"],
            False,
            r"learning.metric is ./my.py:of_outputs, which failed: \S+: TypeError: of_",
        ),
        (["evaluate.targets=[0.5]"], False, "are accuracies, which data with real targets do not"),
        (["learning.method={name: depthfl}"], False, "trains its classifiers by cross entropy"),
        (["learning.method={name: fedlps}"], False, r"chooses ratios by accuracy"),
        (["learning.partition={kind: labels, labels_per_device: 1}"], False, "divides by label"),
    ],
)
def test_what_does_not_fit_is_one_sentence(real, changes, labels, sentence):
    with pytest.raises((RunError, ScenarioError), match=sentence):
        real(*changes, labels=labels)
