"""Modulation and coding schemes, their thresholds and power control beside Sionna 2.2."""

import json
from pathlib import Path

import numpy as np
import pytest

from edgesim.network.adaptation.link_adaptation import LEAST_DB, TABLES
from edgesim.network.adaptation.power_control import PowerControl

WIDTH_DB = 0.15  # of a block error curve, between those of 1000 bit (0.2) and of 2000 bit (0.1)
pytestmark = pytest.mark.slow  # importing it takes four seconds


@pytest.fixture(scope="module")
def sionna():
    why = "sionna is not installed: pip install 'edgesim[oracles]'"
    found = pytest.importorskip("sionna", reason=why, exc_type=ImportError)
    pytest.importorskip("sionna.sys", reason=why, exc_type=ImportError)
    return found


def scheme(sionna, index, table, uplink=False):
    """(Qm, 1024 R) as Sionna decodes an index of TS 38.214; uplink: with transform precoding."""
    import torch
    from sionna.phy.nr.utils import decode_mcs_index

    qm, rate = decode_mcs_index(
        torch.tensor(index), torch.tensor(table), is_pusch=uplink, transform_precoding=uplink
    )
    return int(qm), round(float(rate) * 1024, 1)


@pytest.mark.parametrize(("table", "name"), [(1, "64qam"), (2, "256qam")])
def test_schemes(sionna, table, name):
    rows = [(qm, float(rate)) for qm, rates in TABLES[name].items() for rate in rates]
    assert [scheme(sionna, index, table) for index in range(len(rows))] == rows


@pytest.mark.parametrize(
    ("name", "category", "table"),
    [("PDSCH_table1", "1", 1), ("PDSCH_table2", "1", 2), ("PUSCH_table1", "0", 1)],
)
def test_thresholds(sionna, name, category, table):
    """Sionna's curves have a point every 1.6 to 1.8 dB; those in the fall tell where it is."""
    file = Path(sionna.__file__).parent / "sys" / "bler_tables" / f"{name}.json"
    curves = json.loads(file.read_text())["category"][category]["index"][str(table)]["MCS"]
    wrong_db = []
    for index, curve in curves.items():
        qm, rate = scheme(sionna, int(index), table, uplink=category == "0")
        for bits in ("1000", "2000"):
            error = np.array(curve["CBS"][bits]["BLER"])
            falls = (error > 0.02) & (error < 0.98)
            half_db = np.array(curve["SNR_db"])[falls] - WIDTH_DB * np.log(1 / error[falls] - 1)
            wrong_db += list(half_db + WIDTH_DB * np.log(9) - LEAST_DB[qm][rate])
    assert len(wrong_db) >= 30
    assert abs(np.mean(wrong_db)) < 0.06 and np.std(wrong_db) < 0.2
    assert np.abs(wrong_db).max() < 0.6


def test_power_control_on_blocks_of_15_khz(sionna):
    """Sionna leaves 2^mu out, which is 1 here."""
    import torch

    loss_db = np.linspace(60.0, 150.0, 19)
    blocks = torch.full((19,), 10 * 12)
    control = sionna.sys.open_loop_uplink_power_control
    found_w = control(torch.tensor(10 ** (loss_db / 10)), blocks, 0.8, -85.0, 23.0, "double")
    ours = PowerControl(p0_w=10**-11.5, alpha=0.8)
    ours_w = ours.sent_w(1.8e6, 10**-0.7, 10 ** (-loss_db / 10))
    np.testing.assert_allclose(ours_w, found_w.numpy(), rtol=1e-9)
    assert 0 < (ours_w < 10**-0.7).sum() < 19
