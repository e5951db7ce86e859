"""FedRolex: rolling submodels."""

import numpy as np

from tests.fl.conftest import view_of


def test_fedrolex_rolls_with_the_round_and_begins_as_heterofl(bench):
    """Every unit as often over a full turn of 8 rounds."""
    rolex, static = bench.method("fedrolex", width=0.25), bench.method("heterofl", width=0.25)
    assert np.array_equal(
        rolex.kept(None, view_of(bench.task, 0), 0), static.kept(None, view_of(bench.task, 0), 0)
    )
    counts = sum(
        rolex.layout.named(rolex.kept(None, view_of(bench.task, g), 0))["conv1.bias"].astype(int)
        for g in range(8)
    )
    assert counts.tolist() == [2] * 8
