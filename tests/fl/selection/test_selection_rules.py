"""Selection rules on cells small enough to choose by hand."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.seeds import Seeds
from fl.selection.selection_rules import RULES, best_channel, everyone, round_robin, uniform

STREAM = partial(Seeds(0).stream, "select")


@dataclass
class Seen:
    """The part of a View that rules read."""

    idle: np.ndarray
    rate_bps: np.ndarray
    g: int = 0

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
