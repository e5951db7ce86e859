"""Every method on an accelerator: the same bytes each time, the CPU's numbers but for rounding."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from edgesim import load, simulate
from fl.methods import available
from tests.golden.scenario_texts import EIGHT
from tests.test_every_method import PARAMS, TABLES, WIDER_BAND

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no accelerator"),
]
ACCELERATOR = "cuda:0"
# A mask that is drawn with probability theta differs where rounding moves theta across the draw.
DRAWS_BY_WEIGHTS = ["fedpm"]


@pytest.mark.parametrize("name", available())
def test_twice_the_same_bytes_and_the_numbers_of_the_cpu(tmp_path, name):
    path = tmp_path / "eight.yaml"
    path.write_text(EIGHT)
    params = ", ".join(f"{key}: {value}" for key, value in PARAMS.get(name, {"lr": 0.05}).items())
    changes = [f"learning.method={{name: {name}, {params}}}", "rounds=3"]
    changes += ["learning.samples_per_device=20", *WIDER_BAND.get(name, ())]

    def run(folder, device):
        scenario = load(path, [*changes, f"learning.device={device}"])
        return simulate(scenario, out=tmp_path / folder)

    cpu, one, other = run("cpu", "cpu"), run("one", ACCELERATOR), run("other", ACCELERATOR)
    after = run("after", "cpu")  # the accelerator's settings leave the CPU alone
    for table in TABLES:
        assert (one.folder / table).read_bytes() == (other.folder / table).read_bytes(), table
        assert (cpu.folder / table).read_bytes() == (after.folder / table).read_bytes(), table
    if name in DRAWS_BY_WEIGHTS:
        assert one.rounds.latency_s.to_numpy() == pytest.approx(cpu.rounds.latency_s, rel=0.05)
        return
    for column in ("latency_s", "bits_up", "bits_down", "flops"):
        assert (one.rounds[column] == cpu.rounds[column]).all(), column
    assert np.allclose(one.rounds.loss, cpu.rounds.loss, rtol=1e-6)
    assert (one.rounds.accuracy == cpu.rounds.accuracy).all()
