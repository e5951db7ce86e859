"""Whole runs: the promises of the README."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
import simpy

from edgesim import load, simulate
from edgesim.runs.setup import set_up

ROOT = Path(__file__).parent.parent

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


def liu_28(setup, row) -> float:
    """Finish time of one row of device_rounds by Liu, eq. (28): (24) + (25), written out with the
    paper's symbols.
    """
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    from edgesim.runs.prepared_run import run_rounds

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


@pytest.mark.slow
def test_promise_4_same_seed_same_bytes(tiny, tmp_path, bytes_of):
    scenario = load(tiny)
    one, two, other = (
        simulate(scenario, seed=s, out=tmp_path / n) for s, n in ((1, "a"), (1, "b"), (2, "c"))
    )
    assert bytes_of(one.folder) == bytes_of(two.folder)
    assert (one.folder / "rounds.csv").read_bytes() != (other.folder / "rounds.csv").read_bytes()
    json.loads((one.folder / "trace.json").read_text())


@pytest.mark.slow
@pytest.mark.needs_data
@pytest.mark.parametrize("dataset", ["mnist", "fashion-mnist"])
def test_liu_scenario_on_the_real_data(dataset):
    """Liu, Table I, 20 MHz per device: 25 ms for the joint method, 54.85 without pruning."""
    if not os.environ.get("EDGESIM_DATA"):
        pytest.skip("EDGESIM_DATA does not point to the data files")
    options = [
        f"learning.dataset={dataset}",
        "rounds=1",
        "learning.batch_size=8",
        "learning.samples_per_device=50",
    ]
    file = ROOT / "scenarios" / "liu-20mhz-per-device.yaml"
    joint = simulate(load(file, options, label="joint"))
    timing = [*options, "learning.dataset=none", "learning.partition=none"]
    personal = simulate(load(file, timing, label="personalization only"))
    assert joint.rounds.latency_s[0] == pytest.approx(25e-3, rel=1e-9)
    # 32 x 402,826 bit at 20 MHz x log2(1 + 10^3.8), and 25 x 454,922 cycles at 3 GHz
    assert personal.rounds.latency_s[0] == pytest.approx(51.0571e-3 + 3.7910e-3, abs=1e-7)
    lossless = ["network.bandwidth=20 MHz", "network.channel.path_loss.loss=0 dB"]
    shared = simulate(load(file, [*timing, *lossless], label="personalization only"))
    # 2 MHz x log2(1 + 10^13.8) each: ten devices cannot share 20 MHz and send in the paper's 55 ms
    assert shared.rounds.latency_s[0] == pytest.approx(140.5944e-3 + 3.7910e-3, abs=1e-7)
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
