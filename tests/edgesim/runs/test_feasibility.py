"""What `edgesim check` prints of a device: its upload, and what binds it."""

import pytest

from edgesim.runs.run import feasibility
from edgesim.scenario.loader import load

TEXT = """\
name: tiny
rounds: 1
network:
  bandwidth: {band}
  noise: {noise}
  channel: {{path_loss: {{model: constant, loss: 100 dB}}}}
devices: [{{count: 4, tx_power: 28 dBm, cpu: {{frequency: 3 GHz, cycles_per_weight: 5}}}}]
budget: {{latency_threshold: {threshold}}}
learning: {{dataset: none, model: mlp, batch_size: 20, method: {{name: {method}}}}}
allocation: {{solver: {solver}}}
"""


@pytest.fixture
def rows(tmp_path):
    def checked(method="fedavg", solver="equal", threshold="25 s", band="1 MHz", noise="-110 dBm"):
        (tmp_path / "tiny.yaml").write_text(TEXT.format_map(locals()))
        return feasibility(load(tmp_path / "tiny.yaml")).rows

    return checked


@pytest.mark.parametrize("noise", ["-110 dBm", "-170 dBm/Hz"])
def test_an_unpruned_upload_at_an_equal_share_is_the_equal_plan(rows, noise):
    for row in rows(noise=noise):
        in_all_ms = sum(row["stages"].values()) + row["upload_ms"]
        assert row["planned_ms"] == pytest.approx(in_all_ms, rel=1e-12)


def test_what_binds_is_the_longest_part_of_the_unpruned_round(rows):
    # so narrow that all of the shared part must be pruned: then nothing is sent, yet the band binds
    narrow = rows("liu", "kkt", "25 ms", band="1 Hz")
    assert min(row["rho"] for row in narrow) > 0.999
    assert {row["binds"] for row in narrow} == {"uplink"}
    assert {row["binds"] for row in rows("liu", "kkt", band="1 THz")} == {"personal"}


def test_where_nothing_helps_what_cannot_be_pruned_binds(rows):
    late = rows("liu", "kkt", "1 ns")
    assert not any(row["feasible"] for row in late)
    assert {row["binds"] for row in late} == {"personal"}
