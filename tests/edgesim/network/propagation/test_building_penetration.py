"""Loss into buildings: wall losses to 1e-6 dB, depths and spreads by their distributions."""

import numpy as np
import pytest

from edgesim.network.propagation.building_penetration import (
    building_loss_db,
    car_loss_db,
    depth_m,
    wall_loss_db,
)

WALLS = [  # GHz: low, high
    (0.7, 10.236703, 17.859139),
    (2.0, 11.825320, 22.707094),
    (3.5, 12.697503, 27.499289),
    (6.0, 13.402215, 31.753322),
    (28.0, 17.828787, 35.029020),
]


@pytest.mark.parametrize(("ghz", "low", "high"), WALLS)
def test_walls(ghz, low, high):
    assert wall_loss_db(np.array([False, True]), ghz) == pytest.approx([low, high], abs=1e-6)


def test_a_building_adds_wall_depth_and_spread():
    """At 3.5 GHz, 10 m inside: 12.697503 + 5 + 4.4 and 27.499289 + 5 - 6.5 dB."""
    loss = building_loss_db(np.array([False, True]), 10.0, np.array([1.0, -1.0]), 3.5)
    assert loss == pytest.approx([22.097503, 25.999289], abs=1e-6)
    assert car_loss_db(np.array([0.0, 1.0])) == pytest.approx([9.0, 14.0])


def test_the_depth_is_the_smaller_of_two():
    """The mean of the smaller of two uniform depths is a third of the largest."""
    uniform = np.random.default_rng(1).random((40_000, 2))
    assert depth_m("uma", uniform).mean() == pytest.approx(25 / 3, rel=0.02)
    assert depth_m("rma", uniform).max() <= 10.0
