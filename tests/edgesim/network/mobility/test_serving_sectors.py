"""Who serves a device that loses a station for a moment."""

import numpy as np
import pytest

from edgesim.network.layout.coupling import SectorLinks
from edgesim.network.mobility.a3_event import A3Rule
from edgesim.network.mobility.serving_sectors import ServingSectors


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
