"""Devices that walk out of the ranges of the path loss: one sentence for each range."""

import pytest

from edgesim.runs.run import simulate
from edgesim.scenario import load

TEXT = """
name: walk
rounds: 4
network:
  bandwidth: 20 MHz
  carrier: {frequency: 3.5 GHz}
  noise: -169 dBm/Hz
  channel: {path_loss: {model: uma, los: always}, shadowing: 0 dB, fading: none, refresh: 100 ms}
devices:
  - count: 3
    tx_power: 23 dBm
    mobility: {trace: walk.csv, end: hold}
    cpu: {frequency: 2 GHz, cycles_per_weight: 5}
budget: {latency_threshold: 1 s}
allocation: {solver: equal}
learning: {dataset: none, model: liu-cnn, batch_size: 128,
  method: {name: liu, personal_lr: 0.1, global_lr: 0.1}}
"""
AWAY, NEAR, STILL = (0, 4990.0, 5050.0), (1, 40.0, -26.0), (2, 20.0, 20.0)
FAR_SITES = "network.layout={kind: sites, position: {list: [[0 m, 0 m], [600 km, 0 m]]}}"
NOT_MADE = "path_loss model uma of TR 38.901 is not made for that"


@pytest.fixture
def walked(tmp_path):
    """Warnings of a run of devices that go straight along the x axis within 6 s."""

    def walk(*routes, changes=()):
        lines = [f"{k},{t},{x},0" for k, *ends in routes for t, x in zip((0, 6), ends, strict=True)]
        (tmp_path / "walk.csv").write_text("\n".join(("device,time_s,x_m,y_m", *lines)) + "\n")
        (tmp_path / "walk.yaml").write_text(TEXT)
        scenario = load(tmp_path / "walk.yaml", changes)
        warnings = simulate(scenario).summary["warnings"]
        return [each for each in warnings if "TR 38.901" in each]

    return walk


@pytest.mark.parametrize("changes", [(), (FAR_SITES,)])
def test_the_first_device_that_goes_out_of_each_range_is_named_once(walked, changes):
    """At 10 m/s from 4990 m, and at 11 m/s from 40 m; rounds of 1 s and a few milliseconds."""
    far, near = walked(AWAY, NEAR, STILL, changes=changes)
    assert far == (
        "device 0 is 5010 m from its base station after 2 rounds, at 2.007 s, farther than 5000 m: "
        f"{NOT_MADE}"
    )
    assert near == (
        "device 1 is 7 m from its base station after 3 rounds, at 3.011 s, nearer than 10 m, and "
        f"counted as there: {NOT_MADE}"
    )


def test_who_is_out_of_a_range_at_the_start_is_warned_about_there_alone(walked):
    (sentence,) = walked((0, 5010.0, 5100.0), (1, 40.0, 50.0), STILL)
    assert sentence == f"1 of 3 devices are farther than 5000 m: {NOT_MADE}"
    assert walked((0, 4000.0, 4990.0), (1, 40.0, 50.0), STILL) == []
