"""A sweep over a network by two workers gives the bytes of its runs one by one."""

import subprocess
import sys
from pathlib import Path

import pytest

from edgesim import simulate
from edgesim.scenario import load

ROOT = Path(__file__).parents[3]
NETWORK = ROOT / "scenarios" / "network.yaml"
TIMING = ["learning.dataset=none", "learning.partition=none", "rounds=2", "devices.0.count=9"]
CHANGES = [*TIMING, "network.layout={kind: hex, rings: 0}"]
FILES = ("rounds.csv", "device_rounds.parquet", "spans.parquet", "summary.json")


@pytest.mark.slow
def test_a_network_has_the_same_bytes_by_two_workers_as_alone(tmp_path):
    command = [sys.executable, "-m", "edgesim", "sweep", str(NETWORK), *CHANGES, "--seeds", "0,1"]
    command += ["--workers", "2", "--out", str(tmp_path / "swept"), "-q"]
    subprocess.run(command, cwd=ROOT, check=True, timeout=600)
    points = sorted(path.parent for path in (tmp_path / "swept").glob("**/rounds.csv"))
    assert len({(point / "rounds.csv").read_bytes() for point in points}) == 2
    for seed, point in enumerate(points):
        alone = simulate(load(NETWORK, [*CHANGES, f"seed={seed}"]), out=tmp_path / str(seed))
        for name in FILES:
            assert (alone.folder / name).read_bytes() == (point / name).read_bytes(), name
