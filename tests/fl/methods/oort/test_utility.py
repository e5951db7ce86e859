"""Arithmetic of Oort: utility, scores, pacer, draws."""

import numpy as np
import pytest

from fl.methods.oort import utility
from tests.fl.methods.oort.noted_utilities import notes_of, selections


def test_the_utility_of_oort():
    assert utility.statistical(180, 0.25) == 90.0
    # losses 1, 2, 3 in a batch of 20; T 10 s, t 40 s; last asked in round 5 of 30
    worth = utility.statistical(20, (1 + 4 + 9) / 3)
    assert worth == pytest.approx(43.2049, abs=5e-5)
    assert worth * utility.slowness(40.0, 10.0) == pytest.approx(2.7003, abs=5e-5)
    recent, long_ago = utility.scores(np.ones(2), np.ones(2), np.array([5, 1e30]), 30, np.inf)
    assert recent - long_ago == pytest.approx(0.260814, abs=5e-7)
    assert utility.slowness([2.0, 1.0, 0.5], 1.0).tolist() == [0.25, 1.0, 1.0]
    durations = np.arange(10.0)[::-1] + 1
    assert [utility.limit(durations, p) for p in (30, 95, 100)] == [4.0, 10.0, np.inf]


@pytest.mark.parametrize("loss", [np.inf, np.nan])
@pytest.mark.parametrize("diverged", [1, 20])
def test_oort_goes_on_choosing_where_losses_are_no_numbers(bench, loss, diverged):
    worth = {k: (utility.statistical(10, loss if k < diverged else 1.0), 1.0) for k in range(20)}
    method = bench.method("oort", participants=4, exploration=0.0, least_exploration=0.0)
    found = selections(bench, method, notes_of(worth), rounds=20)
    assert found.shape == (20, 4) and (np.diff(found) > 0).all()
    assert utility.statistical(10, loss) == 1e16 > utility.statistical(10, 1e29)


def test_scores_of_oort_by_hand():
    """U = 10, 20, 110: low = 9.99, range 100.01, no clip below 110; L = 1, 5, 10 in round 10; the
    last is slow.
    """
    found = utility.scores(
        np.array([10.0, 20.0, 110.0]), np.array([1.0, 1.0, 4.0]), np.array([1, 5, 10]), 10, 2.0
    )
    ages = np.sqrt(0.1 * np.log(10) / np.array([1, 5, 10]))
    assert found == pytest.approx((np.array([0.01, 10.01, 100.01]) / 100.01 + ages) * [1, 1, 0.25])
    many = utility.scores(np.r_[np.arange(19.0), 1e6], np.ones(20), np.ones(20), 1, np.inf)
    assert (
        many[18] == many[19] == pytest.approx(18 / 1e6)
    )  # the outlier counts as the 90th percentile
    assert utility.shortlist(np.array([1.0, 0.5, 0.96, 0.94]), 1, 0.95).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("now", "expected"),
    [(1.0, 35.0), (1.09, 35.0), (0.5, 30.0), (2.0, 30.0), (6.0, 25.0), (5.9, 30.0)],
)
def test_the_pacer_of_oort(now, expected):
    assert utility.paced(30.0, [1.0] * 20 + [now] * 20, 20, 5.0) == expected


def test_draws_in_proportion_to_weights():
    rng = np.random.default_rng(0)
    first = np.bincount(
        [utility.drawn(rng, np.array([1.0, 2.0, 7.0, 0.0]), 2)[0] for _ in range(4000)], minlength=4
    )
    assert first / 4000 == pytest.approx([0.1, 0.2, 0.7, 0.0], abs=0.03)  # 4 deviations
    assert sorted(utility.drawn(rng, np.array([0.0, 0.0, 1.0]), 3)) == [0, 1, 2]
