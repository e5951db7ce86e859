"""examples/allocation.py: its claims are true, and it draws its picture."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "allocation.py"


@pytest.fixture(scope="module")
def example():
    return runpy.run_path(str(EXAMPLE))


@pytest.mark.slow
def test_exact_never_and_printed_somewhere_leaves_the_bounds(example):
    exact, printed = example["swept"]("kkt"), example["swept"]("printed")
    for ours, theirs in zip(exact, printed, strict=True):
        out = example["outside"](theirs)
        assert not example["outside"](ours).any() and 0 < out.sum() < len(out)
        for a, b, outside in zip(ours, theirs, out, strict=True):
            apart = max(np.abs(a.share - b.share).max(), np.abs(a.rho - b.rho).max())
            assert (apart > 1e-9) == outside  # inside its bounds the printed form is the solution
    wide, narrow = printed[1][-1], printed[1][0]
    assert (wide.rho < 0).any() and (wide.share > 0).all() and (narrow.share < 0).any()


def test_it_says_what_binds(example):
    assert "the deadline is met" in example["explained"]()


@pytest.mark.slow
def test_it_draws(example, tmp_path):
    from matplotlib.image import imread

    example["draw"](str(tmp_path / "allocation.png"))
    picture = imread(tmp_path / "allocation.png")
    assert picture.shape[:2] == (900, 1350) and picture[..., :3].std() > 0.05
