"""The band of a downlink where it is not that of the uplink: its own part of selective fading.

Both bands have the same middle, so that they fade alike where they overlap. Flat fading knows no
frequency, and is the same in every band.
"""

from __future__ import annotations

from edgesim.network.channel import Channel
from edgesim.network.fading.selective import SelectiveFading
from fl.contracts import Array


def fading_over(bandwidth_hz: float, channel: Channel) -> SelectiveFading | None:
    """The fading of a channel over another band, Hz; None: it is that of its own."""
    fading = channel.fading
    if not isinstance(fading, SelectiveFading) or bandwidth_hz == fading.bandwidth_hz:
        return None
    return fading.over(bandwidth_hz)


def heard_over(fading: SelectiveFading | None, channel: Channel) -> Channel:
    """What of a channel is heard in a band with this fading; None: in its own."""
    return channel if fading is None else ChannelOverBand(channel, fading)


class ChannelOverBand(Channel):
    """A channel with fading over another band.

    Args:
        channel: of the uplink, as it is now.
        fading: of the other band.
    """

    def __init__(self, channel: Channel, fading: SelectiveFading) -> None:
        vars(self).update(vars(channel))
        self.channel, self.fading, self.path_gain = channel, fading, channel.path_gain

    @property
    def static(self) -> bool:
        return self.channel.static

    def next_change_s(self, time_s: float) -> float:
        return self.channel.next_change_s(time_s)

    def large_scale_at(self, time_s: float) -> tuple[Array, Array]:
        return self.channel.large_scale_at(time_s)

    def gains(self, time_s: float) -> Array:
        assert self.fading is not None
        power = self.fading.power(self.block(time_s), self.k_factor_at(time_s))
        return self.large_scale_at(time_s)[0] * power
