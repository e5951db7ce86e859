"""Rounds of a network from hand-made gains, with the method that only costs time."""

from functools import partial

import numpy as np
import pytest
import simpy

from edgesim.clocks.rules import Deadline, Rules
from edgesim.clocks.server_loop import serve
from edgesim.network.fading.processes import BlockFading
from edgesim.network.flows.ideal_downlink import IdealDownlink
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.measured import MeasuredInterference
from edgesim.network.interference.network_cell import Network
from edgesim.network.interference.network_uplink import NetworkUplink
from edgesim.network.interference.sector_channel import SectorChannel
from edgesim.network.planned_gains import PlannedGains
from edgesim.records.event_log import EventLog
from edgesim.seeds import Seeds
from solvers import allocate
from tests.edgesim.conftest import Played, SilentObserver, TimingMethod, TimingTrainer
from tests.edgesim.network.fleets import make_fleet

DENSITY = 10.0 ** ((-174.0 + 5.0 - 30.0) / 10.0)


def network_gains(seed=0, sectors=4, per_sector=3):
    """Strong links to the own sector, weaker ones to the others."""
    rng, count = np.random.default_rng(seed), sectors * per_sector
    gain = 10.0 ** rng.uniform(-13.0, -11.0, (count, sectors))
    serving = np.repeat(np.arange(sectors), per_sector)
    gain[np.arange(count), serving] = 10.0 ** rng.uniform(-11.0, -9.5, count)
    return Couplings(gain, serving)


def play_network(
    couplings,
    heard="events",
    planned="full",
    solver="kkt",
    budget_s=0.5,
    clock="synchronous",
    rounds=range(1),
    bandwidth_hz=18.36e6,
    power=None,
    law=None,
    coherence_s=float("inf"),
    rate="now",
    tx_power_w=0.2,
    method=None,
    downlink=None,
    share="fixed",
    **options,
):
    """Play some rounds; ``heard`` and ``planned`` are the interference of links and of plans."""
    env, log, segments, couplings = simpy.Environment(), EventLog(), [], couplings.copy()
    count = len(couplings)
    fleet = make_fleet(np.full(count, tx_power_w), np.linspace(1e9, 3e9, count), 10.0)
    fading = BlockFading(Seeds(0), count, coherence_s) if coherence_s < float("inf") else None
    about = {"noise_w_per_hz": DENSITY, "fading": fading, "law": law, "power_control": power}
    about |= options
    channel = SectorChannel(couplings, bandwidth_hz=bandwidth_hz, **about)
    measured = MeasuredInterference(couplings.sectors) if planned == "measured" else None
    uplink = NetworkUplink(
        env,
        channel,
        couplings,
        heard,
        share=share,
        on_segment=lambda *segment: segments.append(segment),
        measured=measured,
    )
    cell = Network(
        couplings,
        planned,
        heard == "load",
        measured=measured,
        env=env,
        channel=channel,
        fleet=fleet,
        allocator=partial(allocate, method=solver),
        uplink=uplink,
        downlink=(downlink or IdealDownlink)(env, channel),
        samples=np.full(count, 100),
        streams=Seeds(0),
        budget_s=budget_s,
        planned_gains=PlannedGains(channel, rate),
    )
    method = method or TimingMethod()
    trainer = TimingTrainer(method.charged)
    rules = {"synchronous": Rules(), "deadline": Deadline()}[clock]
    server = serve(rules, env, cell, method, trainer, log, SilentObserver(), rounds, None)
    state = env.run(env.process(server))
    return Played(env, cell, log, state, segments, trainer.updates)


@pytest.fixture(scope="session")
def network():
    """`play_network`, with hand-made or drawn gains; ``network.gains(seed, sectors, each)``."""

    class Engine:
        play, gains = staticmethod(play_network), staticmethod(network_gains)

    return Engine
