"""Radio keys that are not allowed, or that nothing reads, are one sentence with file and line."""

from pathlib import Path

import pytest

from edgesim.errors import ScenarioError
from edgesim.scenario import load

FILE = Path(__file__).parents[3] / "scenarios" / "planning-under-fading.yaml"
REFUSED = [
    # label, changes, part of the sentence
    ("now", ["allocation.rate=quantil"], "did you mean quantile?"),
    ("now", ["allocation.reliability=0.9"], "reads no reliability;"),
    ("mean", ["allocation.reliability_for=round"], "reads no reliability_for;"),
    ("quantile 5 percent", ["allocation.reliability=1"], "more than 0 and less than 1"),
    ("quantile 5 percent", ["allocation.reliability=0"], "more than 0"),
    ("quantile 5 percent", ["allocation.reliability=95 %"], "a plain number without unit"),
    ("quantile 5 percent", ["allocation.reliability_for=devices"], "did you mean device?"),
    ("quantile 5 percent", ["budget.latency_threshold=none"], "needs a threshold"),
]


@pytest.mark.parametrize(("label", "changes", "part"), REFUSED, ids=lambda x: str(x)[-40:])
def test_it_is_one_sentence_with_its_key(label, changes, part):
    with pytest.raises(ScenarioError) as refused:
        load(FILE, changes, label=label)
    sentence = str(refused.value)
    assert part in sentence and "\n" not in sentence
    assert "command line" in sentence or "planning-under-fading.yaml:" in sentence
