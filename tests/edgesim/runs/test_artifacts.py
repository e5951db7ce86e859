"""Provenance of a run, and what it writes about its devices."""

from importlib.metadata import PackageNotFoundError, version
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from edgesim import simulate
from edgesim.runs import artifacts
from edgesim.runs.artifacts import devices_csv, git_state
from edgesim.runs.setup.make_setup import set_up
from edgesim.scenario import load

URBAN_MACRO = Path(__file__).parents[3] / "scenarios/urban-macro.yaml"


def test_without_git_the_provenance_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state.__wrapped__() == "unknown (git cannot be run)"


def test_the_provenance_needs_no_installation(monkeypatch):
    def of_others(name):
        if name == "edgesim":
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(artifacts, "version", of_others)
    found = artifacts.versions.__wrapped__()
    assert found["edgesim"] == "not installed" and found["numpy"] == np.__version__


def test_the_path_gain_of_a_device_is_without_the_loss_of_the_receiver():
    rates, gains = [], []
    for loss_db in (0, 2):
        adaptation = f"network.adaptation={{rate: mcs, implementation_loss: {loss_db} dB}}"
        setup = set_up(load(URBAN_MACRO, ["devices.0.count=3", adaptation], label="now"))
        table = pd.read_csv(StringIO(devices_csv(setup)))
        rates.append(table["rate_bps"].to_numpy())
        gains.append(table["path_gain_db"].to_numpy())
    np.testing.assert_allclose(*gains, atol=1e-12)
    assert rates[1].sum() < rates[0].sum()


@pytest.mark.parametrize(
    "network",
    [
        "channel.fading={kind: rayleigh, speed: 1e-6 m/s, process: clarke, delay_spread: 200 ns}",
        "adaptation={rate: mcs, split: false}",
        "adaptation={rate: mcs, errors: expected, csi: {delay: 2 ms, pilots: 4}}",
    ],
    ids=["selective", "one scheme", "estimated"],
)
def test_the_rate_of_a_device_is_that_of_its_upload_alone_on_the_whole_band(network, tmp_path):
    """Of the mean power over the band, it was 17 % more than the first one sent with."""
    still = ["network.channel.fading={kind: rayleigh, speed: 1e-6 m/s}", f"network.{network}"]
    alone = ["rounds=1", "devices.0.count=1", "allocation.solver=equal", *still]
    run = simulate(load(URBAN_MACRO, alone, label="now"), out=tmp_path)
    assert run.device_rounds["share"].tolist() == [1.0]
    found = pd.read_csv(tmp_path / "devices.csv")["rate_bps"].to_numpy()
    np.testing.assert_allclose(found, run.device_rounds["rate_bps"], rtol=1e-9)


SITES = """
name: sites
rounds: 1
network:
  bandwidth: 10 MHz
  noise: -174 dBm/Hz
  layout: {kind: hex, rings: 1, sectors: 1, isd: 300 m}
  channel: {path_loss: {model: code, code: "./near.py:near"}}
devices: [{count: 12, tx_power: 23 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 500}}]
learning: {dataset: none, model: mlp, batch_size: 20, method: {name: fedavg}}
allocation: {solver: equal}
"""
NEAR = """
import numpy as np

def near(fleet, streams):
    return np.where(fleet.distance_m > 100.0, np.inf, 90.0)
"""


def test_a_device_that_no_sector_reaches_has_none_in_the_table(tmp_path):
    """It had sector 0, and its distance to the site of that, wherever it was."""
    (tmp_path / "near.py").write_text(NEAR, encoding="utf-8")
    (tmp_path / "sites.yaml").write_text(SITES, encoding="utf-8")
    setup = set_up(load(tmp_path / "sites.yaml"), allow_code=True)
    table = pd.read_csv(StringIO(devices_csv(setup)))
    away = (setup.channel.couplings.gain == 0.0).all(axis=1)
    assert 0 < away.sum() < len(table) and setup.channel.couplings.serving.min() >= 0
    assert (table["sector"] == -1).tolist() == away.tolist()
    assert table["distance_m"].isna().tolist() == away.tolist()
    assert (table["rate_bps"] == 0.0).tolist() == away.tolist()
    assert table["path_gain_db"][away].tolist() == [-np.inf] * away.sum()


def test_a_device_with_a_trace_is_where_that_has_it_at_the_start(tmp_path):
    """The columns were there with a position only."""
    trace = "device,time_s,x_m,y_m\n0,0,20,-15\n0,20,220,0\n1,0,0,40\n"
    (tmp_path / "walk.csv").write_text(trace, encoding="utf-8")
    one = SITES.replace("kind: hex, rings: 1, sectors: 1, isd: 300 m", "kind: single")
    loss = "model: log-distance, reference_loss: 40 dB, exponent: 3"
    one = one.replace('model: code, code: "./near.py:near"', loss)
    moving = one.replace("count: 12,", "count: 2, mobility: {trace: walk.csv, end: hold},")
    (tmp_path / "one.yaml").write_text(moving, encoding="utf-8")
    table = pd.read_csv(StringIO(devices_csv(set_up(load(tmp_path / "one.yaml")))))
    assert table[["x_m", "y_m", "distance_m"]].to_numpy().tolist() == [[20, -15, 25], [0, 40, 40]]
