"""examples/alternating_steps.py, shortened: it plays a round of every method."""

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "alternating_steps.py"


@pytest.mark.slow
def test_the_example_prints_a_line_for_each_method(capsys, monkeypatch):
    monkeypatch.chdir(SCRIPT.parents[1])
    example = runpy.run_path(str(SCRIPT))
    play = example["play"]
    play.__globals__.update(ROUNDS=1, SHOWN=(1,))
    for method, normalised in (("FedAlt", False), ("FedSim", False), ("FedAvg", True)):
        play(method, 0.1, normalised)
    alone, together, averaged = capsys.readouterr().out.splitlines()
    assert alone.split()[:3] == ["FedAlt", "0.1", "1"] and len(alone.split()) == 7
    assert together.startswith("FedSim ") and averaged.startswith("FedAvg, normalised ")
    # a head whose input is normalised has features of norm 8 before the first layer
    assert float(averaged.split()[-1]) > float(together.split()[-1])
