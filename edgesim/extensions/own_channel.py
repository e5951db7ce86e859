"""The channel of a scenario: by formula, from a measured trace, or from code of the user's own."""

from __future__ import annotations

from edgesim.errors import ScenarioKeyError
from edgesim.extensions.own_path_loss import PATH_LOSS, OwnPathLoss
from edgesim.network.channel import Channel
from edgesim.network.device import Fleet
from edgesim.network.given_losses.trace_file import RATE, TraceFileError, read_trace
from edgesim.network.given_losses.traced_losses import TracedLosses, losses_of_rates
from edgesim.network.given_losses.varying_channel import (
    LossProcess,
    OwnLosses,
    make_varying_channel,
)
from edgesim.network.interference.make_network import make_sector_channel
from edgesim.network.make_channel import make_channel
from edgesim.network.mobility.movement import Movement
from edgesim.network.mobility.moving_channel import make_moving_channel
from edgesim.scenario.loader import Scenario
from edgesim.scenario.radio.own_loss_schema import TracePathLoss
from fl.contracts import Streams


def find_channel(
    scenario: Scenario,
    fleet: Fleet,
    streams: Streams,
    own: OwnPathLoss | None = None,
    movement: Movement | None = None,
) -> Channel:
    """The channel of a scenario's ``network`` section.

    Args:
        scenario: the checked scenario.
        fleet: the devices.
        streams: random streams of the run.
        own: its path loss by code; None: it has another.
        movement: where the devices are over time; None: nobody moves.

    Raises:
        ScenarioKeyError: a file or code cannot be used, with its key.
    """
    network, loss = scenario.network, scenario.network.channel.path_loss
    if network.layout.kind != "single":
        return make_sector_channel(network, fleet, streams, movement, own)
    if isinstance(loss, TracePathLoss):
        try:
            process = traced_losses(scenario, loss, fleet)
        except TraceFileError as error:
            problem = f"is {loss.file}, which {error}"
            raise ScenarioKeyError((*PATH_LOSS, "file"), problem) from error
        return varying_channel(scenario, fleet, streams, process, loss.file)
    if movement is not None:
        return make_moving_channel(network, fleet, streams, movement, own)
    losses = own.losses(fleet) if own else None
    if isinstance(losses, OwnLosses):
        return varying_channel(scenario, fleet, streams, losses, losses.name)
    return make_channel(network, fleet, streams, losses)


def varying_channel(
    scenario: Scenario, fleet: Fleet, streams: Streams, process: LossProcess, name: str
) -> Channel:
    """A channel over time; a plan cannot count with a distribution that nobody has given."""
    rate = scenario.allocation.rate
    if rate != "now":
        problem = f"is {rate}, which needs a distribution; {name} gives losses over time, write now"
        raise ScenarioKeyError(("allocation", "rate"), problem)
    return make_varying_channel(scenario.network, fleet, streams, process)


def traced_losses(scenario: Scenario, loss: TracePathLoss, fleet: Fleet) -> TracedLosses:
    """The losses of the trace that a scenario names."""
    network = scenario.network
    trace = read_trace(scenario.folder / loss.file, len(fleet))
    if trace.kind != RATE:
        return TracedLosses(trace.times_s, trace.values, loss.end)
    channel = network.channel
    if channel.fading.kind != "none" or channel.shadowing_db:
        raise TraceFileError(
            "holds rates, in which fading and shadowing are contained; remove network.channel's "
            "fading and shadowing, or give path losses in dB"
        )
    if network.adaptation or network.carrier:
        raise TraceFileError(
            "holds rates as they were measured; remove network.adaptation and network.carrier"
        )
    noise_w = network.noise.power_w
    if noise_w is None:
        noise_w = (network.noise.density_w_per_hz or 0.0) * network.bandwidth_hz
    rates = (trace.values, fleet.tx_power_w, noise_w, network.bandwidth_hz)
    return TracedLosses(trace.times_s, losses_of_rates(*rates), loss.end)
