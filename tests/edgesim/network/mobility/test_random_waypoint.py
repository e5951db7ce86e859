"""Random waypoints: stationary from the start, pure in time, and their known constants."""

import math

import numpy as np
import pytest

from edgesim.network.mobility.random_waypoint import (
    RandomWaypoint,
    mean_inverse_speed,
    mean_leg_m,
)
from edgesim.scenario.radio.mobility_schema import MobilitySection
from edgesim.scenario.radio.placement import Placement
from edgesim.seeds import Seeds

DISC = Placement("disc", radius_m=500.0)
SPEEDS = (1.0, 20.0)
MEAN_SPEED = 19.0 / math.log(20.0)  # 6.342356 m/s, and not 10.5


def walkers(count, area=DISC, speed=SPEEDS, pause=(0.0, 0.0), seed=0):
    return RandomWaypoint(Seeds(seed), np.arange(count), area, speed, pause)


def speeds(walk, time_s):
    before = walk.at(time_s)
    return np.hypot(*(walk.at(time_s + 1e-3) - before).T) / 1e-3


def test_the_mean_leg_of_a_disc_a_ring_and_a_hexagon():
    """Disc 128 / (45 pi) R; the ring between 0.5 and 1: 4e6 pairs gave 1.0126; hexagon 0.82624."""
    assert mean_leg_m(DISC) == pytest.approx(128 / (45 * math.pi) * 500.0, rel=1e-6)
    assert mean_leg_m(Placement("ring", 0.5, 1.0)) == pytest.approx(1.0125, abs=5e-4)
    assert mean_leg_m(Placement("hexagon", radius_m=2.0)) == pytest.approx(1.6525, abs=1e-3)
    assert 1.0 / mean_inverse_speed(*SPEEDS) == pytest.approx(6.342356, abs=1e-6)
    assert mean_inverse_speed(2.0, 2.0) == 0.5


def test_paths_cross_the_hole_of_a_ring_from_the_start_and_the_key_says_so():
    """As of 2,000 random pairs of points, with a time in proportion to their distance."""
    walk = walkers(2000, Placement("ring", 250.0, 500.0))
    inside = [(np.hypot(*walk.at(t).T) < 250.0).mean() for t in (0.0, 300.0)]
    rng = np.random.default_rng(0)
    radius = np.sqrt(rng.uniform(0.25, 1.0, (2, 2000)))
    angle = rng.uniform(0.0, 2.0 * math.pi, (2, 2000))
    begin, end = radius * np.exp(1j * angle)
    on_the_way = begin + np.linspace(0.0, 1.0, 201)[:, None] * (end - begin)
    expected = np.average((abs(on_the_way) < 0.5).mean(axis=0), weights=abs(end - begin))
    assert inside == pytest.approx([expected, expected], abs=0.035) and expected > 0.1
    assert "cross its hole" in MobilitySection.model_fields["waypoint"].description


@pytest.mark.slow
def test_speed_and_distance_are_the_same_in_the_first_and_the_last_tenth_of_a_run():
    """Mean speed 6.34 m/s and mean distance 0.516 R; uniform starts would have 10.5 and 0.667."""
    walk = walkers(12_000, Placement("disc", radius_m=100.0))
    for tenth_s in ((0.0, 10.0, 20.0), (180.0, 190.0, 200.0)):
        distance = [np.hypot(*walk.at(time_s).T) / 100.0 for time_s in tenth_s]
        moving = [speeds(walk, time_s).mean() for time_s in tenth_s]
        assert np.mean(moving) == pytest.approx(MEAN_SPEED, rel=0.01)
        assert np.mean(distance) == pytest.approx(0.516203, rel=0.01)
        assert np.max(distance) <= 1.0 + 1e-12


def test_in_the_middle_the_stationary_density_is_2_2_times_the_uniform_one():
    """(45/64 pi)(1 - r^2) int sqrt(1 - r^2 cos^2 a) da = 45/64 (1 - 1.25 r^2 + 0.203 r^4 - ...).

    Within 0.2 R it holds 4.41786 (0.02 - 0.0005 + 0.000002) = 8.616 %, a uniform one 4 %.
    """
    distance = np.hypot(*walkers(8000).at(0.0).T) / 500.0
    assert (distance < 0.2).mean() == pytest.approx(0.08616, abs=3 * (0.0862 / 8000) ** 0.5)
    assert distance.mean() == pytest.approx(0.516203, abs=0.008)


def test_as_many_pause_as_the_stationary_state_has():
    """E[P] 60 s, legs of 452.7 m at 1 / E[1 / V]: 45.7 % stand at every time."""
    walk = walkers(4000, pause=(0.0, 120.0))
    share = 60.0 / (60.0 + mean_leg_m(DISC) / MEAN_SPEED)
    assert walk.paused_share == pytest.approx(share, rel=1e-12) == pytest.approx(0.4567, abs=1e-4)
    for time_s in (0.0, 60.0, 1500.0):
        assert (speeds(walk, time_s) < 1e-6).mean() == pytest.approx(share, abs=0.025)


def test_between_points_of_a_circle_devices_are_on_their_way_from_the_start():
    """Legs of 4 / pi R take 63.7 s at 10 m/s: 56.0 % move where pauses last 50 s.

    A ring of equal radii had no mean leg, 0 / 0, and all devices paused at the start.
    """
    circle = Placement("ring", 500.0, 500.0)
    assert mean_leg_m(circle) == pytest.approx(4.0 / math.pi * 500.0, rel=1e-12)
    walk = walkers(4000, circle, speed=(10.0, 10.0), pause=(50.0, 50.0))
    assert walk.paused_share == pytest.approx(0.4399, abs=1e-4)
    for time_s in (0.0, 1500.0):
        assert (speeds(walk, time_s) < 1e-6).mean() == pytest.approx(0.44, abs=0.025)


@pytest.mark.parametrize("width", [1e-6, 1e-3, 0.1])
def test_a_narrow_ring_has_the_mean_leg_of_a_circle(width):
    """Of two radii that are nearly the same, 4 s t / (s + t)^2 rounds above 1."""
    leg_m = mean_leg_m(Placement("ring", 500.0 - width, 500.0))
    assert leg_m == pytest.approx(4.0 / math.pi * (500.0 - width / 2.0), rel=1e-6)


def test_positions_are_a_pure_function_of_seed_device_and_time():
    """Asked in any order, beside others, and again from the start."""
    some, more = walkers(3, pause=(1.0, 1.0)), walkers(5, pause=(1.0, 1.0))
    late = some.at(700.0)
    early = some.at(30.0)
    assert more.at(30.0)[:3].tolist() == early.tolist()
    assert walkers(3, pause=(1.0, 1.0)).at(700.0).tolist() == late.tolist()
    alone = RandomWaypoint(Seeds(0), np.array([2]), DISC, SPEEDS, (1.0, 1.0))
    assert alone.at(700.0)[0].tolist() == late[2].tolist()


def test_nobody_jumps_and_nobody_is_faster_than_the_fastest():
    walk, step_s = walkers(200, Placement("hexagon", radius_m=100.0), (0.5, 1.5)), 0.5
    track = np.array([walk.at(step_s * n) for n in range(600)])
    moved = np.hypot(*np.moveaxis(np.diff(track, axis=0), 2, 0)) / step_s
    assert moved.max() <= 1.5 + 1e-9 and moved.min() > 0.0


def test_a_slowest_speed_of_0_is_refused():
    with pytest.raises(ValueError, match="it must be more than 0"):
        walkers(1, speed=(0.0, 1.0))
