"""Whole runs on the embedded digits: every method, both clocks, determinism, kill -9, the promises on real training."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import simpy

from edgesim import load, simulate
from edgesim.errors import InfeasibleScenarioError, RunError, ScenarioError
from edgesim.runs.setup import set_up

ROOT = Path(__file__).parent.parent
SCENARIO = """
name: tiny
rounds: 3
network:
  bandwidth: 1.5 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: [95 dB, 100 dB, 104 dB, 107 dB]}}
devices:
  - {count: 4, tx_power: 23 dBm, cpu: {frequency: {uniform: [1 GHz, 3 GHz]}, cycles_per_weight: 100}, idle_power: 0.1 W}
budget: {latency_threshold: 20 ms}
learning:
  dataset: digits
  partition: {kind: labels, labels_per_device: 3}
  samples_per_device: 60
  model: digits-cnn
  batch_size: 10
  method: {name: liu, personal_lr: 0.05, global_lr: 0.05}
"""
TABLES = (
    "rounds.csv",
    "device_rounds.parquet",
    "spans.parquet",
    "scores.parquet",
    "measures.csv",
    "summary.json",
)
TABLES += ("model.safetensors", "trace.json")
METHODS = {
    "fedavg": ["learning.method={name: fedavg, lr: 0.05}", "allocation.solver=equal"],
    "fedalt": [
        "learning.method={name: fedalt, personal_lr: 0.05, global_lr: 0.05}",
        "allocation.solver=equal",
    ],
    "fedsim": [
        "learning.method={name: fedsim, personal_lr: 0.05, global_lr: 0.05}",
        "allocation.solver=equal",
    ],
    "pruning-only": ["learning.method={name: pruning-only, lr: 0.05}"],
    "liu": [],
    "liu-sim": ["learning.method.update=simultaneous"],
    "liu-equal": ["allocation.solver=equal"],
    "liu-convex": ["allocation.solver=convex"],
}


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(SCENARIO)
    return path


def liu_28(setup, row) -> float:
    """Finish time of one row of device_rounds by Liu, eq. (28): (24) + (25), written out with the paper's symbols."""
    k, rho = int(row.device), row.rho
    p, steps = setup.scenario.learning.method.params, 5
    weights = setup.method.weights()
    n_u, n_v = weights["global"], weights["personal"]
    c, f = setup.fleet.cycles_per_weight[k], setup.fleet.cpu_hz[k]
    t_cmp = (
        steps * c * n_v / f
        + p.get("warmup_steps", 1) * c * n_u / f
        + (1 - rho) * steps * c * n_u / f
    )
    snr = setup.channel.path_gain[k] * setup.fleet.tx_power_w[k] / setup.channel.noise_w
    rate = row.share * setup.channel.bandwidth_hz * math.log2(1 + snr)
    return t_cmp + (32 * (1 - rho) * n_u / rate if rho < 1 else 0.0)


def test_promise_1_simulated_finish_is_liu_28(tiny):
    scenario = load(tiny)
    run, setup = simulate(scenario), set_up(scenario)
    rows = list(run.device_rounds.itertuples())
    assert len(rows) == 12
    between = 0
    for row in rows:
        assert row.finish_s == pytest.approx(liu_28(setup, row), rel=1e-9)
        if 0 < row.rho < 1:
            between += 1
            assert row.finish_s == pytest.approx(20e-3, rel=1e-9)
    assert between >= 6
    assert run.rounds.latency_s.to_numpy() == pytest.approx(20e-3, rel=1e-9)


@pytest.mark.parametrize("clock", ["synchronous", "deadline"])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs_under_every_clock(tiny, name, clock):
    run = simulate(load(tiny, [*METHODS[name], f"clock.mode={clock}"]))
    rounds, rows, spans = run.rounds, run.device_rounds, run.spans
    assert len(rounds) == 3
    assert len(rows) == 12
    assert rounds.accuracy.between(0, 1).all()
    assert rounds.loss.gt(0).all()
    assert (rounds.selected == 4).all()
    assert rounds.bits_up.to_numpy() == pytest.approx(
        rows.groupby("round").bits_up.sum().to_numpy(), rel=1e-12
    )
    assert rounds.energy_j.sum() == pytest.approx(spans.energy_j.sum(), rel=1e-12)
    assert np.diff([0, *rounds.time_s]) == pytest.approx(rounds.latency_s.to_numpy(), rel=1e-9)
    if clock == "deadline":
        assert (rounds.latency_s <= 20e-3 * (1 + 2e-6)).all()
        assert ((rows.status == "late") == rows.finish_s.isna()).all()
    else:
        assert (rounds.arrived == 4).all()
        assert rounds.latency_s.to_numpy() == pytest.approx(
            rows.groupby("round").finish_s.max().to_numpy(), rel=1e-9
        )


def test_learning_learns(tiny):
    options = ["rounds=40", "learning.method.lr=0.3", "evaluate.every=10", "learning.model=mlp"]
    run = simulate(load(tiny, [*METHODS["fedavg"], *options]))
    scored = run.rounds.accuracy.dropna()
    assert list(scored.index) == [9, 19, 29, 39]
    assert scored.iloc[-1] > 0.75
    assert run.summary["final_accuracy"] == scored.iloc[-1]


def test_the_last_round_is_always_evaluated(tiny):
    run = simulate(load(tiny, ["evaluate.every=2"]))
    assert run.rounds.accuracy.notna().tolist() == [False, True, True]


def test_rates_that_change_during_an_upload_move_the_latency_away_from_the_plan(tiny):
    fading = "network.channel.fading={kind: rayleigh, coherence: 5 ms}"
    latencies = simulate(load(tiny, [fading, "rounds=8", "evaluate.every=8"])).rounds.latency_s
    assert (abs(latencies / 20e-3 - 1) > 1e-3).all()


def test_late_devices_keep_their_personal_part(tiny):
    """FedAlt at the deadline: the slow upload is lost, the trained personal weights are not."""
    options = [*METHODS["fedalt"], "clock.mode=deadline", "rounds=1", "network.bandwidth=1 MHz"]
    scenario = load(tiny, options)
    assert (simulate(scenario).device_rounds.status == "late").all()
    setup = set_up(scenario)
    from edgesim.runs.run import run_rounds

    states = []
    keep_state = type("Keep", (), {"save": lambda self, *a: states.append(a)})()
    keep_state.path = tiny.parent / "late"
    keep_state.path.mkdir()
    run_rounds(setup, keep_state, None, None, [])
    arrays = states[-1][2]
    start = setup.method.start()
    assert np.array_equal(arrays["w"], start.w.numpy())  # nothing was aggregated
    initial = start.w[setup.method.personal_index].numpy()
    for k in range(4):
        assert not np.array_equal(arrays[f"local/{k}"], initial)


def digest_of(folder: Path) -> dict[str, bytes]:
    return {
        name: (folder / name).read_bytes()
        for name in (*TABLES, "scenario.yaml", "partition.json", "devices.csv")
    }


def test_promise_4_same_seed_same_bytes(tiny, tmp_path):
    scenario = load(tiny)
    one, two, other = (
        simulate(scenario, seed=s, out=tmp_path / n) for s, n in ((1, "a"), (1, "b"), (2, "c"))
    )
    assert digest_of(one.folder) == digest_of(two.folder)
    assert (one.folder / "rounds.csv").read_bytes() != (other.folder / "rounds.csv").read_bytes()
    json.loads((one.folder / "trace.json").read_text())


COMMAND = (sys.executable, "-m", "edgesim", "run")


@pytest.mark.parametrize("kills", [1, 3])
def test_promise_7_kill_dash_nine_and_the_same_command(tiny, tmp_path, kills):
    """SIGKILL somewhere in a run, again and again; the same command ends with the bytes of an undisturbed run."""
    options = ["rounds=60", "network.channel.fading={kind: rayleigh, coherence: 7 ms}"]
    whole = simulate(load(tiny, options), out=tmp_path / "whole")
    command = [*COMMAND, str(tiny), *options, "--out", str(tmp_path / "killed"), "--quiet"]
    state = tmp_path / "killed" / "checkpoint" / "state.safetensors"
    seen = 0
    for _ in range(kills):
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        begun = rounds_done(state)
        while process.poll() is None and rounds_done(state) < begun + 5:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
        seen = rounds_done(state)
        assert begun < seen < 60
    assert not (tmp_path / "killed" / "summary.json").exists()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    assert digest_of(tmp_path / "killed") == digest_of(whole.folder)


def rounds_done(state: Path) -> int:
    """Rounds in the last checkpoint: read from the header that the run itself wrote."""
    try:
        head = state.read_bytes()
    except FileNotFoundError:
        return 0
    size = int.from_bytes(head[:8], "little")
    return json.loads(json.loads(head[8 : 8 + size])["__metadata__"]["facts"])["g"] + 1


def test_a_finished_run_is_not_computed_again(tiny, tmp_path):
    out = tmp_path / "out"
    first = simulate(load(tiny), out=out)
    before = {path: os.stat(path).st_mtime_ns for path in out.rglob("*") if path.is_file()}
    again = simulate(load(tiny), out=out, progress=lambda event: pytest.fail("computed again"))
    assert again.summary == first.summary
    assert again.rounds.equals(first.rounds)
    assert {path: os.stat(path).st_mtime_ns for path in out.rglob("*") if path.is_file()} == before


@pytest.mark.needs_data
@pytest.mark.parametrize("dataset", ["mnist", "fashion-mnist"])
def test_liu_scenario_on_the_real_data(dataset):
    """Table I in the calibrated reading: 25 ms for the joint method, about 55 ms without pruning."""
    if not os.environ.get("EDGESIM_DATA"):
        pytest.skip("EDGESIM_DATA does not point to the data files")
    options = [
        f"learning.dataset={dataset}",
        "rounds=1",
        "learning.batch_size=8",
        "learning.samples_per_device=50",
    ]
    runs = {
        label: simulate(
            load(ROOT / "scenarios" / "liu-20mhz-per-device.yaml", options, label=label)
        )
        for label in ("joint", "personalization only")
    }
    joint, personal = runs["joint"], runs["personalization only"]
    assert joint.rounds.latency_s[0] == pytest.approx(25e-3, rel=1e-9)
    assert personal.rounds.latency_s[0] == pytest.approx(55e-3, rel=0.01)
    assert 0.45 < joint.rounds.rho_mean[0] < 0.65
    assert joint.rounds.bits_up[0] / personal.rounds.bits_up[0] == pytest.approx(
        1 - joint.rounds.rho_mean[0], rel=1e-9
    )
    assert joint.summary["weights"] == {"total": 454922, "global": 402826, "personal": 52096}


def test_a_run_that_diverges_says_so_and_ends(tiny, tmp_path):
    scenario = load(tiny, ["learning.method={name: fedavg, lr: 1.0e+6}", "allocation.solver=equal"])
    run = simulate(scenario, out=tmp_path / "o")
    assert np.isinf(run.rounds.loss.iloc[-1])
    assert run.rounds.accuracy.iloc[-1] < 0.5
    summary = json.loads((run.folder / "summary.json").read_text())
    assert summary["final_loss"] is None
    assert simulate(scenario, out=tmp_path / "o").summary == summary


def test_other_data_is_another_run(tiny, tmp_path):
    """The same scenario on data files that differ in one pixel is not taken for the finished run."""
    import struct

    folders = []
    for name, pixel in (("a", 0), ("b", 255)):
        folder = tmp_path / name / "mnist"
        folder.mkdir(parents=True)
        for part, count in (("train", 60), ("t10k", 20)):
            images = np.random.default_rng(0).integers(0, 255, (count, 28, 28), dtype=np.uint8)
            images[0, 0, 0] = pixel
            labels = np.arange(count, dtype=np.uint8) % 10
            (folder / f"{part}-images-idx3-ubyte").write_bytes(
                struct.pack(">IIII", 2051, count, 28, 28) + images.tobytes()
            )
            (folder / f"{part}-labels-idx1-ubyte").write_bytes(
                struct.pack(">II", 2049, count) + labels.tobytes()
            )
        folders.append(folder.parent)
    options = [
        "learning.dataset=mnist",
        "learning.model=mlp",
        "learning.samples_per_device=none",
        "rounds=1",
    ]
    scenario = load(tiny, options)
    simulate(scenario, data=folders[0], out=tmp_path / "out")
    simulate(
        scenario,
        data=folders[0],
        out=tmp_path / "out",
        progress=lambda event: pytest.fail("computed again"),
    )
    with pytest.raises(RunError, match="holds another run"):
        simulate(scenario, data=folders[1], out=tmp_path / "out")


def test_devices_out_of_reach_are_named(tiny):
    scenario = load(
        tiny,
        [
            "network.channel.path_loss={model: log-distance, reference_loss: 900 dB, exponent: 10}",
            "devices.0.distance=1e300 m",
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
            "devices.0.distance=1e-200 m",
        ],
    )
    with pytest.raises(RunError, match="device 0 give a gain of inf"):
        simulate(odd)


def test_a_device_more_moves_nobody_elses_lot(tiny):
    def chosen(count: int) -> list:
        change = [
            f"devices.0.count={count}",
            "network.channel.path_loss.loss=100 dB",
            "learning.samples_per_device=40",
        ]
        setup = set_up(load(tiny, [*METHODS["fedavg"], "learning.method.participants=3", *change]))
        cell = setup.cell(simpy.Environment())
        return [set(setup.method.select(None, cell.view(g)).tolist()) for g in range(20)]

    few, many = chosen(6), chosen(7)
    assert any(6 in m for m in many)
    for before, after in zip(few, many, strict=True):
        assert len(before) == len(after) == 3
        assert after - before <= {6}


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
    "learning.partition={kind: labels, labels_per_device: 11}": "learning.partition: labels_per_device is 11",
    "learning.dataset=digit": "learning.dataset: there is no data set",
    "learning.model=mpl": "learning.model: there is no model",
    "learning.method={name: FedAvg}": "learning.method.name is",
    "learning.method={name: fjord, levels: [0.5, 2]}": "learning.method.levels is .*a list of numbers > 0 and <= 1",
    "learning.method={name: fjord, levels: [0.5, [1]]}": "learning.method.levels.*a list; write a number, a list",
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


def test_a_finished_folder_that_lost_a_file_gets_it_back(tiny, tmp_path):
    out = tmp_path / "out"
    simulate(load(tiny), out=out)
    before = digest_of(out)
    (out / "spans.parquet").unlink()
    (out / "model.safetensors").unlink()
    simulate(load(tiny), out=out)
    assert digest_of(out) == before
    (out / "summary.json").write_text("{")
    with pytest.raises(RunError, match=r"summary.json is damaged .* use --fresh"):
        simulate(load(tiny), out=out)


def test_fresh_keeps_a_finished_run_until_the_new_one_can_begin(tiny, tmp_path):
    out = tmp_path / "out"
    simulate(load(tiny), out=out)
    before = digest_of(out)
    with pytest.raises(ScenarioError, match="torch cannot use"):
        simulate(load(tiny, ["learning.device=cuda:77"]), out=out, fresh=True)
    assert digest_of(out) == before
    (out / "checkpoint" / "state.safetensors").unlink()
    simulate(load(tiny), out=out)
    assert digest_of(out) == before


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
    """FedAvg with kkt behind a broadcast longer than T_th: check's least threshold is feasible, a bit less is not."""
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
