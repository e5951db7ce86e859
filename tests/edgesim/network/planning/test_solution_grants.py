"""The solution of a pruning problem as grants of devices."""

import numpy as np

from edgesim.network.grants import Grants
from edgesim.network.hardware.clock_levels import ClockLevels
from edgesim.network.planning.solution_grants import on_clock_levels
from fl.contracts import Demand, View, Work
from tests.edgesim.network.fleets import make_fleet


def test_an_allocators_rounding_never_exceeds_the_band(engine):
    rounding = lambda problem: (np.full(4, (1 + 9e-10) / 4), np.full(4, 0.5))  # noqa: E731
    fleet = make_fleet(tx_power_w=0.63, cpu_hz=[3e9] * 4, cycles_per_weight=5)
    played = engine.play(fleet, 1e-10, solver=rounding)
    assert sum(played.log.table("device_rounds").share) <= 1 + 1e-12


def test_granted_clocks_become_levels_by_hand():
    """Device 1 computes 0.1 + (1 - 0.5) 1.8 Gcycles: with 0.5 s to spare at 2 GHz, one second at
    1 GHz. Device 2 gives half of its processor, whose levels are then 0.25, 0.6 and 1 GHz.
    """
    levels_hz = np.array([[np.inf] * 3, [1e9, 3e9, np.inf], [5e8, 1.2e9, 2e9]])
    levels = ClockLevels(levels_hz, np.array([False, True, False]))
    fixed, prunable = Work(np.array([4e8, 7e8, 1e8])), Work(np.array([6e8, 7e8, 1.8e9]))
    none, one = np.zeros(3), np.ones(3)
    demand = Demand(np.array([2, 0, 1]), none, none, fixed, prunable, none, one, one)
    clocks_hz, part = np.array([2e9, 3e9, 1e9]), np.array([1.0, 1.0, 0.5])
    view = View(0, 0.0, np.arange(3), one, clocks_hz, one, 1.0, part, one)
    fleet = make_fleet(tx_power_w=0.2, cpu_hz=[2e9, 3e9, 2e9], cycles_per_weight=1.0)

    def granted(devices, cpu_hz, spare_s):
        count = len(devices)
        shares, rho, power_w = np.full(count, 1.0 / count), np.full(count, 0.5), np.full(count, 0.2)
        grants = Grants(np.array(devices), shares, rho, np.array(cpu_hz), power_w)
        found = on_clock_levels(grants, levels, fleet, demand, view, np.array(spare_s))
        same = "device", "share", "rho", "power_w"
        assert all(getattr(found, name) is getattr(grants, name) for name in same)
        return found.cpu_hz.tolist()

    assert granted([1, 2], [2e9, 5e8], [0.5, 0.5]) == [1e9, 6e8]
    assert granted([0, 1], [1.3e9, 2e9], [0.5, 0.49]) == [1.3e9, 3e9]
    clocks_hz[2] = 9e8
    assert granted([2], [7e8], [0.0]) == [9e8]  # no more than it gives
