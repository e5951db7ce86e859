"""Every value that is not allowed is one sentence with file, line and key."""

import pytest

from edgesim.errors import ScenarioError
from edgesim.scenario.loader import expand

DEVICES = (
    "devices:\n  - {count: 2, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}\n"
)
LEARNING = (
    "learning: {dataset: digits, partition: {kind: iid}, model: mlp, batch_size: 20, "
    "method: {name: fedavg}}\n"
)
EDITS = {  # name -> old, new, part of the sentence
    "unknown key": (
        "bandwidth",
        "bandwith",
        "bad.yaml:4: the key network.bandwith is unknown; did you mean network.b",
    ),
    "key elsewhere": ("", "latency_threshold: 25 ms\n", "did you mean budget.latency_threshold?"),
    "key of another kind": (
        "kind: iid",
        "kind: iid, alpha: 2",
        "belongs to another kind of learning.partition (dirichlet); remove it, or change the kind",
    ),
    "missing key that is called as its kind": (
        "kind: iid",
        "kind: file",
        "learning.partition.file is missing; write for instance file: split.csv",
    ),
    "missing key that is called as another kind": (
        "model: constant, loss: 100 dB",
        "model: trace",
        "network.channel.path_loss.file is missing; write for instance file:",
    ),
    "unknown key beside one called as its kind": (
        "kind: iid",
        "kind: file, file: a.csv, sampel: 2",
        "the key learning.partition.sampel is unknown",
    ),
    "missing key": (
        "  bandwidth: 20 MHz\n",
        "",
        "network.bandwidth is missing; write for instance bandwidth: 20 MHz",
    ),
    "missing section": (LEARNING, "", "learning is missing"),
    "missing kind": ("{kind: iid}", "{}", "learning.partition has no kind"),
    "unknown kind": (
        "kind: iid",
        "kind: fair",
        'learning.partition.kind is "fair"; allowed is iid or labels or',
    ),
    "list for a kind": (
        "model: constant",
        "model: [constant]",
        "network.channel.path_loss.model is a list; allowed is ",
    ),
    "number for a kind": ("model: constant", "model: 5", "path_loss.model is 5; allowed is "),
    "missing unit": (
        "20 MHz",
        "20",
        'bad.yaml:4: network.bandwidth is 20 (no unit); write "20 MHz"',
    ),
    "wrong unit": (
        "25 ms",
        "25 MHz",
        'bad.yaml:9: budget.latency_threshold is "25 MHz" (a frequency); a time',
    ),
    "unknown unit": ("25 ms", "25 msec", 'unknown unit "msec"'),
    "negative bandwidth": (
        "20 MHz",
        "-20 MHz",
        'network.bandwidth is "-20 MHz"; allowed is more than 0',
    ),
    "zero bandwidth": ("20 MHz", "0 Hz", "allowed is more than 0"),
    "NaN": ("20 MHz", ".nan", "network.bandwidth is nan (not finite)"),
    "infinite": (
        "cycles_per_weight: 5",
        "cycles_per_weight: .inf",
        "cpu.cycles_per_weight is inf (not finite)",
    ),
    "1e400": (
        "cycles_per_weight: 5",
        "cycles_per_weight: 1e400",
        "(not finite); write a finite number",
    ),
    "1e400 Hz": ("20 MHz", "1e400 Hz", "too large for a computer's number"),
    "huge integer": ("cycles_per_weight: 5", "cycles_per_weight: " + "9" * 399, "(not finite)"),
    "endless digits": ("rounds: 3", "rounds: " + "9" * 9000, "rounds is 99999999999999999999..."),
    "list for a scalar": (
        "20 MHz",
        "[20 MHz]",
        "network.bandwidth is a list; write a frequency with unit",
    ),
    "mapping for a scalar": (
        "rounds: 3",
        "rounds: {a: 3}",
        "rounds is a mapping; write a whole number",
    ),
    "scalar for a mapping": (
        "budget: {latency_threshold: 25 ms}",
        "budget: 25 ms",
        'budget is "25 ms"; write a mapping',
    ),
    "scalar for devices": (DEVICES, "devices: 5\n", "devices is 5; write a list"),
    "no devices": (DEVICES, "devices: []\n", "devices is an empty list"),
    "zero devices": (
        "count: 2",
        "count: 0",
        "bad.yaml:8: devices.0.count is 0; write a whole number from 1",
    ),
    "half a device": ("count: 2", "count: 1.5", "devices.0.count is 1.5; write a whole number"),
    "bool for a number": ("rounds: 3", "rounds: true", "rounds is true; write a whole number"),
    "text for a number": ("rounds: 3", "rounds: '3'", 'rounds is "3"; write a whole number'),
    "number for a name": ("name: cell", "name: 5", "name is 5; write a short name"),
    "path as name": ("name: cell", "name: ../../etc", 'name is "../../etc"; write a short name'),
    "empty value": ("rounds: 3", "rounds:", "rounds is empty; write a whole number"),
    "misspelt word": (
        "",
        "clock: {mode: synchronus}\n",
        'clock.mode is "synchronus"; did you mean synchronous?',
    ),
    "list too short": (
        "28 dBm",
        "[28 dBm]",
        "devices.0.tx_power has 1 value, but count says 2 devices",
    ),
    "list too long": (
        "loss: 100 dB",
        "loss: [9 dB, 9 dB, 9 dB]",
        "path_loss.loss has 3 values, but the cell has 2",
    ),
    "bad item": ("28 dBm", "[28 dBm, 28]", 'devices.0.tx_power.1 is 28 (no unit); write "28 dBm"'),
    "uniform reversed": (
        "3 GHz",
        "{uniform: [3 GHz, 1 GHz]}",
        "cpu.frequency.uniform is [3 GHz, 1 GHz]; write two values",
    ),
    "unknown distribution": (
        "3 GHz",
        "{zipf: [3 GHz]}",
        "cpu.frequency is {zipf}; a distribution has one of",
    ),
    "empty choice": ("3 GHz", "{choice: []}", "cpu.frequency.choice is an empty list"),
    "trace missing": (
        "3 GHz",
        "{trace: no.csv}",
        'cpu.frequency.trace is "no.csv"; the file cannot be read',
    ),
    "trace is a folder": ("3 GHz", "{trace: .}", "the file cannot be read"),
    "bad trace": ("3 GHz", "{trace: trace.csv}", 'trace is "fast" (not a number with a unit)'),
    "probability": (
        "count: 2",
        "count: 2, availability: 1.5",
        "devices.0.availability is 1.5; allowed is more than 0",
    ),
    "no capability": (
        "count: 2",
        "count: 2, capability: 0",
        "capability is 0; allowed is more than 0 and at",
    ),
    "a capability as a fraction": (
        "count: 2",
        "count: 2, capability: {choice: [1, 1/2]}",
        'devices.0.capability.choice.1 is "1/2"; write a plain number without unit',
    ),
    "more than the whole model": (
        "count: 2",
        "count: 2, model_budget: 1.5",
        "bad.yaml:8: devices.0.model_budget is 1.5; allowed is more than 0 and at most 1",
    ),
    "a given capability drawn every round": (
        "count: 2",
        "count: 2, capability: 0.5, capability_drawn: round",
        'bad.yaml:8: devices.0.capability_drawn is "round", but capability is given, '
        "not drawn; write",
    ),
    "a word for a flag": (
        "",
        "accounting: {count_biases: yes}\n",
        'count_biases is "yes"; write true or false',
    ),
    "a number for a flag": (
        "",
        "accounting: {count_biases: 1}\n",
        "count_biases is 1; write true or false",
    ),
    "speakers with an alpha": (
        "kind: iid",
        "kind: speakers, alpha: 2",
        "alpha belongs to another kind of learning.partition",
    ),
    "no sample at all": (
        "kind: iid",
        "kind: dirichlet, alpha: 2, min_samples: 0",
        "learning.partition.min_samples is 0; write a whole number from 1",
    ),
    "never available": (
        "count: 2",
        "count: 2, availability: 0",
        "allowed is more than 0 and at most 1",
    ),
    "deadline without threshold": (
        "budget: {latency_threshold: 25 ms}",
        "clock: {mode: deadline}",
        "clock.mode is deadline, wh",
    ),
    "both costs": (
        "per_weight: 5",
        "per_weight: 5, flops_per_cycle: 2",
        "stands beside cycles_per_weight; keep exactly one",
    ),
    "no cost": (", cycles_per_weight: 5", "", "devices.0.cpu has no cost of computing"),
    "rayleigh without coherence": (
        "100 dB}}",
        "100 dB}, fading: {kind: rayleigh}}",
        "without coherence",
    ),
    "broadcast without power": (
        "  noise",
        "  downlink: {mode: broadcast}\n  noise",
        "without tx_power",
    ),
    "ideal with power": (
        "  noise",
        "  downlink: {mode: ideal, tx_power: 1 W}\n  noise",
        "reads no tx_power",
    ),
    "distance nobody reads": (
        "count: 2",
        "count: 2, distance: 5 m",
        "is not read with path_loss model constant",
    ),
    "no method name": (
        "method: {name: fedavg}",
        "method: {lr: 1}",
        "learning.method is a mapping; write a mapping with the",
    ),
    "nested parameter": (
        "name: fedavg",
        "name: fedavg, lr: [1]",
        "learning.method.lr is [1]; allowed is a number > 0",
    ),
    "NaN parameter": (
        "name: fedavg",
        "name: fedavg, lr: .nan",
        "learning.method.lr is nan (not finite)",
    ),
    "whose schemes": (
        "",
        "report: {schemes: {joint: proposed}}\n",
        "report needs beside: liu too",
    ),
    "target in percent": (
        "",
        "evaluate: {targets: [80]}\n",
        "evaluate.targets.0 is 80; allowed is more than 0 and less than 1",
    ),
    "schemes is a list": (
        "",
        "schemes: [a]\n",
        "schemes is a list; write a mapping of label: changes",
    ),
    "no schemes": ("", "schemes: {}\n", "schemes is a mapping; write a mapping of label: changes"),
    "scheme is a number": ("", "schemes: {a: 5}\n", "schemes.a is 5; write a mapping of changes"),
    "label is a path": ("", "schemes: {../a: {}}\n", 'the label "../a" is not allowed'),
    "scheme changes an unknown key": (
        "",
        "schemes:\n  a: {}\n  b: {learning: {modle: x}}\n",
        "bad.yaml:13: the key learning.modle",
    ),
    "scheme into a number": (
        "",
        "schemes:\n  a: {rounds.x: 3}\n",
        "rounds.x cannot be set, because rounds is not a mapping",
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_value_that_is_not_allowed(sentence_of_edit, name):
    old, new, expected = EDITS[name]
    assert expected in sentence_of_edit(old, new)


def test_the_file_itself_is_good(good):
    assert len(expand("good.yaml")) == 1


def test_a_bad_trace_is_named_with_its_line(good, tmp_path):
    (tmp_path / "bad.yaml").write_text(good.replace("3 GHz", "{trace: trace.csv}"))
    place = r"bad.yaml:8: devices.0.cpu.frequency.trace .* \(trace.csv, line 2\)"
    with pytest.raises(ScenarioError, match=place):
        expand("bad.yaml")


def test_unknown_keys_come_first_because_they_explain_missing_ones(good, sentence_of_file):
    text = good.replace("rounds: 3\n", "").replace("bandwidth", "band")
    assert "network.band is unknown" in sentence_of_file(text)
