"""What a download takes of whom nobody else waits for: as if each were asked by itself."""

import numpy as np
import pytest
import simpy

from edgesim.network.channel import Channel
from edgesim.network.downlink.broadcast import BroadcastDownlink
from edgesim.network.fading.processes import BlockFading
from edgesim.network.planned_gains import PlannedGains
from edgesim.seeds import Seeds

GAINS = np.array([1e-10, 3e-12, 1e-13, 0.0])


@pytest.mark.parametrize("rate", ["now", "quantile", "mean"])
def test_all_at_once_is_one_by_one(rate):
    channel = Channel(2e8, GAINS, 1e-14, None, BlockFading(Seeds(0), len(GAINS), 0.01))
    downlink = BroadcastDownlink(simpy.Environment(), channel, tx_power_w=1.0)
    gains, bits = PlannedGains(channel, rate), np.array([4e7, 4e7, 0.0, 4e7])
    with np.errstate(divide="ignore"):
        each = [downlink.seconds(bits[[k]], np.array([k]), gains) for k in range(len(GAINS))]
        alone_s = downlink.alone_s(bits, np.arange(len(GAINS)), gains)
    assert alone_s == pytest.approx(np.concatenate(each), rel=1e-4)
    assert np.isinf(alone_s[3])
