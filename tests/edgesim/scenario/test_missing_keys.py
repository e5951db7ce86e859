"""A file without several keys is told of all of them at once."""

import pytest

from edgesim.scenario.validation import MOST_NAMED


def test_keys_that_are_missing_too_are_named(good, sentence_of_file):
    text = good.replace("  noise: -110 dBm\n", "").replace("batch_size: 20, ", "")
    said = sentence_of_file(text.replace("rounds: 3\n", ""))
    assert said.endswith(
        "rounds is missing; write for instance rounds: 100; "
        "missing too: network.noise, learning.batch_size"
    )


def test_of_many_the_first_are_named(sentence_of_file):
    said = sentence_of_file("name: a\nrounds: 1\ndevices: [{}, {}, {}, {}, {}]\n")
    missing = said.partition("; missing too: ")[2].split(", ")
    asked = [f"devices.{i}.{key}" for i in range(5) for key in ("count", "tx_power", "cpu")]
    # the network is said first, the learning last
    assert missing == [*asked[:MOST_NAMED], f"{len(asked) + 1 - MOST_NAMED} more"]


@pytest.mark.parametrize(
    ("given", "kind", "example"),
    [
        ("partition: natural", "partition: {kind: iid}", "kind: natural"),
        ("partition: iid", "partition: {kind: iid}", "kind: iid"),
        (
            "path_loss: log-distance",
            "path_loss: {model: constant, loss: 100 dB}",
            "model: log-distance, reference_loss: 38.5 dB, exponent: 3.0",
        ),
        (
            "partition: random",
            "partition: {kind: iid}",
            "kind: labels, labels_per_device: 2",
        ),
    ],
)
def test_a_kind_without_its_key_is_put_into_the_example(sentence_of_edit, given, kind, example):
    section = given.partition(":")[0]
    said = sentence_of_edit(kind, given)
    assert said.endswith(f"write a mapping of keys, for instance {section}: {{{example}}}")
