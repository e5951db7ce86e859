"""From a scenario's sections to gains: urban cells, their files and what the check says of them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from edgesim import simulate
from edgesim.network.propagation.tr38901_path_loss import path_loss_db
from edgesim.runs.run import feasibility
from edgesim.runs.setup import set_up
from edgesim.scenario import load

FILE = Path(__file__).parents[4] / "scenarios" / "urban-macro.yaml"
CLEAR = [
    "~schemes",
    "network.channel.path_loss={model: uma, los: always, antenna_gain: 8 dB}",
    "network.channel.shadowing=none",
]


def test_gains_are_those_of_the_formula():
    """Two devices, 35 and 1500 m away, line of sight, no shadow: table values less 8 dB."""
    place = "devices.0.position={list: [[35 m, 0 m], [0 m, -1500 m]]}"
    channel = set_up(load(FILE, ["devices.0.count=2", place, *CLEAR])).channel
    assert -10 * np.log10(channel.path_gain) == pytest.approx([66.628595, 108.452881], abs=1e-6)
    assert (channel.fading.k_factor > 1e-3).all()
    assert channel.coherence_s == pytest.approx(18.4e-3, abs=1e-4)


def test_a_distance_lies_in_some_direction_and_heights_count():
    cpu = "cpu: {frequency: 2 GHz, cycles_per_weight: 5}"
    devices = f"[{{count: 3, tx_power: 23 dBm, distance: 250 m, height: 10 m, {cpu}}}]"
    setup = set_up(load(FILE, [f"devices={devices}", *CLEAR]))
    assert np.hypot(setup.fleet.x_m, setup.fleet.y_m) == pytest.approx(np.full(3, 250.0))
    loss = path_loss_db("uma", True, 250.0, 25.0, 10.0, 3.5) - 8.0
    assert -10 * np.log10(setup.channel.path_gain) == pytest.approx(np.full(3, loss), abs=1e-9)


@pytest.mark.slow
def test_the_devices_file_has_places_and_links(tmp_path):
    run = simulate(load(FILE, ["rounds=2"], label="quantile"), out=tmp_path / "run")
    devices = pd.read_csv(run.folder / "devices.csv")
    assert np.hypot(devices.x_m, devices.y_m).to_numpy() == pytest.approx(devices.distance_m)
    assert set(devices.line_of_sight) == set(devices.indoor) == {0, 1}
    assert run.summary["late_share"] <= 0.05 + 3 * (0.05 * 0.95 / 80) ** 0.5


def test_the_check_names_devices_where_the_model_does_not_hold():
    place = "devices.0.position={list: [[3 m, 0 m], [0 m, 9 km]]}"
    changes = ["devices.0.count=2", place, "devices.0.height=40 m", *CLEAR]
    warnings = " ".join(feasibility(load(FILE, changes)).warnings)
    assert "1 of 2 devices are nearer than 10 m" in warnings
    assert "1 of 2 devices are farther than 5000 m" in warnings
    assert "2 of 2 devices are at heights beyond 1.5 to 22.5 m" in warnings
    assert not feasibility(load(FILE, ["~schemes"])).warnings


@pytest.mark.parametrize(
    ("loss", "place", "expected"),
    [
        ("{model: rma, los: always}", "7 km", ()),  # Table 7.4.1-1: LOS up to 10 km
        ("{model: rma, los: always}", "10.5 km", ("farther than 10000 m with line of sight",)),
        ("{model: rma, los: never}", "7 km", ("farther than 5000 m without line of sight",)),
        ("{model: rma, height: 5 m}", "100 m", ("at a height of 5 m", "made for 10 to 150 m")),
        ("{model: uma, height: 1 m}", "100 m", ("at a height of 1 m", "made for 25 m")),
        ("{model: inh}", "0 m", ()),  # 2 m in space
        ("{model: inh}", "149.99 m", ("farther than 150 m",)),  # 150.003 m in space
    ],
)
def test_the_check_has_the_ranges_of_the_table(loss, place, expected):
    places = f"devices.0.position={{list: [[{place}, 0 m]]}}"
    changes = ["devices.0.count=1", places, f"network.channel.path_loss={loss}"]
    changes += ["network.channel.shadowing=0 dB", "network.channel.fading=none"]
    changes += ["allocation={solver: equal}"]
    warnings = feasibility(load(FILE, changes, label="now")).warnings
    warnings = [each for each in warnings if "TR 38.901" in each]
    assert len(warnings) == bool(expected)
    assert all(part in " ".join(warnings) for part in expected)


@pytest.mark.slow
@pytest.mark.parametrize("process", ["block", "clarke"])
def test_a_plan_for_a_quantile_holds_under_fading_by_speed(process):
    """UMi, 10 km/h, devices with and without a direct path."""
    changes = [
        "rounds=8",
        f"network.channel.fading.process={process}",
        "network.channel.fading.speed=10 km/h",
        "network.channel.path_loss={model: umi}",
        "devices.0.position={disc: 100 m}",
        "budget.latency_threshold=300 ms",
    ]
    run = simulate(load(FILE, changes, label="quantile")).summary
    assert run["late_share"] <= 0.05 + 3 * (0.05 * 0.95 / 320) ** 0.5
    assert 0.0 < run["promised_late_share"] <= 0.0505
