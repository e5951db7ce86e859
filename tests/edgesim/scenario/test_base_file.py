"""A scenario file that changes another one."""

import pytest

from edgesim.errors import ScenarioError
from edgesim.scenario.base_file import base_of, read_with_base
from edgesim.scenario.loader import expand, load

BASE = """\
name: below
rounds: 3
network:
  bandwidth: 20 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 100 dB}}
devices: [{count: 3, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}]
learning: {dataset: none, model: mlp, batch_size: 20, method: {name: fedavg, lr: 0.1}}
sweep: {rounds: [1, 2], seeds: 0-1}
schemes:
  plain: {}
  liu v1.2: {learning: {method: {name: liu, personal_lr: 0.1}}, rounds: 7}
"""
ABOVE = """\
base: ../below.yaml
name: above
learning.batch_size: 8
sweep: {rounds: [4], learning.method.weighting: [uniform, samples]}
schemes:
  liu v1.2: {learning.method.global_lr: 0.3, sweep: {learning.method.personal_lr: [0.1, 0.2]}}
  new: {learning: {method: {name: fedprox, mu: 0.5}}}
"""


@pytest.fixture
def above(tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "below.yaml").write_text(BASE)
    (tmp_path / "more" / "above.yaml").write_text(ABOVE)
    return tmp_path / "more" / "above.yaml"


def test_its_keys_win_and_schemes_join(above):
    schemes = dict(expand(above))
    assert list(schemes) == ["plain", "liu v1.2", "new"]
    plain, liu, new = schemes.values()
    assert (plain.name, plain.rounds, plain.learning.batch_size) == ("above", 3, 8)
    method = liu.learning.method
    assert (method.name, method.params, liu.rounds) == (
        "liu",
        {"personal_lr": 0.1, "global_lr": 0.3},
        7,
    )
    # another method starts afresh: the step size of the base's fedavg is not fedprox's
    assert (new.learning.method.name, new.learning.method.params) == ("fedprox", {"mu": 0.5})


@pytest.mark.parametrize("nothing", ["", "{}", "null"])
def test_a_scheme_without_changes_keeps_those_of_the_base(above, nothing):
    """Where nothing stood behind its label, the scheme lost its changes and ran another method."""
    above.write_text(f"base: ../below.yaml\nschemes:\n  liu v1.2: {nothing}\n")
    scheme = dict(expand(above))["liu v1.2"]
    assert (scheme.learning.method.name, scheme.rounds) == ("liu", 7)


def test_sweeps_join_by_key(above):
    document, folder = read_with_base(above)
    assert document.tree["sweep"] == {
        "rounds": [4],
        "seeds": "0-1",
        "learning.method.weighting": ["uniform", "samples"],
    }
    assert folder.resolve() == above.parents[1]
    assert document.place_of(("network",)) == f"{above.parent}/../below.yaml:3"
    assert base_of(above).resolve() == above.parents[1] / "below.yaml"
    assert base_of(above.parents[1] / "below.yaml") == above.parents[1] / "below.yaml"


def test_keys_swept_together_replace_the_axes_of_each(above):
    """rounds alone was given twice before, by "command line", where a file had written both."""
    above.write_text('base: ../below.yaml\nsweep: {"rounds:seed": ["4:1", "5:2"], batch: [8, 9]}')
    document, _ = read_with_base(above)
    assert document.tree["sweep"] == {
        "seeds": "0-1",
        "rounds:seed": ["4:1", "5:2"],
        "batch": [8, 9],
    }


def test_a_resolved_scenario_stands_alone(above, tmp_path):
    scenario = load(above, label="liu v1.2")
    (tmp_path / "alone.yaml").write_text(text := scenario.to_yaml())
    assert "base" not in text
    assert load(tmp_path / "alone.yaml").digest() == scenario.digest()


@pytest.mark.parametrize(
    ("base", "sentence"),
    [
        ("[1]", "above.yaml:1: base is"),
        (
            "gone.yaml",
            r"\.yaml:\d+: base is gone.yaml, but there is no file \S+gone.yaml; a base is relative",
        ),
        ("above.yaml", "does one name itself as its base"),
    ],
)
def test_a_base_that_is_none(above, base, sentence):
    above.write_text(ABOVE.replace("../below.yaml", base))
    with pytest.raises(ScenarioError, match=sentence):
        load(above, label="plain")


MIXED = "{learning: {method: {name: fedavg}}, learning.method.lr: 0.2, devices: {0: {count: 2}}}"


@pytest.mark.parametrize(
    ("scheme", "over", "lr"),
    [
        (MIXED, "{learning.method.lr: 0.7}", 0.7),
        (MIXED, "{learning: {method: {lr: 0.7}}}", 0.7),
        (MIXED, "{learning: {method: {name: fedprox}}}", 0.1),  # its default, as it starts afresh
        ("{}", "{learning.method.name: fedprox, learning.method.lr: 0.4}", 0.4),
        ("{}", "{learning.method.lr: 0.4, learning.method.name: fedprox}", 0.4),
        (MIXED, "{devices.0.tx_power: 10 dBm}", 0.2),
        ("{learning.method.lr: 0.2}", "{devices: {0: {tx_power: 10 dBm}}}", 0.2),
        ("", "{learning.method.lr: 0.3}", 0.3),
    ],
)
def test_a_scheme_is_laid_over_that_of_the_base_however_both_are_written(
    tmp_path, scheme, over, lr
):
    """The base has 0.02 and 28 dBm; fedprox' default is 0.1."""
    (tmp_path / "below.yaml").write_text(
        BASE.replace("lr: 0.1}}\nsweep", "lr: 0.02, momentum: 0.9}}\nsweep") + f"  a: {scheme}\n"
    )
    (tmp_path / "above.yaml").write_text(f"base: below.yaml\nschemes: {{a: {over}}}")
    scenario = load(tmp_path / "above.yaml", label="a")
    assert scenario.learning.method.params.get("lr", 0.1) == lr
    assert ("momentum" in scenario.learning.method.params) == ("fedprox" not in over)
    (power,) = scenario.devices[0].tx_power_w.values
    assert power == pytest.approx(0.01 if "tx_power" in over else 0.631, rel=1e-3)
    assert scenario.devices[0].count == (2 if "count" in scheme else 3)


def test_what_joins_a_sweep_that_is_no_mapping_is_told_so(tmp_path):
    (tmp_path / "below.yaml").write_text(BASE.replace("{rounds: [1, 2], seeds: 0-1}", "[1]"))
    (tmp_path / "above.yaml").write_text("base: below.yaml\nsweep: {rounds: [1, 2]}")
    with pytest.raises(ScenarioError, match=r"below\.yaml:\d+: sweep is .*; write a mapping"):
        load(tmp_path / "above.yaml", label="plain")
