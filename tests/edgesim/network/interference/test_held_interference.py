"""Interference that is held for a round or a look, while devices are handed over."""

import pytest

from edgesim.runs.run import simulate
from edgesim.scenario import load

WALK = "device,time_s,x_m,y_m\n0,0,245,1\n0,1,255,1\n0,40,256,1\n"  # over the border at 0.5 s
TEXT = """
name: two-sites
rounds: 1
network:
  bandwidth: 10 MHz
  noise: -169 dBm/Hz
  layout: {kind: sites, position: {list: [[0 m, 0 m], [500 m, 0 m]]}}
  channel: {path_loss: {model: log-distance, reference_loss: 40 dB, exponent: 3.5}, refresh: 40 ms}
  handover: {filter: 0, interruption: 0 s, offset: 0 dB, hysteresis: 0 dB, time_to_trigger: 0 ms}
devices:
  - count: 1
    tx_power: 200 mW
    mobility: {trace: walk.csv, end: hold}
    cpu: {frequency: 100 MHz, cycles_per_weight: 1}
budget: {latency_threshold: 2 s}
allocation: {solver: equal}
learning: {dataset: none, model: liu-cnn, batch_size: 10, method: {name: fedavg}}
"""


@pytest.fixture
def uploads(tmp_path):
    """uploads(mode) -> spans of the only device's upload under a mode of interference."""
    (tmp_path / "walk.csv").write_text(WALK)
    (tmp_path / "two-sites.yaml").write_text(TEXT)

    def of_mode(mode):
        scenario = load(tmp_path / "two-sites.yaml", [f"network.interference={mode}"])
        return simulate(scenario).spans.query("phase == 'upload'")

    return of_mode


@pytest.mark.parametrize("mode", ["full", "load", "{refresh: 500 ms}"])
def test_a_device_that_was_handed_over_does_not_disturb_itself(uploads, mode):
    """Nobody else is there: each mode is then as fast as who hears those that really send."""
    alone, held = uploads("events"), uploads(mode)
    assert len(alone) == 2  # one span in each sector
    for column in ("start_s", "end_s", "bits"):
        assert held[column].to_numpy() == pytest.approx(alone[column].to_numpy(), rel=1e-12)
