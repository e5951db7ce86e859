"""Values of network.interference and allocation.interference that cannot be: one sentence each."""

from pathlib import Path

import pytest

from edgesim.errors import ScenarioError
from edgesim.scenario import load

NETWORK = Path(__file__).parents[4] / "scenarios" / "network.yaml"
WORDS = "write none, full, load, events, resolved or {refresh: 10 ms}"
TIME = "a time is needed"
HEARD = {  # value of network.interference -> part of the sentence
    "resolve": WORDS,
    "Resolved": WORDS,
    "resolved ms": WORDS,
    "by-block": WORDS,
    "measured": WORDS,
    '""': WORDS,
    "true": WORDS,
    "no": WORDS,
    "51": WORDS,
    ".nan": WORDS,
    "-1.5": WORDS,
    "[]": WORDS,
    "[resolved]": WORDS,
    "{}": WORDS,
    "{resolved: 51}": WORDS,
    "{resolved: true, refresh: 10 ms}": WORDS,
    "{mode: resolved}": WORDS,
    "{refresh: resolved}": "interference.refresh",
    "{refresh: 51 RB}": "unknown unit",
    "{refresh: 10 MHz}": TIME,
}
PLANNED = {  # the same of allocation.interference
    "resolved": "full or load or measured",
    "Measured": "did you mean measured",
    "measure": "did you mean measured",
    "seen": "full or load or measured",
    "none": "full or load or measured",
    '""': "full or load or measured",
    "true": "full or load or measured",
    "0": "full or load or measured",
    ".inf": "full or load or measured",
    "[measured]": "is a list",
    "{measured: 3}": "is a mapping",
    "{refresh: 10 ms}": "full or load or measured",
}
RESOLVED, MEASURED = "network.interference=resolved", "allocation.interference=measured"
SPREAD = "{kind: rayleigh, process: clarke, speed: 3 km/h, delay_spread: 100 ns}"
TOGETHER = [  # changes of the file -> key, part of the sentence
    (["network.fidelity=cell", RESOLVED], "network.interference", "not read without other cells"),
    (
        ["network.fidelity=cell", MEASURED],
        "allocation.interference",
        "not read without other cells",
    ),
    (
        [RESOLVED, f"network.channel.fading={SPREAD}"],
        "network.interference",
        "write events, or remove delay_spread",
    ),
    (["network.interference=none", MEASURED], "allocation.interference", "leaves nothing"),
    ([MEASURED, "clock.mode=asynchronous"], "clock.mode", "whose jobs overlap"),
]


def sentence_of(path, changes=()):
    with pytest.raises(ScenarioError) as error:
        load(path, list(changes))
    sentence = str(error.value)
    assert "\n" not in sentence and len(sentence) < 300 and "pydantic" not in sentence
    return sentence


@pytest.mark.parametrize(
    ("section", "value", "part"),
    [("network", *each) for each in HEARD.items()]
    + [("allocation", *each) for each in PLANNED.items()],
)
def test_a_value(section, value, part, tmp_path):
    rows = [
        "allocation:" if row.startswith("allocation:") else row
        for row in NETWORK.read_text("utf-8").splitlines()
    ]
    place = rows.index(f"{section}:") + 1
    path = tmp_path / "hostile.yaml"
    path.write_text("\n".join([*rows[:place], f"  interference: {value}", *rows[place:]]), "utf-8")
    sentence = sentence_of(path)
    assert sentence.startswith(f"{path}:{place + 1}: {section}.interference"), sentence
    assert part in sentence, sentence


@pytest.mark.parametrize(("changes", "key", "part"), TOGETHER)
def test_what_does_not_go_together(changes, key, part):
    sentence = sentence_of(NETWORK, changes)
    assert f"{key} is " in sentence and part in sentence, sentence
