"""The ViT and the Reddit LSTM from a scenario to its tables: methods, executors, resume."""

import json

import numpy as np
import pytest

from edgesim import load, simulate
from edgesim.errors import RunError
from fl.models.architectures import build

SCENARIO = """
name: sequences
rounds: 2
network:
  bandwidth: 20 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 95 dB}}
devices: [{count: 3, tx_power: 23 dBm, cpu: {frequency: 3 GHz, flops_per_cycle: 8}}]
budget: {latency_threshold: none}
allocation: {solver: equal}
learning:
  dataset: reddit
  partition: {kind: natural}
  model: reddit-lstm
  batch_size: 4
  method: {name: fedavg, local_steps: 3, lr: 1}
evaluate: {every: 1}
"""
WORDS = ["one", "two", "three", "four", "five", "six"]


@pytest.fixture(scope="module")
def at(tmp_path_factory):
    """A folder with the scenario and, below data, a miniature of LEAF's Reddit."""
    folder = tmp_path_factory.mktemp("sequences")
    (folder / "sequences.yaml").write_text(SCENARIO)
    for part, count in (("train", 12), ("test", 4)):
        users = {}
        for user in range(3):  # each counts in a circle from a word of its own
            comments = [
                [[*(WORDS[(user + i + j) % 6] for j in range(8)), "<EOS>", "<PAD>"]]
                for i in range(count)
            ]
            users[f"u{user}"] = {"x": comments, "y": [{}] * count}
        path = folder / "data" / "reddit" / part / "all.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"users": [*users], "user_data": users}))
    return folder


def words(at, *changes, out=None, rounds=2):
    scenario = load(at / "sequences.yaml", [f"rounds={rounds}", *changes])
    return simulate(scenario, data=at / "data", out=out)


def pictures(at, *changes, out=None):
    """Eight pictures of 8x8 with three colours for each of three devices."""
    rng = np.random.default_rng(0)
    y = np.arange(24) % 3
    x = (rng.random((24, 3, 8, 8)) * 0.1 + 0.3 * y[:, None, None, None]).astype(np.float32)
    small = "learning.model=vit", "learning.partition.kind=iid"
    scenario = load(at / "sequences.yaml", [*small, *changes])
    return simulate(scenario, data={"x_train": x, "y_train": y, "x_test": x, "y_test": y}, out=out)


def bytes_of(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()} | {"timing.json": b""}


@pytest.mark.slow
def test_the_tied_lstm_learns_to_count(at):
    """Which word follows is the same everywhere; PAD counts neither in the loss nor as a hit."""
    run = words(at, "learning.method.local_steps=40", "learning.method.lr=4", rounds=1)
    assert run.rounds.accuracy.iloc[-1] > 0.8  # one class of eight: 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        "{name: heterofl, local_steps: 2, lr: 1, width: 0.5}",
        "{name: fedlps, local_steps: 2, lr: 1, ratio: fixed, width: 0.5}",
        "{name: lotteryfl, local_steps: 2, lr: 1, accuracy_to_prune: 0}",
    ],
    ids=lambda text: text.split()[1],
)
def test_submodels_of_the_tied_lstm(at, method):
    run = words(at, f"learning.method={method}", rounds=1)
    whole = words(at, "learning.method.local_steps=2", rounds=1)
    assert np.isfinite(run.rounds.loss.iloc[-1])
    assert run.device_rounds.bits_up.max() < whole.device_rounds.bits_up.min()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["resident", "pool", "batched"])
def test_every_executor_trains_texts_in_the_same_way(at, how):
    one, other = (words(at, f"learning.executor={name}", rounds=1) for name in ("auto", how))
    assert one.rounds.loss.tolist() == other.rounds.loss.tolist()


@pytest.mark.slow
def test_a_run_of_texts_goes_on_with_the_same_bytes(at, tmp_path):
    words(at, rounds=1, out=tmp_path / "raised")
    words(at, rounds=2, out=tmp_path / "raised")
    words(at, rounds=2, out=tmp_path / "whole")
    assert bytes_of(tmp_path / "raised") == bytes_of(tmp_path / "whole")


@pytest.mark.parametrize("model", ["shakespeare-lstm", "digits-cnn"])
def test_a_model_for_one_label_is_one_sentence(at, model):
    with pytest.raises(RunError, match=f"model {model} does not fit .*choose .*reddit-lstm"):
        words(at, f"learning.model={model}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        "{name: heterofl, local_steps: 1, lr: 0.01, width: 0.5}",
        "{name: spafl, local_steps: 1, lr: 0.01, prune_output: false}",
        "{name: fedbn, local_steps: 1, lr: 0.01}",
    ],
    ids=lambda text: text.split()[1],
)
def test_submodels_thresholds_and_norms_of_the_vit(at, method):
    run = pictures(at, f"learning.method={method}", "rounds=1")
    assert np.isfinite(run.rounds.loss.iloc[-1])
    parameters = build("vit", (3, 8, 8), 3).layout.size
    assert run.device_rounds.bits_up.max() < 32 * parameters


@pytest.mark.slow
def test_the_vit_learns_in_stacks_as_alone(at):
    alone, stacked = (
        pictures(at, f"learning.executor={how}", "learning.method.lr=0.01")
        for how in ("resident", "batched")
    )
    assert alone.rounds.loss.tolist() == pytest.approx(stacked.rounds.loss.tolist(), rel=1e-4)
    assert alone.rounds.loss.iloc[-1] < alone.rounds.loss.iloc[0]
