"""Own data in runs: which client became which device, and what lacks samples."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import edgesim
from edgesim import load, simulate
from edgesim.errors import ResultsError, RunError
from edgesim.runs.fingerprint import result_digest
from edgesim.runs.setup import set_up
from fl.data.array_files import npz

YAML = """
name: own
rounds: 1
network: {bandwidth: 1 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 90 dB}}}
devices: [{count: 3, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}]
allocation: {solver: equal}
learning: {dataset: mine.npz, partition: {kind: natural}, model: mlp, batch_size: 8,
           method: {name: fedavg, lr: 0.1}}
"""


def arrays(**changes):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 5)).astype(np.float32), np.arange(60) % 3
    given = {"x_train": x[:40], "y_train": y[:40], "x_test": x[40:], "y_test": y[40:]}
    return given | changes


@pytest.fixture
def own(tmp_path):
    """The scenario on arrays, with some changes, in files beside each other."""

    def scenario(given, *changes):
        (tmp_path / "own.yaml").write_text(YAML)
        (tmp_path / "mine.npz").write_bytes(npz(given))
        return load(tmp_path / "own.yaml", list(changes))

    return scenario


@pytest.mark.parametrize(
    ("ids", "devices"),
    [
        (["user2", "user10", 'a,"b"'], ['a,"b"', "user10", "user2"]),  # words: as texts
        ([2, 10, -1], ["-1", "2", "10"]),  # numbers: as numbers
        (["007", "NA", "1e3"], ["007", "1e3", "NA"]),  # ids stay as they are written
    ],
)
def test_the_client_of_every_device_is_a_column_of_its_table(own, tmp_path, ids, devices):
    clients = np.array(ids)[np.arange(40) % 3]
    simulate(own(arrays(clients_train=clients)), out=tmp_path / "run")
    table = edgesim.load_run(tmp_path / "run").devices
    assert table["client"].tolist() == devices
    samples = [np.count_nonzero(clients.astype(str) == one) for one in devices]
    assert table["samples"].tolist() == samples


def test_with_fewer_devices_than_clients_the_ids_are_those_that_take_part(own, tmp_path):
    clients = np.array(["b", "c", "a", "c", "b"] * 8)
    fewer = own(arrays(clients_train=clients), "devices.0.count=2", "learning.validation=0.2")
    simulate(fewer, out=tmp_path / "run")
    assert pd.read_csv(tmp_path / "run/devices.csv")["client"].tolist() == ["b", "c"]


def test_without_ids_or_a_division_by_them_there_is_no_such_column(own, tmp_path):
    given = arrays(clients_train=np.arange(40) % 3)
    simulate(own(given, "learning.partition={kind: iid}"), out=tmp_path / "run")
    assert "client" not in pd.read_csv(tmp_path / "run/devices.csv")


def test_arrays_that_a_run_keeps_have_their_ids(own, tmp_path):
    given = arrays(clients_train=np.array(["u2", "u10", "u1"])[np.arange(40) % 3])
    scenario = own(given)
    simulate(scenario, out=tmp_path / "run", data=given)
    simulate(load(tmp_path / "run/scenario.yaml"), out=tmp_path / "again")
    assert pd.read_csv(tmp_path / "again/devices.csv")["client"].tolist() == ["u1", "u10", "u2"]
    renamed = given | {"clients_train": np.char.upper(given["clients_train"])}
    first, second = (result_digest(set_up(scenario, data=data)) for data in (given, renamed))
    assert first != second


def test_a_client_without_test_samples_is_a_warning(own):
    """A mean over devices would leave it out without a word."""
    given = arrays(clients_train=np.arange(40) % 3, clients_test=np.arange(20) % 3)
    run = simulate(own(given))
    assert not any("test sample" in text for text in run.summary["warnings"])
    run = simulate(own(given | {"clients_test": np.arange(20) % 2}))
    sentence = "learning.partition: 1 of 3 devices has no test sample, and means of loss and "
    assert f"{sentence}accuracy leave it out: 2" in run.summary["warnings"]
    assert run.scores.device.tolist() == [0, 1]


def test_test_samples_that_nobody_has_are_refused(own):
    """Test samples follow the training samples of their label, of which nobody has 5 to 7."""
    unknown = arrays(y_test=5 + np.arange(20) % 3)
    with pytest.raises(RunError, match=r"learning.partition: no device has a test"):
        set_up(own(unknown, "learning.partition={kind: iid}"))
    held_out = own(unknown, "learning.partition={kind: iid}", "learning.validation=0.2")
    warned = simulate(held_out).summary["warnings"]
    assert any("3 of 3 devices have no test sample" in text for text in warned)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"y_train": 1 + np.arange(40) % 3, "y_test": 1 + np.arange(20) % 3},
            "label 0 has no training sample and no test sample; "
            "the model has an output for each label from 0 on",
        ),
        (
            {"y_test": 2 + np.arange(20) % 3},
            "labels 3, 4 have no training sample, but 13 test samples",
        ),
    ],
)
def test_labels_without_a_training_sample_are_a_warning(own, changes, sentence):
    given = arrays(clients_train=np.arange(40) % 3, clients_test=np.arange(20) % 3)
    warned = simulate(own(given | changes)).summary["warnings"]
    assert warned == [f"learning.dataset: {sentence}"]
    assert not simulate(own(given)).summary["warnings"]


def test_a_scenario_is_simulated_by_its_path_too(own, tmp_path):
    scenario = own(arrays(clients_train=np.arange(40) % 3))
    for path in (tmp_path / "own.yaml", str(tmp_path / "own.yaml")):
        run = simulate(path)
        assert run.rounds.equals(simulate(scenario).rounds)
    assert len(simulate(load(tmp_path / "own.yaml", "rounds=2")).rounds) == 2
    with pytest.raises(ResultsError, match="Run is no folder; give a folder of results"):
        edgesim.load_run(run)


@pytest.mark.parametrize(
    ("shape", "warned"), [((6, 5, 3), True), ((6, 5, 1), True), ((3, 6, 5), False), ((3, 5), False)]
)
def test_real_pictures_with_their_channels_last_are_a_warning(own, shape, warned):
    x = np.zeros((60, *shape), np.float32)
    run = simulate(own(arrays(x_train=x[:40], x_test=x[40:]), "learning.partition={kind: iid}"))
    found = [text for text in run.summary["warnings"] if "channels last" in text]
    shown = f"x_train has shape [N, {', '.join(map(str, shape))}] with the channels last; give"
    assert len(found) == warned and all(shown in text for text in found)
