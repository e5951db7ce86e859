"""Every key is documented; explanation and JSON schema agree with what is read."""

import re
from pathlib import Path

import pytest

from edgesim.errors import ScenarioError
from edgesim.scenario.documented_keys import all_keys
from edgesim.scenario.documents.yaml_text import read_text
from edgesim.scenario.key_docs import explain_key, json_schema
from edgesim.scenario.loader import load
from edgesim.scenario.radio.own_loss_schema import SHORT_KEYS

ROOT = Path(__file__).parents[3]


def test_every_default_has_a_source():
    assert [info.key for info in all_keys() if info.default != "required" and not info.source] == []
    assert [info.key for info in all_keys() if info.default == "required" and info.source] == []


def test_every_key_is_explained_with_an_example_that_is_allowed(path):
    for info in all_keys():
        assert info.meaning and info.allowed and info.example, info.key
    for info in (
        explain_key("network.channel.fading")
        + explain_key("accounting")
        + explain_key("evaluate")
        + explain_key("budget")
    ):
        alone = not info.key.startswith("network.channel.fading.") or info.key.endswith("kind")
        if not info.section and alone:
            extra = (
                "{kind: rayleigh, coherence: 5 ms}" if info.key.endswith("kind") else info.example
            )
            load(path, [f"{info.key.removesuffix('.kind')}={extra}"])


def test_explain_finds_a_key_a_section_and_the_nearest():
    assert [info.key for info in explain_key("budget.latency_threshold")] == [
        "budget.latency_threshold"
    ]
    assert (
        explain_key("devices[0].tx_power")
        == explain_key("devices.0.tx_power")
        == explain_key("devices.tx_power")
    )
    assert {"network.noise", "network.channel.path_loss.exponent"} <= {
        info.key for info in explain_key("network")
    }
    assert explain_key("devices.tx_power")[0].unit == "W"
    with pytest.raises(
        ScenarioError, match=r"latency_threshold is unknown; did you mean budget\.latency_threshold"
    ):
        explain_key("latency_threshold")
    with pytest.raises(ScenarioError, match=r"did you mean budget\.latency_threshold"):
        explain_key("budgt.latency_treshold")  # wrong in both words
    with pytest.raises(ScenarioError, match=r"did you mean network\.channel\.trace\?"):
        explain_key("network.channel.tracee")  # of the short form


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("solver", "allocation.solver"),  # and not server
        ("validation", "learning.validation"),  # and not allocation
        ("device", "devices"),  # and not learning.device
        ("network.downlink.power", "network.downlink.tx_power"),
        ("devices.cpu.cycles", "devices.cpu.cycles_per_weight"),  # and not levels
        ("devices.frequency", "devices.cpu.frequency"),  # and not that of the carrier
        ("learning.alpha", "learning.partition.alpha"),  # and not that of the power control
        ("model", "learning.model"),  # and not that of the path loss
        ("learning.partition.samples_per_device", "learning.samples_per_device"),  # and not labels_
    ],
)
def test_a_key_outside_its_section_is_found_there(key, meant):
    with pytest.raises(ScenarioError, match=rf"{key} is unknown; did you mean {meant}\?"):
        explain_key(key)


def test_a_key_is_not_answered_by_one_that_shares_its_section_alone():
    with pytest.raises(
        ScenarioError, match=r"learning\.lr is unknown; allowed here: dataset, .*method"
    ):
        explain_key("learning.lr")


def test_an_unknown_key_of_a_section_is_not_answered_by_the_section():
    """budget.q is as near to budget as a word with one letter less."""
    with pytest.raises(ScenarioError, match=r"\.q is unknown; allowed here: latency_threshold"):
        explain_key("budget.q")


@pytest.mark.parametrize(
    ("key", "default", "source"),
    [
        ("network.layout.sectors", "3 or 1", "of sites one in all directions"),
        ("devices.presence.period", "86.4 ks or none", "of a trace nothing is repeated"),
    ],
)
def test_a_key_of_two_kinds_has_the_defaults_of_both(key, default, source):
    (info,) = explain_key(key)
    assert info.default == default and info.source.endswith(source)


@pytest.mark.parametrize(
    ("key", "only_with"),
    [
        ("learning.batch_size", ""),
        ("learning.partition.kind", ""),
        ("learning.partition.alpha", "learning.partition.kind: dirichlet"),
        ("devices.presence.outage.up", ""),
        ("devices.presence.period", "devices.presence.kind: diurnal or trace"),
        ("network.channel.path_loss.exponent", "network.channel.path_loss.model: log-distance"),
        (
            "network.channel.path_loss.antenna.downtilt",
            "network.channel.path_loss.model: uma or umi or rma or inh",
        ),
    ],
)
def test_a_key_says_which_kinds_of_its_section_have_it(key, only_with):
    (info,) = explain_key(key)
    assert info.only_with == only_with


@pytest.mark.parametrize(("short", "full"), SHORT_KEYS.items())
def test_a_short_key_is_explained_by_that_in_full(path, short, full):
    ((found,), (known,)) = (explain_key(key) for key in (short, full))
    assert found.key == short and found.meaning.startswith(known.meaning)
    assert f"in place of network.channel.path_loss, short for {full}" in found.meaning
    assert found.example == known.example and not found.only_with
    channel = {"trace": "rates.csv", "end": "hold"} | {short.rpartition(".")[2]: found.example}
    written = ", ".join(f"{name}: {value}" for name, value in channel.items())
    read = load(path, [f"network.channel={{{written}}}"])
    loss = read.network.channel.path_loss
    assert getattr(loss, full.rpartition(".")[2]) == found.example


@pytest.fixture(scope="module")
def schema():
    return json_schema()


def conforms(value, rule, root):
    """The part of JSON Schema that ours uses."""
    if "$ref" in rule:
        return conforms(value, root["$defs"][rule["$ref"].rpartition("/")[2]], root)
    for union in ("anyOf", "oneOf"):
        if union in rule:
            return any(conforms(value, option, root) for option in rule[union])
    if "const" in rule or "enum" in rule:
        return value in rule.get("enum", [rule.get("const")])
    kinds = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
    }
    names = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
    if not isinstance(value, tuple(kinds[name] for name in names)):
        return False
    if isinstance(value, dict):
        known, extra = rule.get("properties", {}), rule.get("additionalProperties", True)
        unknown = [key for key in value if key not in known]
        return (
            (extra is not False or not unknown)
            and all(key in value for key in rule.get("required", []))
            and all(conforms(item, known[key], root) for key, item in value.items() if key in known)
        )
    if isinstance(value, list):
        return all(conforms(item, rule["items"], root) for item in value)
    return re.search(rule.get("pattern", ""), str(value)) is not None


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ({}, True),
        ({"rounds": "three"}, False),
        ({"roundz": 3}, False),
        ({"budget": {"latency_threshold": "25 MHz"}}, False),
        ({"budget": {"latency_threshold": 25}}, False),
        ({"budget": {"latency_threshold": "none"}}, True),
        ({"clock": {"mode": "someday"}}, False),
        ({"accounting": {"count_biases": True, "backward": "twice"}}, True),
        ({"accounting": {"count_biases": "yes"}}, False),
    ],
)
def test_the_schema_accepts_what_load_accepts(change, fits, path, schemes, schema):
    tree = {**read_text(path.read_text() + schemes, "cell.yaml").tree, **change}
    assert conforms(tree, schema, schema) is fits


@pytest.mark.parametrize(
    "file", sorted((ROOT / "scenarios").glob("*.yaml")), ids=lambda file: file.name
)
def test_the_schema_accepts_the_shipped_scenarios(file, schema):
    assert conforms(read_text(file.read_text(), file.name).tree, schema, schema)
