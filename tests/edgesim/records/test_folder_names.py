"""Names of run folders."""

import pytest

import edgesim
from edgesim.records.folder_names import default_folder, readable_name

SCENARIO = """
name: tiny
rounds: 3
network: {bandwidth: 5 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 90 dB}}}
devices: [{count: 2, tx_power: 23 dBm, cpu: {frequency: 1 GHz, flops_per_cycle: 4}}]
learning: {dataset: none, model: mlp, batch_size: 20, method: {name: fedavg}}
"""


@pytest.fixture
def scenario_of(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(SCENARIO)
    return lambda *changes: edgesim.load("tiny.yaml", changes)


def test_a_name_says_what_the_command_line_changed(scenario_of):
    changes = [
        "network.bandwidth=10 MHz", "seed=4", "budget.latency_threshold=20ms",
        "evaluate.targets=[0.5, 0.6]", "devices.0.cpu.frequency=2 GHz",
    ]  # fmt: skip
    scenario = scenario_of(*changes)
    expected = "fedavg,bandwidth=10MHz,frequency=2GHz,latency_threshold=20ms,targets=0.5-0.6"
    assert default_folder(scenario).as_posix() == (
        f"runs/tiny/{expected}-{scenario.digest()[:8]}-s4"
    )
    plain = scenario_of("seed=1")
    assert default_folder(plain).name == f"fedavg-{plain.digest()[:8]}-s1"


def test_a_folder_that_is_there_is_found_again_under_any_name(scenario_of):
    scenario = scenario_of("rounds=4")
    old = default_folder(scenario).with_name(f"fedavg-{scenario.digest()[:8]}-s0")
    old.mkdir(parents=True)
    assert default_folder(scenario) == old
    assert default_folder(scenario_of("rounds=5")).name.startswith("fedavg,rounds=5-")


def test_the_scheme_of_a_file_names_the_folder_and_its_keys_are_no_changes(scenario_of, tmp_path):
    text = SCENARIO + "schemes: {first one: {rounds: 9}, other: {}}\n"
    (tmp_path / "two.yaml").write_text(text)
    scenario = edgesim.load("two.yaml", ["evaluate.every=2"], label="first one")
    assert default_folder(scenario).name.startswith("first-one,every=2-")
    scenario = edgesim.load("two.yaml", ["schemes.first one.rounds=5"], label="first one")
    assert default_folder(scenario).name == f"first-one,rounds=5-{scenario.digest()[:8]}-s0"


def test_long_and_odd_values_stay_names_of_folders():
    values = {"a.count": "3", "b.count": "[1, {x: '../y'}]", "learning.method.lr": "1e-3"}
    levels = {"noise": "-169 dBm/Hz", "p0": "-.5dBm", "sides": "-left-"}
    assert readable_name("a", levels) == "a,noise=-169dBm-Hz,p0=-.5dBm,sides=left"
    assert readable_name("other one", values) == "other-one,a.count=3,b.count=1-x-..-y,lr=1e-3"
    assert len(readable_name("x", {f"key{i}": "value" for i in range(50)})) <= 80
