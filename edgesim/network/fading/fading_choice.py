"""The small-scale fading that a scenario asks for."""

from __future__ import annotations

import math

from edgesim.network.fading.processes import (
    COHERENCE_RULE,
    BlockFading,
    ClarkeFading,
    Fading,
    doppler_hz,
)
from edgesim.network.fading.selective import SelectiveFading, parts_of
from edgesim.scenario.network_schema import NetworkSection
from edgesim.scenario.radio.fading_schema import TABLE
from fl.contracts import Array, Streams


def make_fading(
    network: NetworkSection, k_factor: Array, delay_spread_s: Array | None, streams: Streams
) -> Fading | None:
    """The fading of a scenario's ``network`` section; None: none.

    Args:
        network: the section.
        k_factor: of the devices' links [K], linear.
        delay_spread_s: of the links, where the section takes them by position [K], s.
        streams: random streams of the run.
    """
    section = network.channel.fading
    if section.kind == "none":
        return None
    if section.coherence_s is not None:
        return BlockFading(streams, len(k_factor), section.coherence_s, k_factor)
    carrier_hz = network.carrier.frequency_hz if network.carrier else math.nan
    shift_hz = doppler_hz(section.speed_m_per_s or 0.0, carrier_hz)
    if (tau_s := section.delay_spread_s) is not None:
        band_hz, grid = network.bandwidth_hz, _blocks_of(network)
        return SelectiveFading(
            streams,
            len(k_factor),
            shift_hz,
            k_factor,
            delay_spread_s if tau_s == TABLE else tau_s,
            band_hz,
            parts_of(band_hz, grid),
        )
    if section.process == "clarke":
        return ClarkeFading(streams, len(k_factor), shift_hz, k_factor)
    return BlockFading(streams, len(k_factor), COHERENCE_RULE / shift_hz, k_factor)


def _blocks_of(network: NetworkSection) -> float | None:
    """Resource blocks in the band, which an edge may have of its own; None: there is no grid."""
    carrier = network.carrier
    if carrier is None or carrier.blocks is None or carrier.occupied_hz is None:
        return None
    return carrier.blocks * network.bandwidth_hz / carrier.occupied_hz
