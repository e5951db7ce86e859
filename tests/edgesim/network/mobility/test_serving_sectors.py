"""Who serves a device that loses a station for a moment."""

import numpy as np
import pytest

from edgesim.network.layout.coupling import SectorLinks
from edgesim.network.mobility.a3_event import A3Rule
from edgesim.network.mobility.serving_sectors import LossRule, ServingSectors


@pytest.mark.parametrize("behind", [0.0, 1e-20, 1e-60])
def test_a_station_that_is_not_heard_for_a_moment_is_found_again(behind):
    """100 ms behind a pillar: over to the other station, and back within half a second."""

    def links_at(time_s):
        gain = np.array([[behind if 1.0 <= time_s < 1.1 else 1e-10, 10.0**-11.8]])
        none = np.zeros((1, 2))
        return SectorLinks(gain, none > 0.0, none, none)

    serving = ServingSectors(links_at, A3Rule(3.0, 1.0, 0.04, 4), refresh_s=0.1)
    away, back = serving.until(5.0)
    assert away.sector == 1 and back.sector == 0
    assert 0.0 < back.time_s - away.time_s < 0.5


@pytest.mark.parametrize("refresh", [3, 5, 6, 12, 106])
def test_a_sample_at_a_refresh_sees_the_gains_from_then_on(refresh):
    """Every 200 ms a sample of 40 ms meets a refresh of 100 ms; 265 x 0.04 < 106 x 0.1 as floats.

    The other station is better from a refresh on: over at the first sample that is not before it.
    """

    def links_at(time_s):
        gain = np.array([[1e-10, 1e-9 if time_s > (refresh - 0.5) * 0.1 else 1e-11]])
        none = np.zeros((1, 2))
        return SectorLinks(gain, none > 0.0, none, none)

    rule = A3Rule(3.0, 1.0, time_to_trigger_s=0.0, filter_coefficient=0.0)
    serving = ServingSectors(links_at, rule, refresh_s=0.1)
    now_s, found = 0.0, []
    while not found and now_s < 20.0:
        now_s = serving.next_change_s(now_s)
        found = serving.until(now_s)
    assert found[0].sector == 1 and found[0].time_s == now_s
    assert now_s == pytest.approx(0.04 * -(-refresh * 100 // 40), abs=1e-12)


def test_a_handover_stops_the_timer_of_the_failing_link():
    """T310 of TS 38.331. Below 3 dB against the others from 1 s on; the neighbour is 4.8 dB better
    from 1.5 s on: over at 1.52 s, where its own signal is below, too: a second from 1.56 s on.
    """

    def links_at(time_s):
        gain = [1e-10, 9e-11, 0.0] if time_s < 1.45 else [1e-10, 3e-10, 2.5e-10]
        gain = np.array([[1e-10, 1e-11, 0.0] if time_s < 0.95 else gain])
        none = np.zeros((1, 3))
        return SectorLinks(gain, none > 0.0, none, none)

    rule = A3Rule(3.0, 1.0, time_to_trigger_s=0.0, filter_coefficient=0.0)
    serving = ServingSectors(links_at, rule, 0.1, LossRule(below_db=3.0, after_s=1.0))
    over, lost = serving.until(3.0)
    assert (over.sector, over.lost) == (1, False) and over.time_s == pytest.approx(1.52)
    assert (lost.sector, lost.lost) == (1, True) and lost.time_s == pytest.approx(2.56)
