"""Gauss-Markov motion: stationary moments, memory, and walls that reflect."""

import numpy as np
import pytest

from edgesim.network.mobility.gauss_markov import GaussMarkov
from edgesim.scenario.radio.placement import Placement
from edgesim.seeds import Seeds

DISC = Placement("disc", radius_m=100.0)
WIDE = Placement("disc", radius_m=1e6)


def motion(count, area=DISC, speed=2.0, deviation=0.5, memory=0.75, step_s=1.0):
    devices = np.arange(count)
    return GaussMarkov(Seeds(0), devices, area, speed, deviation, memory, step_s)


def velocity(walk, time_s):
    return (walk.at(time_s + 1e-3) - walk.at(time_s)) / 1e-3


@pytest.mark.parametrize("area", [DISC, Placement("hexagon", radius_m=100.0)])
def test_positions_stay_uniform_and_inside(area):
    """Uniform in the disc: mean distance 2/3 R, at the start as after ten minutes."""
    walk = motion(5000, area, step_s=10.0)
    start = np.hypot(*walk.at(0.0).T).mean()
    for time_s in (0.0, 600.3):
        distance = np.hypot(*walk.at(time_s).T)
        assert distance.mean() == pytest.approx(start, rel=0.025) and distance.max() <= 100 + 1e-6
    if area is DISC:
        assert start == pytest.approx(200 / 3, rel=0.01)


@pytest.mark.slow
def test_velocities_have_the_mean_the_spread_and_the_memory():
    """E|v|^2 = m^2 + 2 s^2; correlation a^n about the mean after n steps, away from walls."""
    walk = motion(6000, WIDE)
    first, later = velocity(walk, 0.2), velocity(walk, 2.2)
    for each in (first, later, velocity(walk, 70.4)):
        assert (each**2).sum(axis=1).mean() == pytest.approx(4.0 + 2 * 0.25, rel=0.03)
    apart = ((first - later) ** 2).mean()
    assert apart == pytest.approx(2 * 0.25 * (1 - 0.75**2), rel=0.05)


def test_a_ball_without_noise_bounces_off_the_wall():
    """From the middle outwards at 1 m/s in a disc of 100 m: 40 m on the way back after 160 s."""
    walk = motion(1, speed=1.0, deviation=1e-12)
    walk._flight = (np.zeros((1, 2)), np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]]))
    assert walk.at(99.5)[0] == pytest.approx([99.5, 0.0], abs=1e-6)
    assert walk.at(160.0)[0] == pytest.approx([40.0, 0.0], abs=1e-6)
    assert velocity(walk, 160.0)[0] == pytest.approx([-1.0, 0.0], abs=1e-6)


def test_positions_are_a_pure_function_of_seed_device_and_time():
    some, more = motion(3), motion(4)
    late = some.at(200.7)
    early = some.at(3.2)
    assert more.at(3.2)[:3].tolist() == early.tolist()
    assert motion(3).at(200.7).tolist() == late.tolist()
    assert some.at(3.2).tolist() == early.tolist()
