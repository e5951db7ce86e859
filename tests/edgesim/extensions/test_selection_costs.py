"""Joules that selection rules are told of, by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from edgesim.extensions.selection_costs import expected_costs
from edgesim.network.downlink.broadcast import BroadcastDownlink
from edgesim.network.hardware.device_hardware import DeviceHardware
from edgesim.network.hardware.modem import Modem
from edgesim.network.tdd_service import MeanAirTime
from fl.contracts import Demand, Work
from tests.edgesim.conftest import TimingMethod
from tests.edgesim.network.fleets import make_fleet

POWERS = {"static_power_w": 0.2, "idle_power_w": 0.05}
FLEET = make_fleet(0.2, 1e9, cycles_per_weight=1, capacitance=1e-28, **POWERS)
WORK, NOTHING = Work(np.array([5e8]), np.zeros(1)), Work(np.zeros(1), np.zeros(1))
COMPUTE_J = 1e-28 * 1e18 * 5e8  # 0.05 J in half a second
TDD = MeanAirTime(16 / 70), MeanAirTime(52 / 70)
MODEM = Modem(circuit_power_w=0.1, efficiency=0.5, sleep_power_w=0.04)
PHONE = DeviceHardware(1e-28, 0.2, 0.05, modem=MODEM)


@pytest.mark.parametrize(
    ("about", "static_w", "sending_w"),
    [
        ({}, 0.2, 0.2),
        ({"air_times": TDD}, 0.2, (0.2 * 16 + 0.05 * 54) / 70),
        ({"hardware": {0: PHONE}}, 0.2 + 0.04, 0.1 + 0.2 / 0.5),
    ],
    ids=["plain", "tdd", "modem"],
)
def test_what_a_round_is_expected_to_cost(about, static_w, sending_w):
    """1e6 bit at 5e5 bit/s: two seconds of sending after half a second of computing."""
    ratio, bits = np.zeros(1), np.array([1e6])
    asked = np.zeros(1), bits, NOTHING, WORK, ratio, ratio, np.ones(1), np.zeros(1)
    method = SimpleNamespace(demand=lambda state, view, devices: Demand(devices, *asked))
    view = SimpleNamespace(rate_bps=np.array([5e5]), cpu_hz=np.array([1e9]))
    costs = expected_costs(FLEET, **about)(method, None, view)
    assert (costs.compute_s, costs.upload_s) == (0.5, 2.0)
    assert costs.energy_j == pytest.approx([COMPUTE_J + 0.5 * static_w + 2.0 * sending_w])


class ToldOutcomes(TimingMethod):
    """Its state is what it was told last."""

    def observe(self, state, report):
        return report.outcomes


@pytest.mark.parametrize(("budget_s", "expected_j"), [(9.0, 0.7), (0.75, 0.225)])
def test_what_a_job_has_cost(engine, budget_s, expected_j):
    """16 Mbit at 32 Mbit/s with 0.3 W: 0.5 s, 0.15 J. 0.5 s of computing: 0.05 J of the clock and
    0.1 J of 0.2 W. 32 Mbit at 16 Mbit/s with 0.2 W: 2 s, 0.4 J. After 0.75 s half was computed.
    """
    fleet = make_fleet(0.2, 1e9, cycles_per_weight=1, receive_power_w=0.3, **POWERS)
    method = ToldOutcomes(1e8, 1e6, warmup_steps=0, global_steps=0, bits_down=16e6)
    played = engine.play(
        fleet,
        0.5,
        replace(method, rho_bounds=(0.0, 0.0)),
        solver="equal",
        budget_s=budget_s,
        clock="deadline",
        bandwidth_hz=16e6,
        noise_w=0.1,
        downlink=lambda env, channel: BroadcastDownlink(env, channel, tx_power_w=0.6),
    )
    (outcome,) = played.state
    assert outcome.energy_j == pytest.approx(expected_j, rel=1e-5)
