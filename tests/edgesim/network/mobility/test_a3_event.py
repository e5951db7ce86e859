"""Event A3: the device between two sites with its times, filter, timer, and who never goes."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.network.mobility.a3_event import A3Event, A3Rule
from edgesim.network.mobility.serving_sectors import Handover, LossRule, ServingSectors

SAMPLED = A3Rule(offset_db=3.0, hysteresis_db=1.0, time_to_trigger_s=0.16, filter_coefficient=0)


def between_two_sites(time_s, speed=20.0):
    """Gains [1, 2] of a device that goes from site 1 at 0 to site 2 at 500 m, exponent 3.5."""
    x = np.array([speed * time_s, 500.0 - speed * time_s])
    return np.maximum(np.abs(x), 1.0)[None, :] ** -3.5


def serving(gains_at, *rules):
    """Links that are nothing but their gains."""
    return ServingSectors(lambda time_s: SimpleNamespace(coupling=gains_at(time_s)), *rules)


def test_a_device_between_two_sites_goes_where_the_formula_says():
    """Met at x = 500 / (1 + 10^(-4 / 35)) = 282.705554 m, 14.135278 s; executed at 14.32 s.

    Samples are taken every 40 ms: 14.16 s is the first one, and 160 ms later it has held.
    """
    met_m = 500.0 / (1.0 + 10.0 ** (-4.0 / 35.0))
    assert met_m == pytest.approx(282.705554, abs=1e-6)
    assert met_m / 20.0 == pytest.approx(14.135278, abs=1e-6)
    sectors = serving(between_two_sites, SAMPLED, 0.04)
    assert sectors.until(14.30) == []
    assert sectors.next_change_s(14.30) == pytest.approx(14.32)
    assert sectors.until(24.0) == [Handover(pytest.approx(14.32), 0, 1)]
    assert sectors.until(14.0) == []  # an earlier instant starts over
    assert len(sectors.until(24.0)) == 1
    at_once = A3Rule(3.0, 1.0, 0.0, 0)
    assert serving(between_two_sites, at_once, 0.04).until(24.0) == [
        Handover(pytest.approx(14.16), 0, 1)
    ]


def test_the_filter_keeps_its_time_constant_at_other_steps():
    """q = 4: half of a step after 200 ms, whatever the samples; q = 0 passes everything."""
    assert A3Rule(filter_coefficient=4, sample_s=0.2).weight == pytest.approx(0.5)
    assert (1.0 - A3Rule(filter_coefficient=4, sample_s=0.04).weight) ** 5 == pytest.approx(0.5)
    assert A3Rule(filter_coefficient=0).weight == 1.0
    slow = A3Rule(3.0, 1.0, 0.0, 4, 0.2)
    event = A3Event(slow, np.array([0]))
    event.sample(np.array([[0.0, -20.0]]))
    # the neighbour jumps to +10 dB: filtered -5, 2.5, 6.25
    found = [event.sample(np.array([[0.0, 10.0]]))[0].tolist() for _ in range(3)]
    assert found == [[], [], [0]]


def test_the_timer_starts_again_where_the_condition_fails_once():
    """Also inside the hysteresis: all samples during the time to trigger must meet it."""
    event = A3Event(A3Rule(3.0, 1.0, 0.08, 0), np.array([0]))
    levels = [4.5, 4.5, 3.5, 4.5, 4.5, 4.5]  # dB above the serving sector; needed are 4
    found = [event.sample(np.array([[0.0, each]]))[0].tolist() for each in levels]
    assert found == [[], [], [], [], [], [0]]
    assert A3Rule(time_to_trigger_s=0.1).samples == 4  # 100 ms need three steps of 40 ms


def test_of_several_the_strongest_is_taken():
    event = A3Event(A3Rule(3.0, 1.0, 0.0, 0), np.array([1, 1]))
    devices, sectors = event.sample(np.array([[5.0, 0.0, 9.0], [0.0, 0.0, 0.0]]))
    assert devices.tolist() == [0] and sectors.tolist() == [2]
    assert event.serving.tolist() == [2, 1]


@given(
    st.integers(0, 2**32 - 1),
    st.floats(0.0, 15.0),
    st.floats(0.0, 15.0),
    st.sampled_from([0, 4, 11]),
)
@settings(max_examples=25)
def test_a_static_device_never_hands_over(seed, offset_db, hysteresis_db, q):
    """Whatever its gains: it begins at the strongest sector."""
    gain = 10.0 ** np.random.default_rng(seed).uniform(-15, -5, (20, 7))
    rule = A3Rule(offset_db, hysteresis_db, 0.0, q)
    sectors = serving(lambda time_s: gain, rule, 0.1)
    assert sectors.until(4.0) == []
    assert sectors.at_start.tolist() == gain.argmax(axis=1).tolist()


def test_gains_are_held_between_refreshes_and_asked_in_any_order():
    sectors = serving(between_two_sites, A3Rule(never=True), 0.5)
    assert sectors.gain(0.7).tolist() == between_two_sites(0.5).tolist()
    assert sectors.gain(3.0).tolist() == between_two_sites(3.0).tolist()
    assert sectors.gain(0.1).tolist() == between_two_sites(0.0).tolist()
    assert sectors.next_change_s(0.7) == pytest.approx(1.0) and sectors.until(50.0) == []


def test_places_of_later_than_now_are_not_asked_for():
    """A trace may end before the next refresh, at which a sample is due too."""
    asked = []

    def gains_at(time_s):
        asked.append(time_s)
        return between_two_sites(time_s)

    sectors = serving(gains_at, A3Rule(), 2.0)
    assert sectors.next_change_s(1.0) == 2.0 and set(asked) == {0.0}
    assert sectors.until(2.0) == [] and set(asked) == {0.0, 2.0}


def test_a_link_that_stays_below_its_least_ratio_fails_and_the_strongest_serves():
    """10 dB below the neighbour from 1 s on, and nobody is handed over: lost after one second."""

    def falling(time_s):
        return np.array([[1.0, 0.5]]) if time_s < 1.0 else np.array([[0.1, 1.0]])

    never = A3Rule(time_to_trigger_s=5.12)
    sectors = serving(falling, never, 0.04, LossRule(-8.0, 1.0))
    assert sectors.until(10.0) == [Handover(pytest.approx(2.0), 0, 1, lost=True)]
    # without noise the ratio is 1 : 10, so that -11 dB are never reached
    assert serving(falling, never, 0.04, LossRule(-11.0, 1.0)).until(4.0) == []
    handed = serving(falling, A3Rule(), 0.04, LossRule(-8.0, 1.0)).until(10.0)
    assert [(each.sector, each.lost) for each in handed] == [(1, False)]
