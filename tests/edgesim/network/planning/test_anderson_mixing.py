"""Turns that swing, by hand, and the plans of a scenario that did."""

from pathlib import Path

import numpy as np
import pytest

from edgesim import load, simulate
from edgesim.network.planning.anderson_mixing import AndersonMixing

SCENARIOS = Path(__file__).parents[4] / "scenarios"
NOTHING = ["learning.dataset=none", "~learning.partition", "~evaluate"]
# Of logarithms: each turn goes by a quarter of a circle round the fixed point, 1.7 times as far.
TURNED = np.array([[-0.2, -1.7], [1.7, -0.2]])


def test_two_values_that_swing_ever_further_settle():
    """Linear in two logarithms, so that two differences know it: settled with the fourth turn."""
    fixed, mixed = np.array([1e-10, 3e-12]), AndersonMixing()
    asked = fixed * [1.1, 0.95]
    for _ in range(4):
        asked = mixed(asked, fixed * np.exp(TURNED @ np.log(asked / fixed)))
    assert asked == pytest.approx(fixed, rel=1e-6)


def test_the_first_turn_is_the_geometric_mean_and_none_goes_further_than_fourfold():
    mixed = AndersonMixing()
    assert mixed(np.array([1.0, 4.0]), np.array([9.0, 4.0])) == pytest.approx([3.0, 4.0])
    assert AndersonMixing()(np.array([1.0]), np.array([1e6])) == pytest.approx([4.0])


def test_what_carries_nothing_stays_out_of_it():
    assert AndersonMixing()(np.array([0.0, 1.0]), np.array([2.0, 0.0])).tolist() == [2.0, 0.0]


@pytest.mark.slow
def test_plans_of_three_sectors_that_swing_settle():
    """The shares of round 4 went round three sectors for ever, and its gains were 33 % off."""
    changes = [*NOTHING, "rounds=5"]
    scenario = load(SCENARIOS / "handovers.yaml", changes, label="always the first sector")
    assert simulate(scenario).summary["warnings"] == []
