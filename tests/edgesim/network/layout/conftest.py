"""Scenarios of several cells, their devices and their coupling."""

from pathlib import Path

import numpy as np
import pytest

from edgesim.network.device import draw_fleet
from edgesim.network.layout.cell_drop import make_drop
from edgesim.network.layout.coupling import make_coupling
from edgesim.scenario import load
from edgesim.seeds import Seeds

CPU = "cpu: {frequency: 2 GHz, cycles_per_weight: 5}"
URBAN = Path(__file__).parents[4] / "scenarios" / "urban-macro.yaml"
DEVICES = (
    "devices.0={{count: {}, tx_power: 23 dBm, cpu: {{frequency: 2 GHz, cycles_per_weight: 5}}}}"
)


@pytest.fixture(scope="session")
def dropped():
    """(coupling of a hexagonal layout, positions [K, 2] of its devices)."""

    def make(devices, seed=0, path_loss="{model: uma, antenna: {kind: column}}", more=()):
        keys = [
            f"network.channel.path_loss={path_loss}",
            f"devices.0={{count: {devices}, tx_power: 23 dBm, {CPU}}}",
        ]
        scenario = load(URBAN, ["~schemes", "network.layout={kind: hex}", *keys, *more])
        streams = Seeds(seed)
        fleet = draw_fleet(scenario.devices, streams, make_drop(scenario.network, streams))
        position_m = np.stack([fleet.x_m, fleet.y_m], axis=1)
        return make_coupling(scenario.network, fleet, streams), position_m

    return make
