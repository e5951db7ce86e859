"""Shares of devices that were handed over, against the bands that granted them."""

import pytest

import edgesim
from edgesim.tables.table_reading import read_event_log
from edgesim.verification.check_result import FAILED, PASSED
from edgesim.verification.planned_rounds import check_planned_rounds

# Device 0 goes from one site to the other, at which device 1 stands.
WALKS = "device,time_s,x_m,y_m\n0,0,0,1\n0,25,500,1\n1,0,500,1\n"
TWO_SITES = """
name: two-sites
rounds: 1
network:
  bandwidth: 1 MHz
  noise: -170 dBm/Hz
  layout: {kind: sites, position: {list: [[0 m, 0 m], [500 m, 0 m]]}}
  channel:
    path_loss: {model: log-distance, reference_loss: 30 dB, exponent: 3.5}
    refresh: 40 ms
devices:
  - {count: 2, tx_power: 1 mW, mobility: {trace: walks.csv, end: hold},
     cpu: {frequency: 2 GHz, cycles_per_weight: 5}}
learning: {dataset: none, model: liu-cnn, batch_size: 128, method: fedavg}
accounting: {bits_per_weight: 400}
allocation: {solver: equal}
"""


@pytest.mark.slow
def test_a_share_counts_in_the_sector_that_granted_it(tmp_path):
    (tmp_path / "walks.csv").write_text(WALKS)
    (tmp_path / "two-sites.yaml").write_text(TWO_SITES)
    run = edgesim.simulate(edgesim.load(tmp_path / "two-sites.yaml"), out=tmp_path / "run")
    rows = run.device_rounds
    assert rows.handovers.tolist() == [1, 0] and rows.share.tolist() == [1.0, 1.0]
    assert rows.sector.nunique() == 1  # both end in one
    allocations, _ = check_planned_rounds(
        tmp_path / "run", read_event_log(tmp_path / "run"), None, False
    )
    assert allocations.outcome == PASSED
    tables = read_event_log(tmp_path / "run")
    tables["device_rounds"].loc[0, "share"] = 1.1
    (allocations,) = check_planned_rounds(tmp_path / "run", tables, None, False)
    assert allocations.outcome == FAILED and "the shares sum to 1.1" in allocations.detail
