"""The code in docs/guide runs as it is printed there."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from edgesim import load, simulate

ROOT = Path(__file__).parent.parent.parent
GUIDES = ROOT / "docs" / "guide"


def blocks(page: str) -> list[str]:
    """Python blocks of a guide, also those inside of lists."""
    text = (GUIDES / page).read_text(encoding="utf-8")
    found = re.findall(r"^ *```python\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(block) for block in found]


@pytest.fixture
def scenario(tmp_path):
    """The scenario of examples/own_method.yaml in a folder of its own, with some code beside it."""

    def make(file, code, *changes):
        (tmp_path / file).write_text(code, encoding="utf-8")
        text = (ROOT / "examples" / "own_method.yaml").read_text(encoding="utf-8")
        path = tmp_path / "own.yaml"
        path.write_text(text, encoding="utf-8")
        return load(path, ["rounds=2", *changes])

    return make


def test_the_method_of_the_guide(scenario):
    method = "{name: ./topk.py:TopK, kept: 0.05, lr: 0.1}"
    run = simulate(
        scenario("topk.py", blocks("method.md")[0], f"learning.method={method}"), allow_code=True
    )
    total = run.summary["weights"]["total"]
    sent = round(0.05 * total) * 32 + total  # values, and a bitmap that names them
    assert run.device_rounds.bits_up.max() <= sent
    assert run.rounds.bits_up.iloc[0] < 0.1 * run.rounds.bits_down.iloc[0]


def test_the_allocator_of_the_guide(scenario):
    code, session = blocks("allocator.md")
    changes = ["budget.latency_threshold=40 ms", "allocation.solver=./greedy.py:least_then_rest"]
    method = "learning.method={name: liu, personal_lr: 0.1, global_lr: 0.1}"
    run = simulate(scenario("greedy.py", code, method, *changes), allow_code=True)
    assert (run.rounds.arrived == 10).all()
    exec(code + session, {})


def test_the_path_loss_of_the_guide():
    exec(blocks("channel.md")[0], {})


def test_the_clock_of_the_guide(scenario, monkeypatch):
    """Half of ten devices arrive, the others are late, in every round."""
    names = {}
    exec(blocks("clock.md")[0], names)
    monkeypatch.setattr("edgesim.engine.rounds.deadline", names["first_half"])
    own = scenario(
        "none.py",
        "",
        "learning.method={name: fedavg, lr: 0.1}",
        "devices.0.cpu.frequency={uniform: [1 GHz, 3 GHz]}",
        "clock.mode=deadline",
        "budget.latency_threshold=1 s",
    )
    assert simulate(own).rounds[["arrived", "late"]].to_numpy().tolist() == [[5, 5], [5, 5]]
