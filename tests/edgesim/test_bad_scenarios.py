"""Every malformed scenario gives one clear sentence and exit code 2, at once, and leaves nothing behind."""

import pytest
from typer.testing import CliRunner

from edgesim.cli.app import app
from edgesim.errors import ScenarioError
from edgesim.scenario.loader import expand

GOOD = """\
name: cell
rounds: 3
network:
  bandwidth: 20 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 100 dB}}
devices:
  - {count: 2, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}
budget: {latency_threshold: 25 ms}
learning: {dataset: digits, partition: {kind: iid}, model: mlp, batch_size: 20, method: {name: fedavg}}
"""
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


# name -> (the file's text or bytes, what the one sentence must hold)
FILES = {
    "syntax": (changed("20 MHz", "[20 MHz"), "not valid YAML"),
    "two colons": (changed("rounds: 3", "rounds: a: 3"), "bad.yaml:2: not valid YAML"),
    "tab": (changed("  noise", "\tnoise"), "bad.yaml:5: not valid YAML"),
    "control character": (changed("name: cell", "name: c\x01ell"), "bad.yaml:1: not valid YAML"),
    "not UTF-8": (GOOD.encode() + b"# caf\xe9\n", "bad.yaml:11: a byte that is not UTF-8"),
    "binary": (bytes(range(256)) * 10, "not UTF-8"),
    "empty": ("", "the file is empty"),
    "only comments": ("# nothing\n", "the file is empty"),
    "nothing": ("---\n", "the scenario is empty; write a mapping"),
    "top-level list": ("- name: cell\n", "the scenario is a list; write a mapping"),
    "top-level word": ("cell\n", 'the scenario is "cell"; write a mapping'),
    "two documents": (GOOD + "---\n" + GOOD, "a second document starts"),
    "cyclic alias": ("a: &a [*a]\n", 'bad.yaml:1: anchors and aliases ("a") are not allowed'),
    "alias bomb": (BOMB, "anchors and aliases"),
    "tag": (
        changed("rounds: 3", "rounds: !!python/object/apply:os.getcwd []"),
        "bad.yaml:2: the tag",
    ),
    "duplicate key": (
        changed("rounds: 3", "rounds: 3\nrounds: 4"),
        'bad.yaml:3: the key "rounds" stands twice',
    ),
    "mapping as key": (
        changed("rounds: 3", "? {a: b}\n: 3"),
        "bad.yaml:2: a key is a list or a mapping",
    ),
    "deep nesting": ("a: " + "[" * 50_000, "nested deeper than 20 levels"),
    "deep mapping": ("".join(f"{' ' * i}a:\n" for i in range(300)), "nested deeper than 20 levels"),
    "10 MB": ("#" * 10_000_000, "larger than 256 KiB"),
    "unknown key": (
        changed("bandwidth", "bandwith"),
        "bad.yaml:4: the key network.bandwith is unknown; did you mean network.b",
    ),
    "key elsewhere": (
        GOOD + "latency_threshold: 25 ms\n",
        "did you mean budget.latency_threshold?",
    ),
    "key of another kind": (
        changed("kind: iid", "kind: iid, alpha: 2"),
        "belongs to another kind of learning.partition",
    ),
    "missing key": (
        changed("  bandwidth: 20 MHz\n", ""),
        "network.bandwidth is missing; write for instance bandwidth: 20 MHz",
    ),
    "missing section": (GOOD[: GOOD.index("learning")], "learning is missing"),
    "missing kind": (changed("{kind: iid}", "{}"), "learning.partition has no kind"),
    "unknown kind": (
        changed("kind: iid", "kind: fair"),
        'learning.partition.kind is "fair"; allowed is iid or labels or',
    ),
    "missing unit": (
        changed("20 MHz", "20"),
        'bad.yaml:4: network.bandwidth is 20 (no unit); write "20 MHz"',
    ),
    "wrong unit": (
        changed("25 ms", "25 MHz"),
        'bad.yaml:9: budget.latency_threshold is "25 MHz" (a frequency); a time',
    ),
    "unknown unit": (changed("25 ms", "25 msec"), 'unknown unit "msec"'),
    "negative bandwidth": (
        changed("20 MHz", "-20 MHz"),
        'network.bandwidth is "-20 MHz"; allowed is more than 0',
    ),
    "zero bandwidth": (changed("20 MHz", "0 Hz"), "allowed is more than 0"),
    "NaN": (changed("20 MHz", ".nan"), "network.bandwidth is nan (not finite)"),
    "infinite": (
        changed("cycles_per_weight: 5", "cycles_per_weight: .inf"),
        "cpu.cycles_per_weight is inf (not finite)",
    ),
    "1e400": (
        changed("cycles_per_weight: 5", "cycles_per_weight: 1e400"),
        "(not finite); write a finite number",
    ),
    "1e400 Hz": (changed("20 MHz", "1e400 Hz"), "too large for a computer's number"),
    "huge integer": (
        changed("cycles_per_weight: 5", "cycles_per_weight: " + "9" * 399),
        "(not finite)",
    ),
    "endless digits": (changed("rounds: 3", "rounds: " + "9" * 9000), "rounds is "),
    "list for a scalar": (
        changed("20 MHz", "[20 MHz]"),
        "network.bandwidth is a list; write a frequency with unit",
    ),
    "mapping for a scalar": (
        changed("rounds: 3", "rounds: {a: 3}"),
        "rounds is a mapping; write a whole number",
    ),
    "scalar for a mapping": (
        changed("budget: {latency_threshold: 25 ms}", "budget: 25 ms"),
        'budget is "25 ms"; write a mapping',
    ),
    "scalar for devices": (
        GOOD.replace(GOOD.splitlines()[7] + "\n", "").replace("devices:", "devices: 5"),
        "devices is 5; write a list",
    ),
    "no devices": (
        GOOD.replace(GOOD.splitlines()[7] + "\n", "").replace("devices:", "devices: []"),
        "devices is an empty list",
    ),
    "zero devices": (
        changed("count: 2", "count: 0"),
        "bad.yaml:8: devices.0.count is 0; write a whole number from 1",
    ),
    "half a device": (
        changed("count: 2", "count: 1.5"),
        "devices.0.count is 1.5; write a whole number",
    ),
    "bool for a number": (
        changed("rounds: 3", "rounds: true"),
        "rounds is true; write a whole number",
    ),
    "text for a number": (
        changed("rounds: 3", "rounds: '3'"),
        'rounds is "3"; write a whole number',
    ),
    "number for a name": (changed("name: cell", "name: 5"), "name is 5; write a short name"),
    "path as name": (
        changed("name: cell", "name: ../../etc"),
        'name is "../../etc"; write a short name',
    ),
    "empty value": (changed("rounds: 3", "rounds:"), "rounds is empty; write a whole number"),
    "misspelt word": (
        GOOD + "clock: {mode: synchronus}\n",
        'clock.mode is "synchronus"; did you mean synchronous?',
    ),
    "list too short": (
        changed("28 dBm", "[28 dBm]"),
        "devices.0.tx_power has 1 values, but count says 2 devices",
    ),
    "list too long": (
        changed("loss: 100 dB", "loss: [9 dB, 9 dB, 9 dB]"),
        "path_loss.loss has 3 values, but the cell has 2",
    ),
    "bad item": (
        changed("28 dBm", "[28 dBm, 28]"),
        'devices.0.tx_power.1 is 28 (no unit); write "28 dBm"',
    ),
    "uniform reversed": (
        changed("3 GHz", "{uniform: [3 GHz, 1 GHz]}"),
        "cpu.frequency.uniform is [3 GHz, 1 GHz]; write two values",
    ),
    "unknown distribution": (
        changed("3 GHz", "{zipf: [3 GHz]}"),
        "cpu.frequency is {zipf}; a distribution has one of",
    ),
    "empty choice": (changed("3 GHz", "{choice: []}"), "cpu.frequency.choice is an empty list"),
    "trace missing": (
        changed("3 GHz", "{trace: no.csv}"),
        'cpu.frequency.trace is "no.csv"; the file cannot be read',
    ),
    "trace is a folder": (changed("3 GHz", "{trace: .}"), "the file cannot be read"),
    "bad trace": (
        changed("3 GHz", "{trace: trace.csv}"),
        'trace is "fast" (not a number with a unit)',
    ),
    "probability": (
        changed("count: 2", "count: 2, availability: 1.5"),
        "devices.0.availability is 1.5; allowed is more than 0",
    ),
    "no capability": (
        changed("count: 2", "count: 2, capability: 0"),
        "capability is 0; allowed is more than 0 and at",
    ),
    "a capability as a fraction": (
        changed("count: 2", "count: 2, capability: {choice: [1, 1/2]}"),
        'devices.0.capability.choice.1 is "1/2"; write a plain number without unit',
    ),
    "more than the whole model": (
        changed("count: 2", "count: 2, model_budget: 1.5"),
        "bad.yaml:8: devices.0.model_budget is 1.5; allowed is more than 0 and at most 1",
    ),
    "a given capability drawn every round": (
        changed("count: 2", "count: 2, capability: 0.5, capability_drawn: round"),
        'bad.yaml:8: devices.0.capability_drawn is "round", but capability is given, not drawn; write',
    ),
    "a word for a flag": (
        GOOD + "accounting: {count_biases: yes}\n",
        'count_biases is "yes"; write true or false',
    ),
    "a number for a flag": (
        GOOD + "accounting: {count_biases: 1}\n",
        "count_biases is 1; write true or false",
    ),
    "speakers with an alpha": (
        changed("kind: iid", "kind: speakers, alpha: 2"),
        "alpha belongs to another kind of learning.partition",
    ),
    "no sample at all": (
        changed("kind: iid", "kind: dirichlet, alpha: 2, min_samples: 0"),
        "learning.partition.min_samples is 0; write a whole number from 1",
    ),
    "never available": (
        changed("count: 2", "count: 2, availability: 0"),
        "allowed is more than 0 and at most 1",
    ),
    "deadline without threshold": (
        changed("budget: {latency_threshold: 25 ms}", "clock: {mode: deadline}"),
        "clock.mode is deadline, wh",
    ),
    "both costs": (
        changed("per_weight: 5", "per_weight: 5, flops_per_cycle: 2"),
        "stands beside cycles_per_weight; keep exactly one",
    ),
    "no cost": (changed(", cycles_per_weight: 5", ""), "devices.0.cpu has no cost of computing"),
    "rayleigh without coherence": (
        changed("100 dB}}", "100 dB}, fading: {kind: rayleigh}}"),
        "without coherence",
    ),
    "broadcast without power": (
        changed("  noise", "  downlink: {mode: broadcast}\n  noise"),
        "without tx_power",
    ),
    "ideal with power": (
        changed("  noise", "  downlink: {mode: ideal, tx_power: 1 W}\n  noise"),
        "reads no tx_power",
    ),
    "distance nobody reads": (
        changed("count: 2", "count: 2, distance: 5 m"),
        "is not read with path_loss model constant",
    ),
    "no method name": (
        changed("method: {name: fedavg}", "method: {lr: 1}"),
        "learning.method is a mapping; write a mapping with the",
    ),
    "nested parameter": (
        changed("name: fedavg", "name: fedavg, lr: [1]"),
        "learning.method.lr is [1]; allowed is a number > 0",
    ),
    "NaN parameter": (
        changed("name: fedavg", "name: fedavg, lr: .nan"),
        "learning.method.lr is nan (not finite)",
    ),
    "target in percent": (
        GOOD + "evaluate: {targets: [80]}\n",
        "evaluate.targets.0 is 80; allowed is more than 0 and less than 1",
    ),
    "schemes is a list": (
        GOOD + "schemes: [a]\n",
        "schemes is a list; write a mapping of label: changes",
    ),
    "no schemes": (
        GOOD + "schemes: {}\n",
        "schemes is a mapping; write a mapping of label: changes",
    ),
    "scheme is a number": (
        GOOD + "schemes: {a: 5}\n",
        "schemes.a is 5; write a mapping of changes",
    ),
    "label is a path": (GOOD + "schemes: {../a: {}}\n", 'the label "../a" is not allowed'),
    "scheme changes an unknown key": (
        GOOD + "schemes:\n  a: {}\n  b: {learning: {modle: x}}\n",
        "bad.yaml:13: the key learning.modle",
    ),
    "scheme into a number": (
        GOOD + "schemes:\n  a: {rounds.x: 3}\n",
        "rounds.x cannot be set, because rounds is not a mapping",
    ),
}

OVERRIDES = {
    "rounds": '"rounds" is not an override; write key=value',
    "=3": '"=3" is not an override',
    "rounds=": "rounds has no value",
    "rounds=[": "rounds: not valid YAML",
    "rounds=*a": "rounds: anchors and aliases",
    "budget.latency_threshold=25": 'budget.latency_threshold=25 (no unit); write "25 ms"',
    "network.bandwith=3 MHz": "the key network.bandwith is unknown; did you mean network.bandwidth?",
    "devices.count=3": "devices.count leads into a list; write devices.0 for its items",
    "devices.7.count=3": "devices.7.count leads into a list",
    "network.5=3": "network.5 counts into network, which is not a list",
    "rounds.more=3": "rounds.more cannot be set, because rounds is not a mapping",
    "clock.mode=deadlin": 'clock.mode="deadlin"; did you mean deadline?',
    "schemes=5": "schemes=5; write a mapping of label: changes",
}


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def one_sentence(result) -> str:
    """Exit code 2, nothing on stdout, one line on stderr."""
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    lines = result.stderr.splitlines()
    assert len(lines) == 1, lines
    assert (
        "Traceback" not in lines[0]
        and "Input should" not in lines[0]
        and "pydantic" not in lines[0]
    )
    return lines[0]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.csv").write_text("3 GHz\nfast\n")
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_a_malformed_file(folder, name):
    content, expected = FILES[name]
    (folder / "bad.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    sentence = one_sentence(invoke("run", "bad.yaml"))
    assert sentence.startswith("bad.yaml:") and expected in sentence
    assert len(sentence) < 300
    assert sorted(path.name for path in folder.iterdir()) == ["bad.yaml", "trace.csv"]


@pytest.mark.parametrize("text", OVERRIDES)
def test_a_wrong_override(folder, text):
    (folder / "good.yaml").write_text(GOOD)
    assert one_sentence(invoke("check", "good.yaml", text)).startswith(
        f"command line: {OVERRIDES[text]}"
    )


def test_the_file_itself_is_good(folder):
    (folder / "good.yaml").write_text(GOOD)
    assert len(expand("good.yaml")) == 1


def test_a_missing_file_and_a_folder(folder):
    assert "there is no such file" in one_sentence(invoke("run", "nowhere.yaml"))
    assert "this is a folder" in one_sentence(invoke("check", folder))
    assert "cannot be read" in one_sentence(invoke("check", "x" * 5000))


def test_a_slow_trace_is_named_with_its_line(folder):
    (folder / "bad.yaml").write_text(changed("3 GHz", "{trace: trace.csv}"))
    with pytest.raises(
        ScenarioError, match=r"bad.yaml:8: devices.0.cpu.frequency.trace .* \(trace.csv, line 2\)"
    ):
        expand("bad.yaml")


def test_unknown_keys_come_first_because_they_explain_missing_ones(folder):
    (folder / "bad.yaml").write_text(changed("rounds: 3\n", "").replace("bandwidth", "band"))
    assert "network.band is unknown" in one_sentence(invoke("check", "bad.yaml"))
