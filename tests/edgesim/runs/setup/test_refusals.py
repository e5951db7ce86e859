"""What a run refuses, and what it says of devices that cannot take part."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from edgesim import load, simulate
from edgesim.errors import InfeasibleScenarioError, RunError, ScenarioError

ROOT = Path(__file__).parents[4]


def test_devices_out_of_reach_are_named(tiny):
    scenario = load(
        tiny,
        [
            "network.channel.path_loss={model: log-distance, reference_loss: 900 dB, exponent: 10}",
            "devices.0.distance=1e49 m",
        ],
    )
    with pytest.raises(
        InfeasibleScenarioError, match=r"4 of 4 devices .* are out of reach: their rate is 0 bit/s"
    ):
        simulate(scenario)
    odd = load(
        tiny,
        [
            "network.channel.path_loss={model: log-distance, reference_loss: 0 dB, exponent: 10}",
            "devices.0.distance=1e-49 m",
        ],
    )
    with pytest.raises(ScenarioError, match="gives device 0 a gain of inf"):
        simulate(odd)


def test_an_unknown_solver_is_answered_by_the_nearest_one(tiny):
    with pytest.raises(ScenarioError, match=r'is KKKT; allowed are kkt, .*; did you mean "kkt"\?'):
        simulate(load(tiny, ["allocation.solver=KKKT"]))


AT_THE_SITE = "devices.0.position={list: [[0 m, 1 m], [0 m, 2 m], [0 m, 0 m], [0 m, 3 m]]}"
WALK = "device,time_s,x_m,y_m\n0,0,0,-2\n0,0.5,0,2\n1,0,0,3\n2,0,0,3\n3,0,0,3\n"


@pytest.mark.parametrize(
    "changes",
    [
        [AT_THE_SITE],
        [
            AT_THE_SITE,
            "network.layout={kind: sites, position: {list: [[0 m, 0 m]]}}",
            "network.noise=-169 dBm/Hz",
        ],
        [
            "devices.0.mobility={trace: walk.csv, end: hold}",
            "network.channel.refresh=50 ms",
            "rounds=500",
        ],
    ],
    ids=["cell", "sites", "walk"],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_device_where_the_base_station_stands_has_no_path_loss(tiny, changes):
    (tiny.parent / "walk.csv").write_text(WALK)
    loss = "network.channel.path_loss={model: log-distance, reference_loss: 40 dB, exponent: 3}"
    with pytest.raises(ScenarioError, match="path_loss is log-distance, which has no loss at 0 m"):
        simulate(load(tiny, [loss, *changes]))


def test_infeasible_schemes_stop_the_command_before_anything_runs(tmp_path):
    from typer.testing import CliRunner

    from edgesim.cli.app import app

    demo, out = str(ROOT / "scenarios" / "demo.yaml"), tmp_path / "out"
    result = CliRunner().invoke(
        app, ["run", demo, "budget.latency_threshold=0.1 ms", "--out", str(out)]
    )
    assert result.exit_code == 3
    assert "joint: 10 of 10 devices cannot take part" in result.output
    assert (
        "nothing was run; --only runs one scheme of personalization only, fedavg" in result.output
    )
    assert not out.exists()


WRONG = {
    "learning.device=banana": "learning.device is banana",
    "learning.device=cuda:7": "learning.device is cuda:7",
    "learning.method.personal_lr=1e300": "learning.method.personal_lr is 1e",
    "learning.partition={kind: labels, labels_per_device: 11}": "learning.partition: labels_per_device is 11",  # noqa: E501
    "learning.dataset=digit": "learning.dataset: there is no data set",
    "learning.dataset=fold": "data of yours are ./folder, file.npz or ./file.py:function",
    "learning.model=mpl": "learning.model: there is no model",
    "learning.model=./net.py": r"vit; a model of yours is ./file.py:name\)",
    "learning.method={name: FedAvg}": "learning.method.name is",
    "learning.method={name: fjord, levels: [0.5, 2]}": "learning.method.levels is .*a list of numbers > 0 and <= 1",  # noqa: E501
    "learning.method={name: fjord, levels: [0.5, [1]]}": "learning.method.levels.*a list; write a number, a list",  # noqa: E501
    "devices.0.count=10000000": "cannot|too few|values",
}


@pytest.mark.parametrize("change", WRONG)
def test_what_only_other_rooms_know_is_refused_with_its_key(tiny, tmp_path, change):
    from typer.testing import CliRunner

    from edgesim.cli.app import app

    out = tmp_path / "out"
    more = ["network.channel.path_loss.loss=100 dB"]
    result = CliRunner().invoke(app, ["run", str(tiny), *more, change, "--out", str(out)])
    assert result.exit_code == 2, result.output
    assert re.search(WRONG[change], result.output), result.output
    assert len(result.output.strip().splitlines()) == 1
    assert "command line: learning" in result.output or "count" in change
    assert not out.exists()


def test_damaged_images_are_said_before_anything_is_written(tiny, tmp_path):
    import gzip
    import struct

    folder = tmp_path / "mnist"
    folder.mkdir()
    for part, count in (("train", 60), ("t10k", 20)):
        images = np.random.default_rng(0).integers(0, 255, (count, 28, 28), dtype=np.uint8)
        packed = bytearray(
            gzip.compress(struct.pack(">IIII", 2051, count, 28, 28) + images.tobytes())
        )
        packed[len(packed) // 2 : len(packed) // 2 + 400] = bytes(400)
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(packed)
        labels = struct.pack(">II", 2049, count) + bytes(i % 10 for i in range(count))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(labels)
    options = ["learning.dataset=mnist", "learning.model=mlp", "learning.samples_per_device=none"]
    with pytest.raises(RunError, match=r"train-images-idx3-ubyte.gz cannot be read"):
        simulate(load(tiny, options), data=tmp_path, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_stop_refuses_in_check_what_it_refuses_in_run(tiny, tmp_path):
    from edgesim.runs.run import feasibility

    scenario = load(tiny, ["learning.method.rho_max=0.1", "allocation.when_infeasible=stop"])
    table = feasibility(scenario)
    assert not table.feasible
    assert "or write allocation.when_infeasible: stretch" in table.note
    assert table.warnings == []
    with pytest.raises(InfeasibleScenarioError, match="or write allocation"):
        simulate(scenario, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_threshold_that_a_slow_broadcast_needs_is_the_one_that_works(tiny):
    """FedAvg with kkt behind a broadcast longer than T_th: check's least threshold is feasible, a
    bit less is not.
    """
    from edgesim.runs.run import feasibility

    slow = "network.downlink={mode: broadcast, tx_power: 20 dBm, bandwidth: 20 kHz}"
    options = ["learning.method={name: fedavg}", slow]
    table = feasibility(load(tiny, options))
    least_ms = max(row["planned_ms"] for row in table.rows)
    assert f"planned for {least_ms:.6g} ms" in table.warnings[0]

    def stops(factor):
        stop = [
            "allocation.when_infeasible=stop",
            f"budget.latency_threshold={float(least_ms * factor)!r} ms",
        ]
        return not feasibility(load(tiny, [*options, *stop])).feasible

    assert stops(1 - 1e-6)
    assert not stops(1 + 1e-6)
