"""Folders of runs with tiers: resumed with the same bytes, verified, reported."""

from __future__ import annotations

import pandas as pd
import pytest

from edgesim import simulate
from edgesim.records.run_tables.table_files import csv_text
from edgesim.runs.continuation import kept_lengths
from edgesim.runs.setup import set_up
from edgesim.verification.check_result import FAILED, PASSED, SKIPPED
from edgesim.verification.verify import check_run
from tests.edgesim.hierarchy.conftest import ONE, TWO
from tests.edgesim.resumed_runs import KilledError, assert_resumed, killed_after

FILES = (
    *("rounds.csv", "device_rounds.parquet", "spans.parquet", "scores.parquet", "measures.csv"),
    *("backhaul.csv", "summary.json", "model.safetensors", "devices.csv", "trace.json"),
)
BACKHAUL = "backhaul: {rate: 50 Mbit/s, delay: 1 ms, energy_per_bit: 1 nJ}"
TIERS = f"{TWO[:-1]}, local_rounds: 2, {BACKHAUL}}}"
UNEVEN = (
    "network.channel.fading={kind: rayleigh, coherence: 2 ms}",
    "devices.0.failure_rate=20 Hz",
    "devices.0.availability=0.8",
    "devices.0.receive_power=0.1 W",
    "network.downlink={mode: broadcast, tx_power: 30 dBm}",
)
METHODS = {
    "fedavg": "{name: fedavg, lr: 0.05}",
    "liu": "{name: liu, personal_lr: 0.05, global_lr: 0.05}",
    "liu by (19)": "{name: liu, importance: exact, rho: 0.5, personal_lr: 0.05, global_lr: 0.05}",
    "scaffold": "{name: scaffold, lr: 0.05}",
    "fedlps": "{name: fedlps, lr: 0.05}",
    "fedmp": "{name: fedmp, lr: 0.05}",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    ["fedavg", "liu", *(pytest.param(n, marks=pytest.mark.slow) for n in list(METHODS)[2:])],
)
def test_killed_after_a_round_it_goes_on_with_the_same_bytes(scenario, tmp_path, method):
    given = scenario(f"learning.method={METHODS[method]}", TIERS, *UNEVEN)
    assert_resumed(given, tmp_path, (0, 1), FILES)


@pytest.mark.parametrize("own", ["", ", bandwidth: 8 MHz"])
@pytest.mark.parametrize(("mode", "sharers"), [("broadcast", 1), ("unicast", 2)])
def test_the_band_of_an_edge_is_that_of_its_downlink_too(scenario, mode, sharers, own):
    """10 dBm over at most 99 dB and noise of -110 dBm: 2 MHz x log2(1 + 10^2.1), 14.0 Mbit/s."""
    tiers = "tiers={edges: [{}, {bandwidth: 2 MHz}], association: list, members: [0, 1, 0, 1]}"
    alike = "network.channel.path_loss={model: constant, loss: 99 dB}"
    down = f"network.downlink={{mode: {mode}, tx_power: 10 dBm{own}}}"
    timing = "learning={dataset: none, model: mlp, batch_size: 10, method: {name: fedavg}}"
    rows = simulate(scenario(tiers, alike, down, timing, "rounds=1")).device_rounds
    rate_bps = (rows.bits_down / rows.download_s).groupby(rows.device).first().to_numpy() * sharers
    first = 4e6 if not own else 8e6
    assert rate_bps / 6.987463 == pytest.approx([first, 2e6, first, 2e6], rel=1e-6)


LEVELS = """devices=[
  {count: 2, tx_power: 23 dBm, cpu: {frequency: 1 GHz, levels: [400 MHz, 1 GHz],
   governor: deadline, flops_per_cycle: 4}},
  {count: 2, tx_power: 23 dBm, cpu: {frequency: 2 GHz, levels: [800 MHz, 1.5 GHz, 2 GHz],
   governor: deadline, flops_per_cycle: 4}}]"""


def test_the_band_of_an_edge_fades_in_parts_of_four_blocks(scenario):
    """24 blocks of 360 kHz are the carrier's 8.64 MHz; 100 of them the 36 MHz of edge 1."""
    setup = set_up(
        scenario(
            "tiers={edges: [{}, {bandwidth: 36 MHz}], association: list, members: [0, 1, 0, 1]}",
            "network.carrier={frequency: 3.5 GHz, bandwidth: 10 MHz}",
            "network.bandwidth=8.64 MHz",
            "network.noise=-174 dBm/Hz",
            "network.channel.fading={kind: rayleigh, process: clarke, speed: 1 m/s, "
            "delay_spread: 300 ns}",
        )
    )
    assert [own.channel.fading.parts for own in setup.edges] == [6, 25]


@pytest.mark.parametrize("members", ["1, 1, 0, 0", "0, 1, 0, 1"])
def test_devices_of_edges_have_clocks_of_their_own(scenario, members):
    """20 s are plenty: each device has the lowest of its levels, and no other device's."""
    tiers = f"tiers={{edges: [{{}}, {{}}], association: list, members: [{members}]}}"
    timing = "learning={dataset: none, model: mlp, batch_size: 10, method: {name: fedavg}}"
    spans = simulate(scenario(tiers, LEVELS, timing, "rounds=1")).spans.query("cycles > 0")
    clock_hz = (spans.cycles / (spans.end_s - spans.start_s)).groupby(spans.device).first()
    assert clock_hz.to_numpy() == pytest.approx([4e8, 4e8, 8e8, 8e8], rel=1e-9)


FADES = (
    "learning={dataset: none, model: mlp, batch_size: 10, method: {name: pruning-only}}",
    "network.channel.fading={kind: rayleigh, coherence: 2 s}",
    "allocation={solver: kkt, rate: quantile, reliability: 0.9}",
)


@pytest.mark.slow
def test_every_edge_says_what_its_plans_promise(scenario, tmp_path):
    files = ("upload_forecasts.parquet", "summary.json")
    run = assert_resumed(scenario(TIERS, *FADES), tmp_path, [0], files)
    keys = ["round", "device", "edge", "edge_round"]
    planned = run.device_rounds[run.device_rounds.status != "infeasible"]
    assert len(planned.merge(run.upload_forecasts, on=keys)) == len(planned) == 4 * 2 * 3
    promised = run.upload_forecasts.late_probability
    assert run.summary["promised_late_share"] == pytest.approx(promised.mean()) and any(promised)
    checks = check_run(tmp_path / "whole", None, False)
    assert {each.outcome for each in checks} <= {PASSED, SKIPPED}


def test_one_edge_promises_what_the_cell_alone_does(scenario):
    alone, edge = (simulate(scenario(*changes, *FADES)) for changes in ((), (ONE,)))
    assert edge.upload_forecasts[alone.upload_forecasts.columns].equals(alone.upload_forecasts)


@pytest.mark.slow
def test_a_rule_of_selection_remembers_at_its_edge(scenario, tmp_path):
    given = scenario(TIERS, "learning.selection=power-of-choice", "learning.method.participants=1")
    run = assert_resumed(given, tmp_path, [0], ("device_rounds.parquet", "model.safetensors"))
    per_round = run.device_rounds.groupby(["round", "edge", "edge_round"]).size()
    assert len(per_round) == 12 and (per_round == 1).all()


@pytest.mark.slow
def test_a_run_ends_by_time_or_jobs(scenario, tmp_path):
    whole = simulate(scenario(TIERS))
    ends = whole.rounds.time_s.tolist()
    timed = simulate(scenario(TIERS, f"stop={{time: {1.5 * ends[0]} s}}"))
    assert timed.rounds.time_s.tolist() == ends[:2] and timed.rounds.accuracy.notna().all()
    by_jobs = scenario(TIERS, "stop={jobs: 9}")  # 8 a round of the cloud
    with pytest.raises(KilledError):
        simulate(by_jobs, out=tmp_path / "run", progress=killed_after(0))
    assert simulate(by_jobs, out=tmp_path / "run").rounds.time_s.tolist() == ends[:2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parameter", "of_20"),
    [("fedspa", "moving_rounds", 20), ("depthfl", "ramp_rounds", 6), ("fedlps", "xi", 5.0)],
)
def test_what_follows_from_the_length_of_a_run_counts_the_rounds_of_an_edge(
    scenario, name, parameter, of_20
):
    """A method sees kappa_2 = 5 rounds in each of four; xi is R / 4 devices."""
    five = f"learning.method={{name: {name}}}", "rounds=4", f"{TWO[:-1]}, local_rounds: 5}}"
    setup = set_up(scenario(*five))
    assert getattr(setup.method, parameter) == of_20
    (warning,) = kept_lengths(setup.with_rounds(8), 4)
    assert f"{parameter} stays {of_20:g}, as for 4 rounds" in warning
    assert warning.endswith(f"has {2 * of_20:g}")


def test_a_finished_run_can_be_made_longer(scenario, tmp_path):
    simulate(scenario(TIERS, "rounds=2"), out=tmp_path / "run")
    simulate(scenario(TIERS, "rounds=3"), out=tmp_path / "run")
    simulate(scenario(TIERS, "rounds=3"), out=tmp_path / "whole")
    for name in ("rounds.csv", "spans.parquet", "model.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.slow
def test_a_run_is_verified_and_plans_are_made_again(scenario, tmp_path):
    pruned = "learning.method={name: pruning-only, lr: 0.05}", "allocation.solver=kkt"
    given = scenario(*pruned, TIERS, "budget.latency_threshold=18 ms")
    run = simulate(given, out=tmp_path / "run")
    assert run.device_rounds.rho.max() > 0.0
    checks = {each.name: each for each in check_run(tmp_path / "run", None, False)}
    assert {each.outcome for each in checks.values()} == {PASSED}, checks
    assert "edge 1: 6 rounds planned again" in checks["allocations"].detail
    assert "edge 0: 12 uploads" in checks["finish, Liu (28)"].detail
    rows = pd.read_parquet(tmp_path / "run" / "device_rounds.parquet")
    rows.loc[3, "share"] *= 0.9
    rows.to_parquet(tmp_path / "run" / "device_rounds.parquet")
    outcomes = [each.outcome for each in check_run(tmp_path / "run", None, False)]
    assert FAILED in outcomes


@pytest.mark.slow
def test_the_tables_of_a_folder_are_those_of_the_run(scenario, tmp_path):
    run = simulate(scenario(TIERS), out=tmp_path / "run")
    assert (tmp_path / "run" / "backhaul.csv").read_text() == csv_text(run.log.columns("backhaul"))
    devices = pd.read_csv(tmp_path / "run" / "devices.csv")
    assert devices.edge.tolist() == [0, 1, 0, 1]
    assert run.summary["edges"] == 2 and run.summary["devices"] == 4
