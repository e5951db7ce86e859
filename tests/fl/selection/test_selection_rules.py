"""Selection rules on cells small enough to choose by hand."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.seeds import Seeds
from fl.contracts import View
from fl.selection.selection_rules import (
    MANY,
    OCCASIONS,
    RULES,
    TRIED,
    best_channel,
    candidates,
    everyone,
    one_of_many,
    round_robin,
    smallest,
    uniform,
)

STREAM = partial(Seeds(0).stream, "select")


@dataclass
class Seen:
    """The part of a View that rules read."""

    idle: np.ndarray
    rate_bps: np.ndarray
    g: int = 0
    handed_out: int = 0

    @property
    def samples(self):
        return np.ones(len(self.rate_bps))


def seen(idle, rate_bps=(0.0,) * 5, g=0):
    return Seen(np.array(idle), np.array(rate_bps), g)


def test_the_best_channels_are_the_largest_rates_and_of_equal_ones_the_first():
    rates = (3.0, 9.0, 5.0, 9.0)
    assert best_channel(seen([0, 1, 2], rates), 2, STREAM()).tolist() == [1, 2]
    assert best_channel(seen([0, 2, 3, 1], rates), 1, STREAM()).tolist() == [3]


def test_everybody_takes_turns():
    turns = [round_robin(seen(range(5), g=g), 2, STREAM()).tolist() for g in range(5)]
    assert turns == [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4]]
    assert round_robin(seen([1, 4], g=2), 1, STREAM()).tolist() == [4]  # 2 and 3 are not there


def test_everyone():
    assert everyone(seen([1, 3]), 1, STREAM()).tolist() == [1, 3]


def test_a_device_more_shifts_no_draw():
    one, two = (uniform(seen(range(n), range(n)), 1, STREAM(round=3)) for n in (4, 5))
    lots = STREAM(round=3).random(5)
    assert one == np.argmin(lots[:4]) and two == np.argmin(lots)


@pytest.mark.parametrize("name", sorted(set(RULES) - {"all"}))
@given(data=st.data())
def test_every_rule_gives_as_many_idle_devices_as_asked_for(name, data):
    devices = data.draw(st.integers(1, 8))
    idle = data.draw(st.lists(st.integers(0, devices - 1), min_size=1, unique=True))
    rates = data.draw(st.lists(st.floats(0, 1e9), min_size=devices, max_size=devices))
    count = data.draw(st.integers(1, len(idle)))
    view = seen(idle, rates, g=data.draw(st.integers(0, 99)))
    chosen = RULES[name][0](view, count, STREAM(round=view.g))
    assert len(set(chosen.tolist())) == len(chosen) == count
    assert set(chosen.tolist()) <= set(idle)


def test_a_single_one_of_many_is_drawn_among_candidates_each_as_likely():
    """Of 1,000 devices every third is idle: 666 occasions, about 2 draws of each idle one."""
    ones, idle = np.ones(MANY), np.arange(0, MANY, 3)
    view = View(5, 0.0, idle, ones, ones, ones, np.inf, ones, ones, wanted=1, in_flight=idle + 1)
    seen = [one_of_many(replace(view, turn=turn), Seeds(0)) for turn in range(1, 2001)]
    found = np.array([one[0] for one in seen if one is not None])
    assert np.isin(found, idle).all()
    missed = 1.0 - len(found) / 2000
    assert missed == pytest.approx((2 / 3) ** TRIED, abs=0.02)
    halves = np.bincount(found // (MANY // 10), minlength=10)
    assert halves / len(found) == pytest.approx([0.1] * 10, abs=0.03)
    turns = range(OCCASIONS - 3, OCCASIONS + 3)  # of two streams
    rows = np.concatenate([candidates(Seeds(0), range(t, t + 1), MANY) for t in turns])
    assert (candidates(Seeds(0), turns, MANY) == rows).all() and len(np.unique(rows)) > 30


@pytest.mark.parametrize(
    "changes", [{"wanted": 2}, {"wanted": None}, {"in_flight": np.zeros(0, int)}, {"samples": 999}]
)
def test_otherwise_everybody_draws(changes):
    count = changes.pop("samples", MANY)
    ones, idle = np.ones(count), np.arange(0, count - 1)
    view = View(5, 0.0, idle, ones, ones, ones, np.inf, ones, ones, turn=4, wanted=1)
    given = {"in_flight": np.array([count - 1])} | changes
    assert one_of_many(replace(view, **given), Seeds(0)) is None


def test_the_lots_are_those_of_a_full_sort():
    rng = np.random.default_rng(3)
    for size, count in ((1, 1), (7, 3), (50, 49), (1000, 10), (5, 0)):
        for lots in (rng.random(size), rng.integers(0, 3, size).astype(float)):
            expected = np.argsort(lots, kind="stable")[:count]
            assert smallest(lots, count).tolist() == expected.tolist()
