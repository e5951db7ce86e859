"""Runs without a data set: nothing is trained; time, bits and joules are counted."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest

from edgesim import load, simulate
from edgesim.cli.listings import catalog
from edgesim.errors import RunError, ScenarioError
from edgesim.runs.setup import set_up
from fl.models.named_models import MODELS
from fl.timing_only import NATURAL

CROWD = """
name: crowd
rounds: 3
network:
  bandwidth: 200 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: {uniform: [90 dB, 120 dB]}}}
devices:
  - {count: 6, tx_power: 28 dBm, cpu: {frequency: {uniform: [1 GHz, 3 GHz]}, cycles_per_weight: 5}}
  - {count: 5, tx_power: 20 dBm, cpu: {frequency: {uniform: [1 GHz, 3 GHz]}, flops_per_cycle: 700}}
budget: {latency_threshold: 25 ms}
learning: {dataset: none, model: liu-cnn, batch_size: 20, method: {name: liu}}
"""


@pytest.fixture
def path(tmp_path):
    (tmp_path / "crowd.yaml").write_text(CROWD)
    return tmp_path / "crowd.yaml"


def test_the_costs_are_those_of_a_run_that_learns(path):
    """Same model and samples: the first round of a run on real data takes as long and sends as
    much.
    """
    changes = ["rounds=1", "learning.model=mlp"]
    digits = [
        "learning.dataset=digits",
        "learning.partition={kind: iid}",
        "learning.samples_per_device=20",
    ]
    counted, learned = simulate(load(path, changes)), simulate(load(path, changes + digits))
    assert counted.device_rounds.equals(learned.device_rounds)
    assert counted.spans.equals(learned.spans)
    unknown = ["loss", "accuracy", "accuracy_std"]
    assert counted.rounds[unknown].isna().all(axis=None)
    assert learned.rounds[unknown].notna().all(axis=None)


def test_liu_28_for_a_device_by_hand(path):
    """(24), (25), (28): 5 steps on v, 1 + 5 on u, C = 5, f = 1 GHz; 32 bit a weight, rho = 0."""
    hand = [
        "network.channel.path_loss.loss=100 dB",
        "devices.0.count=1",
        "devices.0.cpu.frequency=1 GHz",
        "rounds=1",
    ]
    hand += [
        "learning.method.rho=0",
        "devices.1.count=1",
        "budget.latency_threshold=none",
        "allocation.solver=equal",
    ]
    run = simulate(load(path, hand))
    v, u = 32 * 25 + 32 + 64 * 32 * 25 + 64, 64 * 49 * 128 + 128 + 128 * 10 + 10
    assert (v, u) == (52_096, 402_826)
    compute_s = 5 * (5 * v + 6 * u) / 1e9
    rate_bps = 0.5 * 200e6 * math.log2(1 + 1e-10 * 10**-0.2 / 1e-14)
    assert run.device_rounds.finish_s[0] == pytest.approx(compute_s + 32 * u / rate_bps, rel=1e-12)
    assert run.device_rounds.energy_j[0] == pytest.approx(
        1e-28 * 1e18 * compute_s * 1e9 + 10**-0.2 * 32 * u / rate_bps, rel=1e-12
    )


@pytest.mark.slow
def test_neither_torch_nor_data_is_needed(path, tmp_path):
    code = f"""
import sys
from edgesim import load, simulate
simulate(load({str(path)!r}), out={str(tmp_path / "run")!r})
print(sorted({{"torch", "sklearn", "networkx", "cvxpy"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert not (tmp_path / "run" / "partition.json").exists()
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["final_accuracy"], summary["devices"]) == (None, 11)


@pytest.mark.slow
def test_every_model_has_the_shape_of_its_natural_data(path):
    assert NATURAL.keys() == MODELS.keys()
    for name, (shape, classes) in NATURAL.items():
        held = set_up(load(path, [f"learning.model={name}", "learning.method=fedavg"])).task
        assert (held.architecture.input_shape, held.architecture.classes) == (shape, classes)
        assert held.samples.tolist() == [20] * 11  # one batch each
    assert "none" in [name for name, *_ in catalog("datasets")]


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        (
            ["learning.partition={kind: iid}"],
            ScenarioError,
            "learning.partition is not read with dataset: none",
        ),
        (
            ["learning.dataset=digits"],
            ScenarioError,
            "learning.partition is missing; write for instance partition:",
        ),
        (["learning.device=cuda"], ScenarioError, "learning.device is not read with dataset: none"),
        (["learning.validation=0.2"], ScenarioError, "learning.validation is not read with"),
        (["learning.inputs=standard"], ScenarioError, "learning.inputs is not read with dataset"),
        (["learning.loss=cross-entropy"], ScenarioError, "learning.loss is not read with dataset"),
        (["learning.metric=./my.py:f"], ScenarioError, "learning.metric is not read with dataset"),
        (["learning.executor=pool"], ScenarioError, "learning.executor is not read with dataset"),
        (
            ["learning.method=heterofl"],
            ScenarioError,
            "learning.method.name is a method whose costs depend on",
        ),
        (
            ["learning.method=spafl"],
            ScenarioError,
            "learning.method.name is a method whose costs depend on",
        ),
        (["learning.dataset=nine"], ScenarioError, "learning.partition is missing"),
        (
            ["learning.dataset=nine", "learning.partition={kind: iid}"],
            RunError,
            'there is no data set "nine"',
        ),
    ],
)
def test_what_does_not_go_together_is_said(path, changes, error, words):
    with pytest.raises(error, match=words):
        set_up(load(path, changes))


def test_the_word_none_takes_a_partition_away(path):
    digits = ["learning.dataset=digits", "learning.partition={kind: iid}"]
    plain = load(path)
    changed = load(path, [*digits, "learning.dataset=none", "learning.partition=none"])
    assert plain.digest() == changed.digest()
    (path.parent / "again.yaml").write_text(plain.to_yaml())
    assert load(path.parent / "again.yaml").digest() == plain.digest()
