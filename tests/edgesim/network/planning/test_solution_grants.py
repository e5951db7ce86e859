"""The solution of a pruning problem as grants of devices."""

import numpy as np

from tests.edgesim.network.fleets import make_fleet


def test_an_allocators_rounding_never_exceeds_the_band(engine):
    rounding = lambda problem: (np.full(4, (1 + 9e-10) / 4), np.full(4, 0.5))  # noqa: E731
    fleet = make_fleet(tx_power_w=0.63, cpu_hz=[3e9] * 4, cycles_per_weight=5)
    played = engine.play(fleet, 1e-10, solver=rounding)
    assert sum(played.log.table("device_rounds").share) <= 1 + 1e-12
