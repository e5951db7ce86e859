"""Flows by hand: which time counts as waiting for a band."""

import numpy as np
import pytest

from edgesim.network.flows.flow_table import FlowTable


@pytest.mark.parametrize(("share", "waited_s"), [(0.5, 0.0), (0.0, 5.0)])
def test_who_has_a_band_over_which_nothing_gets_through_does_not_wait_for_one(share, waited_s):
    """Half of 1 MHz at 0 and from 5 s on at 1 bit/s/Hz, or without a band until then."""

    def rates(active, time_s):
        efficiency = np.where(active & (time_s >= 5.0), 1.0, 0.0)
        held = np.where(active, 0.5 if time_s >= 5.0 else share, 0.0)
        return 1e6 * held * efficiency, efficiency, held

    table = FlowTable(1, rates)
    table.begin(0, 1e6, now_s=0.0)
    for time_s in (0.0, 5.0):
        table.settle(time_s)
    assert table.end(0, now_s=6.0) == pytest.approx(5e5)
    assert table.waited_s.tolist() == [waited_s]
