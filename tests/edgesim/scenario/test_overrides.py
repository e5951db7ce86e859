"""Overrides of the command line that lead nowhere are one sentence."""

import pytest

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
    "devices.count=3": "devices.count leads into a list; write devices.0 for its items",
    "devices.7.count=3": "devices.7.count leads into a list",
    "network.5=3": "network.5 counts into network, which is not a list",
    "rounds.more=3": "rounds.more cannot be set, because rounds is not a mapping",
    "clock.mode=deadlin": 'clock.mode="deadlin"; did you mean deadline?',
    "schemes=5": "schemes=5; write a mapping of label: changes",
}


@pytest.mark.parametrize("text", OVERRIDES)
def test_a_wrong_override(good, sentence_of, text):
    assert sentence_of("check", "good.yaml", text).startswith(f"command line: {OVERRIDES[text]}")
