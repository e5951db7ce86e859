"""examples/exact_importance.py, shortened: one device ranks in round 0."""

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "exact_importance.py"


@pytest.mark.slow
def test_the_example_prints_a_line_for_each_ranking(capsys, monkeypatch):
    monkeypatch.chdir(SCRIPT.parents[1])
    main = runpy.run_path(str(SCRIPT))["main"]
    main.__globals__.update(RATIOS=(0.8,), SEEDS=(0,), SHOWN=(0,), RANKED=(0,))
    main()
    _, *lines = capsys.readouterr().out.splitlines()
    shares = {line.split("0.8")[0].strip(): float(line.split()[-1][:-1]) for line in lines}
    assert list(shares) == ["(20)", "change in the warm-up times weight", "size of the weight"]
    # with the size of the weight the gradient is the linear estimate of (19)
    assert 90 < shares["change in the warm-up times weight"] < 100
    assert 70 < shares["(20)"] < 90 and shares["size of the weight"] < 50
