"""Reading scenarios: SI inside, schemes and overrides, the resolved file, places."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.errors import ScenarioError
from edgesim.scenario.loader import expand, load
from edgesim.scenario.per_device_values import Draw

ROOT = Path(__file__).parents[3]


def test_values_are_si(path):
    s = load(path)
    assert s.network.bandwidth_hz == 2e8
    assert s.network.noise.power_w == 1e-14 and s.network.noise.density_w_per_hz is None
    assert s.budget.latency_threshold_s == 0.025
    assert s.network.channel.path_loss.loss_db == Draw("constant", (100.0,))
    assert s.devices[0].tx_power_w == Draw("constant", (10**-0.2,))
    assert s.devices[1].tx_power_w == Draw("choice", (0.1, 10**-0.7))
    assert s.devices[1].cpu.frequency_hz == Draw("uniform", (1e9, 2e9))
    assert s.devices[1].cpu.flops_per_cycle == Draw("list", (1.0, 2.0, 4.0))
    assert s.devices[0].cpu.capacitance == Draw("constant", (1e-28,))
    assert s.learning.method.params == {"personal_steps": 5, "global_lr": 0.01}
    assert (s.device_count, s.seed, s.evaluate.targets) == (5, 0, (0.8, 0.9))
    assert (s.network.downlink.mode, s.network.channel.fading.kind, s.network.uplink.share) == (
        "ideal",
        "none",
        "fixed",
    )
    assert s.folder == path.parent


def test_how_devices_and_conventions_of_the_submodel_papers_are_written(path):
    s = load(path)
    assert s.devices[0].capability == s.devices[0].model_budget == Draw("constant", (1.0,))
    assert s.devices[0].capability_drawn == "run"
    assert (s.accounting.backward, s.accounting.count_biases) == ("counted", False)
    levels = "devices.1.capability={choice: [1, 0.5, 0.25, 0.125, 0.0625]}"
    more = ["devices.1.capability_drawn=round", "devices.0.model_budget=[1, 0.25]"]
    s = load(path, [levels, *more, "accounting={backward: twice, count_biases: true}"])
    assert s.devices[1].capability == Draw("choice", (1.0, 0.5, 0.25, 0.125, 0.0625))
    assert s.devices[1].capability_drawn == "round"
    assert s.devices[0].model_budget == Draw("list", (1.0, 0.25))
    assert (s.accounting.backward, s.accounting.count_biases) == ("twice", True)
    assert s.digest() not in (load(path).digest(), load(path, [levels]).digest())


def test_partitions_of_text_and_of_a_least_number_of_samples(path):
    assert load(path, ["learning.partition={kind: speakers}"]).learning.partition.model_dump() == {
        "kind": "speakers"
    }
    dirichlet = "learning.partition={kind: dirichlet, alpha: 0.2, min_samples: %s}"
    assert load(path, [dirichlet % 10]).learning.partition.min_samples == 10
    assert load(path, [dirichlet % "none"]).learning.partition.min_samples is None


def test_noise_density_and_the_broadcast_band(path):
    s = load(
        path, ["network.noise=-174 dBm/Hz", "network.downlink={mode: broadcast, tx_power: 46 dBm}"]
    )
    assert s.network.noise.power_w is None and s.network.noise.density_w_per_hz == 10**-20.4
    assert s.network.downlink.bandwidth_hz == s.network.bandwidth_hz
    own = load(path, ["network.downlink={mode: broadcast, tx_power: 46 dBm, bandwidth: 20 MHz}"])
    assert own.network.downlink.bandwidth_hz == 2e7


def test_a_scenario_cannot_be_changed(path):
    with pytest.raises(ValueError, match="frozen"):
        load(path).network.bandwidth_hz = 1.0


def test_trace_files_lie_beside_the_scenario(path):
    (path.parent / "gains.csv").write_text(
        "# loss\n90 dB\n\n95.5 dB\n100 dB\n101 dB\n102 dB\n103 dB\n"
    )
    s = load(path, ["network.channel.path_loss.loss={trace: gains.csv}"])
    assert s.network.channel.path_loss.loss_db == Draw(
        "trace", (90.0, 95.5, 100.0, 101.0, 102.0, 103.0)
    )
    copy = path.parent / "sub" / "copy.yaml"
    copy.parent.mkdir()
    copy.write_text(s.to_yaml())
    assert load(copy).digest() == s.digest()  # the values are written out, the file is not needed


def test_log_distance_needs_distances(path):
    model = "network.channel.path_loss={model: log-distance, reference_loss: 40 dB, exponent: 3}"
    both = [f"devices.{i}.distance={{uniform: [10 m, 20 m]}}" for i in (0, 1)]
    s = load(path, [model, *both])
    assert (
        s.network.channel.path_loss.reference_distance_m,
        s.network.channel.path_loss.exponent,
    ) == (1.0, 3.0)
    with pytest.raises(ScenarioError, match=r"cell.yaml:9: devices.1.distance is missing"):
        load(path, [model, both[0]])
    with pytest.raises(
        ScenarioError, match=r"command line: devices.0.distance is not read with path_loss"
    ):
        load(path, both)


def test_overrides_win_over_schemes_which_win_over_the_file(path, schemes):
    path.write_text(path.read_text() + schemes)
    plain = dict(expand(path))
    assert list(plain) == ["joint", "equal bandwidth", "fedavg", "longer"]
    assert [s.rounds for s in plain.values()] == [3, 7, 3, 3]
    assert [s.scheme for s in plain.values()] == list(plain)
    assert plain["equal bandwidth"].allocation.solver == "equal"
    assert plain["fedavg"].learning.method.params == {
        "lr": 0.1
    }  # another method: Liu's keys do not linger
    assert plain["longer"].learning.method.params == {"personal_steps": 9, "global_lr": 0.01}
    assert {s.rounds for _, s in expand(path, ["rounds=2"])} == {2}
    assert load(path, label="fedavg") == plain["fedavg"]
    assert load(path, ["~schemes"]).scheme is None
    changed = dict(expand(path, ["schemes.joint.rounds=9"]))
    assert [s.rounds for s in changed.values()] == [9, 7, 3, 3]
    with pytest.raises(
        ScenarioError, match='there is no scheme "fedprox"; the file has joint, equal bandwidth'
    ):
        load(path, label="fedprox")


def test_a_file_without_schemes_is_one_scheme(path):
    assert [label for label, _ in expand(path)] == [None]


def test_places_of_keys(path, schemes):
    path.write_text(path.read_text() + schemes)
    s = load(path, ["budget.latency_threshold=30 ms", "clock.mode=deadline"], label="fedavg")
    assert s.where("network.bandwidth") == f"{path}:4"
    assert s.where("devices", 1, "tx_power") == f"{path}:10"
    assert s.where("learning.method.lr") == f"{path}:26"
    assert s.where("learning.method.nothing") == f"{path}:26"
    assert s.where("budget.latency_threshold") == "command line"
    assert s.where("clock", "mode") == "command line"
    assert s.where("evaluate.every") == f"{path}:1"
    replaced = load(path, ["~schemes", "learning.method={name: fedavg}"])
    assert (
        replaced.where("learning.method.global_lr") == "command line"
    )  # not the line that the override replaced
    assert (
        str(s.error("learning.method.lr", "is 0.1; no."))
        == f"{path}:26: learning.method.lr is 0.1; no."
    )
    assert str(s.error(("devices", 0, "count"), "is odd.")) == f"{path}:8: devices.0.count is odd."


def test_the_resolved_file_gives_the_same_scenario(path, schemes):
    path.write_text(path.read_text() + schemes)
    overrides = [
        "network.channel.fading={kind: rayleigh, coherence: 5 ms}",
        "budget.latency_threshold=none",
    ]
    overrides += ["devices.1.capability={uniform: [0.5, 1]}", "devices.1.capability_drawn=round"]
    overrides += [
        "accounting.count_biases=true",
        "learning.partition={kind: dirichlet, alpha: 2, min_samples: 3}",
    ]
    for label, s in expand(path, overrides):
        copy = path.parent / "resolved.yaml"
        copy.write_text(s.to_yaml(seed=4, provenance={"git": "abc", "numpy": "2.0"}))
        again = load(copy)
        assert again.digest() == s.digest()
        assert (again.scheme, again.seed) == (label, 4)
        assert again.model_dump(exclude={"seed", "provenance"}) == s.model_dump(
            exclude={"seed", "provenance"}
        )
        assert again.provenance == {"git": "abc", "numpy": "2.0"}


@pytest.mark.parametrize(
    "override",
    [
        "rounds=4",
        "network.bandwidth=200.0001 MHz",
        "learning.method.personal_steps=6",
        "devices.0.cpu.capacitance=0",
    ],
)
def test_what_shapes_a_result_changes_the_digest(path, override):
    assert load(path, [override]).digest() != load(path).digest()


@pytest.mark.parametrize(
    "override", ["name=other", "seed=5", "network.bandwidth=0.2 GHz", "network.downlink=ideal"]
)
def test_what_does_not_keeps_it(path, override):
    assert load(path, [override]).digest() == load(path).digest()


WORDS = st.text("".join(map(chr, range(32, 127))), min_size=1, max_size=12)


SCALARS = (
    WORDS
    | st.integers(-(10**20), 10**20)
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(SCALARS)
def test_method_parameters_survive_the_resolved_file(tmp_path_factory, text, value):
    folder = tmp_path_factory.getbasetemp()
    (folder / "a.yaml").write_text(text)
    s = load(folder / "a.yaml")
    s.learning.method.params["extra"] = value
    (folder / "b.yaml").write_text(s.to_yaml())
    again = load(folder / "b.yaml").learning.method.params["extra"]
    assert again == value and type(again) is type(value)


@pytest.mark.parametrize(
    "file", sorted((ROOT / "scenarios").glob("*.yaml")), ids=lambda file: file.name
)
def test_shipped_scenarios_are_read_and_start_with_a_line_that_says_what_they_are(file):
    assert expand(file)
    assert re.match(r"# \S", file.read_text())
