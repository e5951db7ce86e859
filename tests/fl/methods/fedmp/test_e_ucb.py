"""The bandit of FedMP: its bound by hand, and what it learns."""

from math import log, sqrt

import numpy as np
import pytest

from fl.methods.fedmp.e_ucb import EUcb

BANDIT = EUcb(low=0.2, high=1.0, discount=0.95, least_width=0.05, exploration=1.0)


def test_a_play_is_rewarded_and_divides_its_leaf_at_the_ratio():
    record = BANDIT.learn(BANDIT.begin(), 0.6, 3.0)
    assert np.allclose(record, [[0.2, 0.6, 0.5, 1.5], [0.6, 1.0, 0.5, 1.5]])
    again = BANDIT.learn(record, 0.97, 1.0)  # too near the end to divide
    assert again[0] == pytest.approx([0.2, 0.6, 0.475, 1.425])
    assert again[1] == pytest.approx([0.6, 1.0, 1.475, 2.425])


def test_the_leaf_of_the_largest_bound_is_played():
    record = [[0.2, 0.6, 4.0, 4.0], [0.6, 1.0, 1.0, 0.5]]
    bounds = [1.0 + sqrt(2 * log(5) / 4), 0.5 + sqrt(2 * log(5) / 1)]
    assert bounds[1] > bounds[0]
    assert 0.6 <= BANDIT.draw(record, np.random.default_rng(0)) < 1.0
    greedy = EUcb(0.2, 1.0, 0.95, 0.05, exploration=0.0)
    assert 0.2 <= greedy.draw(record, np.random.default_rng(0)) < 0.6


def test_leaves_cover_the_interval_and_none_is_too_narrow():
    rng, record = np.random.default_rng(1), BANDIT.begin()
    for _ in range(300):
        record = BANDIT.learn(record, BANDIT.draw(record, rng), rng.normal())
    edges = [low for low, *_ in record] + [record[-1][1]]
    assert edges[0] == 0.2 and edges[-1] == 1.0 and np.all(np.diff(edges) >= 0.05)
    assert [high for _, high, *_ in record[:-1]] == edges[1:-1]


def test_the_method_has_this_bandit(bench):
    assert bench.method("fedmp").bandit == BANDIT


@pytest.mark.parametrize(
    "exploration, discount, least_width, expected",
    [(1.0, 0.95, 0.05, 0.67), (1.0, 0.99, 0.1, 0.83), (0.1, 0.95, 0.05, 0.94)],
)
def test_how_much_it_prefers_the_half_that_pays(exploration, discount, least_width, expected):
    """Reward 1 on [0.2, 0.6], else 0: the share of 200 ratios that are there, over ten seeds.

    The paper's bound with a memory of 20 plays: a dozen leaves share them, and sqrt(2 log 20 /
    (20 / 12)) = 1.9 is twice what can be earned. A longer memory shared by fewer leaves, or a tenth
    of the bound, brings more than 80 %.
    """
    bandit, shares = EUcb(0.2, 1.0, discount, least_width, exploration), []
    for seed in range(10):
        rng, record, ratios = np.random.default_rng(seed), bandit.begin(), []
        for _ in range(200):
            ratios.append(bandit.draw(record, rng))
            record = bandit.learn(record, ratios[-1], float(ratios[-1] <= 0.6))
        shares.append(np.mean(np.array(ratios) <= 0.6))
    assert np.mean(shares) == pytest.approx(expected, abs=0.01)
