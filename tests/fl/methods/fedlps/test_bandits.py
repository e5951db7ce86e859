"""P-UCBV: numbers by hand, partitions as properties, and its record."""

import json
from math import isfinite, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fl.methods.fedlps.bandits import Arms, Partition, PUcbv, utility

TWO = PUcbv(partitions=2, drop=-0.05)


def rng(seed=0):
    return np.random.Generator(np.random.Philox(key=seed))


def bounds(arms):
    return [(part.lo, part.hi) for part in arms.parts]


def value(part, scale, partitions):
    return PUcbv().value(part, scale, partitions)


PLAYS = st.lists(
    st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(1e-9, 1e9)), max_size=25
)


BANDITS = st.builds(
    PUcbv,
    partitions=st.integers(1, 8),
    low=st.sampled_from([0.0, 0.5]),
    drop=st.sampled_from([-0.05, -0.5, 0.0]),
    xi=st.floats(0.1, 100),
    explore=st.sampled_from(["none", "1/m"]),
    floor=st.sampled_from([None, 1.0, 2.718]),
)


def test_utility():  # U of FedLPS, eq. (15): 10 - 20 / (1 + exp(0.35 x))
    assert utility(0) == 0
    assert [utility(x) for x in (0.2, 0.5, 1)] == pytest.approx(
        [0.349857, 0.872774, 1.732352], abs=1e-6
    )
    assert [utility(x) for x in (0.25, 0.75, 0.9)] == pytest.approx(
        [0.43722, 1.30502, 1.56210], abs=1e-5
    )
    assert utility(-0.5) == -utility(0.5)
    assert utility(20) == pytest.approx(9.98178, abs=1e-5)
    assert utility(1e6) == 10


def test_upper_confidence_bound():
    part = Partition(0.0, 1.0, pulls=1, mean=0.2, spread=0.01)
    assert PUcbv().argument(0.5, 6) == pytest.approx(1.388889, abs=1e-6)
    assert log(PUcbv().argument(0.5, 6)) == pytest.approx(0.328504, abs=1e-6)
    assert value(part, 0.5, 6) == pytest.approx(0.403146, abs=1e-6)
    assert PUcbv().argument(0.25, 7) == pytest.approx(0.510204, abs=1e-6)
    assert value(part, 0.25, 7) == 0.2  # the logarithm is negative: no bonus
    assert value(Partition(0.0, 1.0), 1.0, 5) == pytest.approx(0.588705, abs=1e-6)


def test_variance_is_that_of_the_population():
    part = Partition(0.0, 1.0).rewarded(0.3).rewarded(0.1)
    assert (part.pulls, part.mean) == (2, pytest.approx(0.2))
    assert part.variance == pytest.approx(0.01)
    assert value(part, 0.5, 6) == pytest.approx(0.365868, abs=1e-6)


def test_two_participations_by_hand():
    arms, _ = TWO.begin(0.2, rng())
    assert bounds(arms) == [(0, 0.5), (0.5, 1)]
    arms, _ = TWO.update(arms, 0.7, 0.5, 2.0, rng())
    assert bounds(arms) == [(0, 0.5), (0.5, 0.7), (0.7, 1)]
    assert [part.mean for part in arms.parts] == pytest.approx([0, 0.261458, 0.261458], abs=1e-6)
    assert TWO.argument(arms.scale, 3) == pytest.approx(5.555556, abs=1e-6)
    assert TWO.values(arms) == pytest.approx([0.654752, 0.724438, 0.724438], abs=1e-6)
    arms, ratio = TWO.update(arms, 0.6, 0.4, 2.0, rng())
    assert TWO.reward(0.4, 0.5, 2.0) == pytest.approx(-0.086957, abs=1e-6)
    assert bounds(arms) == [
        (0, 0.5),
        (0.6, 0.7),
        (0.7, 1),
    ]  # the accuracy fell: the lower half is gone
    assert TWO.argument(arms.scale, 3) == pytest.approx(2.777778, abs=1e-6)
    middle = arms.parts[1]
    assert (middle.pulls, middle.mean, middle.variance) == (
        2,
        *(pytest.approx(x, abs=1e-6) for x in (0.08725, 0.030348)),
    )
    assert TWO.values(arms) == pytest.approx([0.505384, 0.381239, 0.618819], abs=1e-6)
    assert 0.7 <= ratio < 1


def test_without_elimination():  # four partitions instead of three
    keep_all = PUcbv(partitions=2, drop=-1.0)
    arms, _ = keep_all.begin(0.2, rng())
    arms, _ = keep_all.update(arms, 0.7, 0.5, 2.0, rng())
    arms, _ = keep_all.update(arms, 0.6, 0.4, 2.0, rng())
    assert bounds(arms) == [(0, 0.5), (0.5, 0.6), (0.6, 0.7), (0.7, 1)]
    assert keep_all.argument(arms.scale, 4) == 1.5625


def test_equal_values_are_chosen_at_random():
    arms, _ = TWO.begin(0.2, rng())
    next_ratios = [TWO.update(arms, 0.7, 0.5, 2.0, rng(seed))[1] for seed in range(40)]
    assert all(ratio >= 0.5 for ratio in next_ratios)
    assert {ratio >= 0.7 for ratio in next_ratios} == {True, False}


@pytest.mark.parametrize(
    ("partitions", "printed"),
    [
        (1, [100, 12.5, 2.778, 0.781, 0.25]),
        (2, [25, 5.556, 1.562, 0.5, 0.174]),
        (3, [11.1111, 3.125, 1.0, 0.3472, 0.1276]),
        (5, [4, 1.3889, 0.5102, 0.1953, 0.077]),
        (6, [2.7778, 1.0204, 0.3906, 0.1543, 0.0625]),
        (8, [1.5625, 0.6173, 0.25, 0.1033, 0.0434]),
    ],
)
def test_the_argument_of_the_logarithm(partitions, printed):
    """FedLPS, eq. (17): xi psi epsilon = 100 / (2^n (I_0 + n)^2) after n splits."""
    bandit = PUcbv(partitions=partitions)
    arms, _ = bandit.begin(0.1, rng())
    arguments = [bandit.argument(arms.scale, partitions)]
    for _ in range(
        4
    ):  # the accuracy never falls, and in the middle of the widest part every ratio splits
        widest = max(arms.parts, key=lambda part: part.width)
        arms, _ = bandit.update(arms, (widest.lo + widest.hi) / 2, arms.accuracy + 0.1, 1.0, rng())
        arguments.append(bandit.argument(arms.scale, len(arms.parts)))
    assert arguments == pytest.approx(printed, abs=5e-4)
    assert arms.scale == 1 / 16


def test_a_floor_stops_the_halving():
    bandit = PUcbv(
        partitions=1, floor=2.0, least_width=1.0
    )  # one partition for ever: the argument is 100 epsilon
    arms, ratio = bandit.begin(0.1, rng())
    scales = []
    for _ in range(8):
        arms, ratio = bandit.update(arms, ratio, 0.1, 1.0, rng())
        scales.append(arms.scale)
    assert scales == [
        0.5,
        0.25,
        0.125,
        0.0625,
        0.03125,
        0.03125,
        0.03125,
        0.03125,
    ]  # 3.125 >= 2 > 1.5625


def test_no_part_is_narrower_than_the_least_width():
    bandit = PUcbv(partitions=1, least_width=0.1)
    arms, _ = bandit.begin(0.1, rng())
    for ratio, parts in ((0.05, 1), (0.95, 1), (1.0, 1), (0.1, 2), (0.15, 2), (0.5, 3)):
        arms, _ = bandit.update(arms, ratio, 0.1, 1.0, rng())
        assert len(arms.parts) == parts
    assert bounds(arms) == [(0, 0.1), (0.1, 0.5), (0.5, 1)]


def test_a_ratio_outside_rewards_the_nearest_partition():
    bandit = PUcbv(partitions=2, low=0.5, high=1.0)
    arms, _ = bandit.begin(0.0, rng())
    arms, _ = bandit.update(arms, 0.125, 0.5, 1.0, rng())  # a device that could give an eighth only
    assert [part.pulls for part in arms.parts] == [1, 0]
    arms, _ = bandit.update(arms, 1.0, 0.5, 1.0, rng())
    assert [part.pulls for part in arms.parts] == [1, 1]
    assert bounds(arms) == [(0.5, 0.75), (0.75, 1)]


def test_the_unsplit_partition_is_never_dropped():
    bandit = PUcbv(partitions=1)
    arms, _ = bandit.begin(1.0, rng())
    arms, _ = bandit.update(arms, 1.0, 0.0, 1.0, rng())
    assert bounds(arms) == [(0, 1)]


def test_exploration_starts_certain_and_fades():  # with probability 1/m
    bandit = PUcbv(partitions=2, explore="1/m", least_width=1.0)
    start, _ = bandit.begin(0.0, rng())
    first, _ = bandit.update(start, 0.75, 1.0, 1.0, rng())
    later = Arms(first.parts, first.accuracy, 1e-9, 50)
    lower = [
        sum(bandit.choose(arms, rng(seed)) == 0 for seed in range(400)) for arms in (first, later)
    ]
    assert 150 < lower[0] < 250  # always at random
    assert 0 < lower[1] < 16  # in half of one case in fifty
    assert sum(PUcbv(partitions=2).choose(later, rng(seed)) == 0 for seed in range(50)) == 0


@pytest.mark.slow
@settings(max_examples=80)
@given(BANDITS, PLAYS, st.sampled_from([1.0, 0.25, 1 / 16]), st.integers(0, 9))
def test_partitions(bandit, plays, capability, seed):
    draws = rng(seed)
    arms, ratio = bandit.begin(0.3, draws)
    for accuracy, _, time in plays:
        before = sum(part.width for part in arms.parts)
        lengths = len(arms.parts)
        assert bandit.low <= ratio <= 1
        arms, ratio = bandit.update(arms, min(ratio, capability), accuracy, time, draws)
        assert len(arms.parts) >= 1
        assert all(part.hi > part.lo for part in arms.parts)
        assert all(a.hi <= b.lo for a, b in zip(arms.parts, arms.parts[1:], strict=False))
        lost = before - sum(part.width for part in arms.parts)
        assert (
            lost == pytest.approx(0, abs=1e-12) or len(arms.parts) == lengths
        )  # one half of a split was dropped
        assert lost > -1e-12
        assert all(map(isfinite, bandit.values(arms)))
    assert arms.updates == len(plays)


@settings(max_examples=30)
@given(BANDITS, PLAYS, st.integers(0, 9))
def test_the_record_goes_through_json(bandit, plays, seed):
    arms, ratio = bandit.begin(0.3, rng(seed))
    for accuracy, _, time in plays:
        arms, ratio = bandit.update(arms, ratio, accuracy, time, rng(seed))
    assert Arms.from_record(json.loads(json.dumps(arms.to_record()))) == arms


def test_the_same_numbers_from_the_same_generator():
    def play(seed):
        draws = rng(seed)
        arms, ratio = PUcbv().begin(0.1, draws)
        ratios = [ratio]
        for accuracy in (0.4, 0.6, 0.5, 0.8, 0.85):
            arms, ratio = PUcbv().update(arms, ratio, accuracy, 1.0, draws)
            ratios.append(ratio)
        return ratios

    assert play(1) == play(1)
    assert play(1) != play(2)


def test_a_larger_gain_in_less_time_wins():
    """Ratios above a half pay twice: after some participations they are drawn."""
    bandit = PUcbv(partitions=2)
    draws = rng(3)
    arms, ratio = bandit.begin(0.0, draws)
    drawn = []
    for _ in range(60):
        arms = Arms(
            arms.parts, 0.0, arms.scale, arms.updates
        )  # each participation starts from accuracy 0
        arms, ratio = bandit.update(arms, ratio, 0.8 if ratio > 0.5 else 0.4, 1.0, draws)
        drawn.append(ratio)
    assert np.mean(np.array(drawn[20:]) > 0.5) > 0.9


@pytest.mark.parametrize(
    ("accuracy", "time"), [(float("nan"), 1.0), (0.5, 0.0), (0.5, float("inf"))]
)
def test_what_is_no_number_is_refused(accuracy, time):
    arms, _ = PUcbv().begin(0.1, rng())
    with pytest.raises(ValueError, match="both must be finite, time positive"):
        PUcbv().update(arms, 0.5, accuracy, time, rng())


@pytest.mark.parametrize(
    "wrong", [{"partitions": 0}, {"low": 0.5, "high": 0.5}, {"explore": "sometimes"}]
)
def test_settings_that_make_no_bandit(wrong):
    with pytest.raises(ValueError, match="is no bandit"):
        PUcbv(**wrong)
