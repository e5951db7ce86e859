"""The channel that a scenario's ``network`` section describes."""

from __future__ import annotations

from typing import Any

from edgesim.network.adaptation.link_adaptation import (
    make_downlink_law,
    make_estimate,
    make_law,
    make_single_scheme,
)
from edgesim.network.adaptation.power_control import make_power_control
from edgesim.network.channel import Channel
from edgesim.network.device import Fleet
from edgesim.network.fading.fading_choice import make_fading
from edgesim.network.fading.processes import Fading
from edgesim.network.propagation.large_scale import LargeScale
from edgesim.network.propagation.path_loss import large_scale_of, linear, path_gains
from edgesim.network.tdd_service import make_air_times
from edgesim.scenario.network_schema import NetworkSection
from fl.contracts import Array, Streams


def make_channel(
    network: NetworkSection, fleet: Fleet, streams: Streams, losses_db: Array | None = None
) -> Channel:
    """The channel of a scenario's ``network`` section.

    Args:
        network: the section.
        fleet: the devices.
        streams: random streams of the run.
        losses_db: path losses from elsewhere [K], dB; None: by the section's model.
    """
    links = large_scale_of(network, fleet, streams, losses_db)
    return Channel(**channel_options(network, links, streams))


def channel_options(network: NetworkSection, links: LargeScale, streams: Streams) -> dict[str, Any]:
    """The arguments of `Channel` by a scenario's ``network`` section, for these links."""
    fading = make_fading(network, links.k_factor, links.delay_spread_s, streams)
    options = radio_options(network, fading, streams)
    return {**options, "path_gain": mean_gains(network, links), "links": links}


def radio_options(
    network: NetworkSection, fading: Fading | None, streams: Streams
) -> dict[str, Any]:
    """Those that do not depend on the devices' path losses."""
    return {
        "bandwidth_hz": network.bandwidth_hz,
        "noise_w": network.noise.power_w,
        "noise_w_per_hz": network.noise.density_w_per_hz,
        "fading": fading,
        "resource_share": network.carrier.resource_shares[0] if network.carrier else 1.0,
        "law": make_law(network.adaptation),
        "downlink_law": make_downlink_law(network.adaptation),
        "air_times": make_air_times(network.carrier),
        "estimate": make_estimate(network, fading, streams),
        "power_control": make_power_control(network),
        "single": make_single_scheme(network.adaptation),
    }


def mean_gains(network: NetworkSection, links: LargeScale) -> Array:
    """Path loss x shadowing of all devices [K], linear, less what the receiver loses."""
    return path_gains(links) / receiver_loss(network)


def receiver_loss(network: NetworkSection) -> float:
    """By how much a receiver needs more than the theory says, linear."""
    adaptation = network.adaptation
    loss_db = adaptation.implementation_loss_db if adaptation else 0.0
    return float(linear(loss_db)) if loss_db else 1.0
