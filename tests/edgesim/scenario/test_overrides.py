"""Overrides of the command line that lead nowhere are one sentence."""

import warnings

import pytest

import edgesim
from edgesim.errors import ScenarioError
from edgesim.scenario.loader import expand

OVERRIDES = {
    "rounds": '"rounds" is not an override; write key=value',
    "=3": '"=3" is not an override',
    "rounds=": "rounds has no value",
    "rounds=[": "rounds: not valid YAML",
    "rounds=*a": "rounds: anchors and aliases",
    "budget.latency_threshold=25": 'budget.latency_threshold=25 (no unit); write "25 ms"',
    "network.bandwith=3 MHz": (
        "the key network.bandwith is unknown; did you mean network.bandwidth?"
    ),
    "learning.lr=0.1": "the key learning.lr is unknown; did you mean learning.method.lr?",
    "devices.count=3": "devices.count leads into a list; write devices.0 for its items",
    "devices.7.count=3": "devices.7.count is not there: devices has 1 item, devices.0",
    "network.5=3": "network.5 counts into network, which is not a list",
    "rounds.more=3": "rounds.more cannot be set, because rounds is not a mapping",
    "clock.mode=deadlin": 'clock.mode="deadlin"; did you mean deadline?',
    "~clock.mode": "the scenario does not set clock.mode; remove it from the command",
    "~network.bandwith": "the scenario does not set network.bandwith; did you mean ~network.band",
    "~rounds=3": "~rounds removes a key and takes no value; write ~rounds alone",
    "~devices.0": "devices.0 is an item of a list; ~ removes keys only",
    "~": '"~" is not an override',
    "rou nds=3": '"rou nds=3" is not an override',
    "schemes=5": "schemes=5; write a mapping of label: changes",
}


@pytest.mark.parametrize("text", OVERRIDES)
def test_a_wrong_override(good, sentence_of, text):
    assert sentence_of("check", "good.yaml", text).startswith(f"command line: {OVERRIDES[text]}")


REMOVALS = """
name: removals
rounds: 3
network: {bandwidth: 5 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 90 dB}}}
devices:
  - {count: 2, tx_power: 23 dBm, idle_power: 1 W, cpu: {frequency: 1 GHz, flops_per_cycle: 4}}
budget: {latency_threshold: 20 ms}
learning: {dataset: none, model: mlp, batch_size: 20, method: {name: fedavg, lr: 0.5}}
schemes: {one: {}, two: {allocation: {solver: equal}}}
"""


def test_a_removed_key_has_its_default_in_every_scheme(tmp_path):
    path = tmp_path / "removals.yaml"
    path.write_text(REMOVALS)
    gone = ["~budget.latency_threshold", "~devices.0.idle_power", "~learning.method.lr"]
    for label in ("one", "two"):
        scenario = edgesim.load(path, gone, label=label)
        assert scenario.budget.latency_threshold_s is None
        assert scenario.devices[0].idle_power_w.values == (0.0,)
        assert scenario.learning.method.params == {}
    assert [label for label, _ in expand(path, ["~schemes"])] == [None]
    assert [label for label, _ in expand(path, ["~schemes.one"])] == ["two"]
    with pytest.raises(ScenarioError, match="rounds is missing"):
        edgesim.load(path, ["~rounds"], label="one")
    # in the order of the command line
    assert edgesim.load(path, ["~rounds", "rounds=7"], label="one").rounds == 7


LABELS = "schemes: {v1: {rounds: 1}, v1.5: {rounds: 2}, v1.05: {}, '2': {}, equal bandwidth: {}}"


def test_labels_with_dots_and_blanks_are_reached_by_their_keys(tmp_path):
    path = tmp_path / "labels.yaml"
    path.write_text(
        REMOVALS.replace("schemes: {one: {}, two: {allocation: {solver: equal}}}", LABELS)
    )

    def rounds(*texts):
        return {label: scenario.rounds for label, scenario in expand(path, texts)}

    whole = {"v1": 1, "v1.5": 2, "v1.05": 3, "2": 3, "equal bandwidth": 3}
    assert rounds() == whole
    for label in whole:
        assert rounds(f"schemes.{label}.rounds=9") == whole | {label: 9}
        assert rounds(f"~schemes.{label}") == {one: n for one, n in whole.items() if one != label}
    assert rounds("~schemes.v1.5.rounds") == whole | {"v1.5": 3}
    with pytest.raises(
        ScenarioError, match=r"does not set schemes\.v1\.6; did you mean ~schemes\.v1"
    ):
        rounds("~schemes.v1.6")


def test_a_scheme_keeps_its_place_in_the_file_whatever_is_chosen_and_run_again(tmp_path):
    path = tmp_path / "labels.yaml"
    path.write_text(
        REMOVALS.replace("schemes: {one: {}, two: {allocation: {solver: equal}}}", LABELS)
    )
    places = {label: scenario.scheme_position for label, scenario in expand(path)}
    assert places == {"v1": 0, "v1.5": 1, "v1.05": 2, "2": 3, "equal bandwidth": 4}
    alone = edgesim.load(path, label="2")
    path.write_text(alone.to_yaml())
    again = edgesim.load(path)
    assert alone.scheme_position == again.scheme_position == 3
    assert (
        again.digest()
        == alone.digest()
        == alone.model_copy(update={"scheme_position": None}).digest()
    )


def test_a_misspelt_label_makes_no_scheme(tmp_path):
    path = tmp_path / "removals.yaml"
    path.write_text(REMOVALS)
    with pytest.raises(
        ScenarioError, match=r'line: there is no scheme "tow"; the file has one, two'
    ):
        expand(path, ["schemes.tow.rounds=9"])
    new = dict(expand(path, ["schemes.three={}", "schemes.three.rounds=9"]))
    assert {label: scenario.rounds for label, scenario in new.items()}["three"] == 9


ONE = "schemes.one.devices.0"
CLASSES = {  # ways to write it in a scheme, and on the command line
    "dotted": ("devices.0.tx_power: 20 dBm, devices.0.cpu.frequency: 2 GHz", []),
    "nested": ("devices: {0: {tx_power: 20 dBm, cpu: {frequency: 2 GHz}}}", []),
    "given": ("", [f"{ONE}.tx_power=20dBm", f"{ONE}.cpu.frequency=2GHz"]),
    "given over nested": (
        "devices: {0: {tx_power: 1 W}}",
        [f"{ONE}={{tx_power: 20 dBm, cpu: {{frequency: 2 GHz}}}}"],
    ),
}


@pytest.mark.parametrize("way", CLASSES)
def test_a_scheme_changes_one_class_of_devices(tmp_path, way):
    written, given = CLASSES[way]
    path = tmp_path / "removals.yaml"
    path.write_text(REMOVALS.replace("one: {}", f"one: {{{written}}}"))
    one, two = (scenario.devices[0] for _, scenario in expand(path, given))
    assert one.tx_power_w.values == pytest.approx((0.1,))
    assert two.tx_power_w.values == pytest.approx((0.2,), 3e-3)
    assert (one.cpu.frequency_hz.values, two.cpu.frequency_hz.values) == ((2e9,), (1e9,))
    assert one.count == two.count == 2
    with pytest.raises(ScenarioError, match=r"line: devices.4.count is not there: devices has 1"):
        expand(path, ["schemes.two.devices.4.count=3"])


def test_a_file_is_not_silently_taken_without_its_schemes(tmp_path):
    path = tmp_path / "two.yaml"
    path.write_text(REMOVALS)
    with pytest.warns(UserWarning, match=r"without the changes of its schemes \(one, two\); give"):
        edgesim.load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        edgesim.load(path, label="two")
        edgesim.load(path, ["~schemes"])


MIXED = "one: {allocation: {solver: equal}, allocation.solver: proportional, rounds: 2}"


def test_an_override_of_a_scheme_wins_however_the_scheme_writes_the_key(tmp_path):
    """The dotted key of the scheme was laid over what the command line had put beside it."""
    path = tmp_path / "mixed.yaml"
    path.write_text(REMOVALS.replace("one: {}", MIXED))

    def one(*given):
        scenario = expand(path, [f"schemes.one.{text}" for text in given])[0][1]
        return scenario.allocation.solver, scenario.rounds

    assert one() == ("proportional", 2)
    assert one("allocation.solver=kkt") == one("allocation={solver: kkt}") == ("kkt", 2)
    assert one("allocation.solver=kkt", "allocation.solver=equal") == ("equal", 2)
    removed = expand(path, ["~schemes.one.allocation.solver"])[0][1]
    assert removed.allocation == expand(path, ["~schemes"])[0][1].allocation
    with pytest.raises(ScenarioError, match=r"does not set schemes\.one\.seed; did you mean"):
        expand(path, ["~schemes.one.seed"])


@pytest.mark.parametrize(
    ("scheme", "given", "sentence"),
    [
        ("{base: x.yaml}", [], r"\.yaml:\d+: the key base is unknown here; it is a key of a file"),
        (
            "{schemes: {a: {}}}",
            [],
            r"the key schemes is unknown here; a scheme has none of its own",
        ),
        ("{}", ["base=x.yaml"], "command line: the key base is unknown here"),
        ("{}", ["schemes.one.base=x.yaml"], "command line: the key base is unknown here"),
        ('{devices: {"": 3}}', [], r"devices"),
        ("{schemes.a: {}}", [], "the key schemes is unknown here"),
        ('{"\\0below": {rounds: 7}}', [], "the key .below is unknown"),
        ("{-1: {rounds: 7}}", [], "the key -1 is unknown"),
    ],
)
def test_keys_that_only_a_file_has_are_not_ignored(tmp_path, scheme, given, sentence):
    path = tmp_path / "keys.yaml"
    path.write_text(REMOVALS.replace("one: {}", f"one: {scheme}"))
    with pytest.raises(ScenarioError, match=sentence):
        expand(path, given)


DEVICES = "[{count: 1, tx_power: 20 dBm, cpu: {frequency: 2 GHz, flops_per_cycle: 4}}]"


@pytest.mark.parametrize(
    ("given", "key", "value"),
    [
        (["~devices.0.count", "devices.0.count=3"], "count", 3),
        (["learning.method={name: liu}", "learning.method.name=fedprox"], "method", "fedprox"),
        (["learning={method: {name: liu}}", "learning.method.name=fedprox"], "method", "fedprox"),
        (["devices.0.count=9", f"devices={DEVICES}", "devices.0.count=8"], "count", 8),
        (["devices.0.cpu={frequency: 2 GHz, cycles_per_weight: 3}"], "flops_per_cycle", None),
    ],
)
def test_overrides_of_a_scheme_win_in_their_order(tmp_path, given, key, value):
    path = tmp_path / "order.yaml"
    path.write_text(REMOVALS.replace("one: {}", f"one: {{devices: {DEVICES}}}"))
    labelled = [f"{'~' * (text[0] == '~')}schemes.one.{text.lstrip('~')}" for text in given]
    rest = ["learning.dataset=none", "learning.model=mlp", "learning.batch_size=20"]
    _, scenario = expand(path, [*labelled, *rest])[0]
    found = {
        "method": scenario.learning.method.name,
        "count": scenario.devices[0].count,
        "flops_per_cycle": scenario.devices[0].cpu.flops_per_cycle,
    }
    assert found[key] == value


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        ("lr", "{learning.method.lr: 0.5, learning.method: {name: fedprox}}"),
        ("lr", "{learning: {method.lr: 0.5, method: {name: fedprox}}}"),
        ("lr", "{learning.method.lr: 0.5, learning: {method: {name: fedprox}}}"),
        ("mu", "{learning.method.mu: 0.5, learning.method: fedprox}"),
        ("mu", "{learning.method: fedprox, learning.method.mu: 0.5}"),
        ("mu", "{learning: {method.mu: 0.5, method: fedprox}}"),
        ("mu", "{learning.method.mu: 0.5, learning: {method: fedprox}}"),
        ("mu", "{learning.method: {mu: 0.5}, learning: {method: fedprox}}"),
    ],
)
def test_a_key_holds_beside_a_mapping_or_word_that_names_another_kind(tmp_path, key, changes):
    """A section starts afresh where its kind changes: keys that stood first were lost, and behind
    a word they were refused.
    """
    path = tmp_path / "beside.yaml"
    path.write_text(REMOVALS.replace("one: {}", f"one: {changes}"))
    _, scenario = expand(path, ["learning.dataset=none", "learning.model=mlp"])[0]
    method = scenario.learning.method
    assert (method.name, method.params[key]) == ("fedprox", 0.5)


@pytest.mark.parametrize(
    "given",
    [
        ["learning.method.mu=0.5", "learning.method=fedprox"],
        ["learning.method=fedprox", "learning.method.mu=0.5"],
        ["learning.method.name=liu", "learning.method.mu=0.5", "learning.method=fedprox"],
    ],
)
def test_a_word_among_overrides_loses_no_other_override_of_its_section(tmp_path, given):
    path = tmp_path / "word.yaml"
    path.write_text(REMOVALS)
    scenario = edgesim.load(path, ["~schemes", "learning.model=mlp", *given])
    assert (scenario.learning.method.name, scenario.learning.method.params["mu"]) == (
        "fedprox",
        0.5,
    )
    assert "lr" not in scenario.learning.method.params  # of the file's method


def test_a_word_of_a_section_takes_the_keys_of_another_one(tmp_path):
    path = tmp_path / "fading.yaml"
    path.write_text(REMOVALS)
    fading = "network.channel.fading"
    given = ["~schemes", f"{fading}.coherence=5ms", f"{fading}=rayleigh"]
    assert edgesim.load(path, given).network.channel.fading.coherence_s == 0.005
    with pytest.raises(ScenarioError, match='kind="none", which reads no coherence'):
        edgesim.load(path, ["~schemes", f"{fading}=none", f"{fading}.coherence=5ms"])


DOWNLINK = "{bandwidth: 5 MHz, downlink: {mode: broadcast, tx_power: 46 dBm, bandwidth: 1 MHz},"


@pytest.mark.parametrize("change", ["{mode: unicast}", "{mode: unicast, tx_power: 40 dBm}"])
def test_downlinks_that_take_time_are_one_kind(tmp_path, change):
    """Both modes read the same keys, so that one changed to the other keeps those beside it."""
    path, scheme = tmp_path / "downlink.yaml", f"one: {{network: {{downlink: {change}}}}}"
    path.write_text(REMOVALS.replace("{bandwidth: 5 MHz,", DOWNLINK).replace("one: {}", scheme))
    down = edgesim.load(path, label="one").network.downlink
    assert (down.mode, down.bandwidth_hz) == ("unicast", 1e6)
    other = edgesim.load(path, ["network.downlink.mode=unicast"], label="two").network.downlink
    assert (other.mode, other.tx_power_w, other.bandwidth_hz) == ("unicast", 10**1.6, 1e6)
    ideal = edgesim.load(path, ["network.downlink=ideal"], label="one").network.downlink
    assert (ideal.mode, ideal.tx_power_w) == ("ideal", None)
