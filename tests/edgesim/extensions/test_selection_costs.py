"""Joules that selection rules are told of, by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from edgesim.extensions.selection_costs import expected_costs, spent_energy
from fl.contracts import Demand, Grant, Outcome, Stage, Work
from tests.edgesim.network.fleets import make_fleet

FLEET = make_fleet(0.2, 1e9, cycles_per_weight=1, capacitance=1e-28, idle_power_w=0.05)
WORK, NOTHING = Work(np.array([5e8]), np.zeros(1)), Work(np.zeros(1), np.zeros(1))
COMPUTE_J = 1e-28 * 1e18 * 5e8  # 0.05 J in half a second
ON_AIR = [(1.0, 0.2), (16 / 70, (0.2 * 16 + 0.05 * 54) / 70)]  # share of the time, mean power, W


@pytest.mark.parametrize(("air_share", "sending_w"), ON_AIR)
def test_what_a_round_is_expected_to_cost(air_share, sending_w):
    """1e6 bit at 5e5 bit/s: two seconds of sending."""
    ratio, bits = np.zeros(1), np.array([1e6])
    about = np.zeros(1), bits, NOTHING, WORK, ratio, ratio, np.ones(1), np.zeros(1)
    method = SimpleNamespace(demand=lambda state, view, devices: Demand(devices, *about))
    view = SimpleNamespace(rate_bps=np.array([5e5]), cpu_hz=np.array([1e9]))
    costs = expected_costs(FLEET, air_share)(method, None, view)
    assert (costs.compute_s, costs.upload_s) == (0.5, 2.0)
    assert costs.energy_j == pytest.approx([COMPUTE_J + 2.0 * sending_w])


@pytest.mark.parametrize(("air_share", "sending_w"), ON_AIR)
def test_what_a_job_has_cost(air_share, sending_w):
    """Back after 2.5 s, of which it computed for 0.5 s."""
    update = SimpleNamespace(
        job=SimpleNamespace(stages=()), stages=lambda: (Stage("train", Work(5e8, 0.0)),)
    )
    outcome = Outcome(Grant(0, 1.0, 0.0, 1e9, 0.2), update, "arrived", True, True, finish_s=2.5)
    assert spent_energy(FLEET, air_share)(outcome) == pytest.approx(COMPUTE_J + 2.0 * sending_w)
