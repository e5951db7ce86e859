"""Jobs that only count: columns give the bytes of a process per device."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import edgesim.runs.play_rounds
from edgesim import load, simulate
from edgesim.clocks.vectorised import version_loop
from edgesim.clocks.vectorised.relay import find_relay, first_free
from edgesim.records.event_log import EventLog
from fl.selection import selection_rules
from tests.edgesim.resumed_runs import assert_resumed

CELL = """
name: forty
rounds: 15
network:
  bandwidth: 40 MHz
  noise: -110 dBm
  channel: {path_loss: {model: log-distance, reference_loss: 38.5 dB, exponent: 3.5},
            shadowing: 4 dB}
devices:
  - {count: 40, tx_power: 23 dBm, idle_power: 0.1 W, distance: {uniform: [20 m, 120 m]},
     cpu: {frequency: {uniform: [100 MHz, 3 GHz]}, flops_per_cycle: 4}}
allocation: {solver: equal}
learning: {dataset: none, model: mlp, batch_size: 10, method: {name: fedavg}}
"""
BUFFERED = "clock={mode: buffered, in_flight: 12, buffer: 4}"
LIU = "learning.method={name: liu, personal_lr: 0.1, global_lr: 0.1}"
CASES = {
    "buffered": (BUFFERED,),
    "until used": ("clock={mode: buffered, in_flight: 12, buffer: 4, slot: until_used}",),
    "asynchronous": ("clock={mode: asynchronous, in_flight: 9, max_staleness: 8}", "rounds=40"),
    "window": ("clock={mode: window, window: 700 us, in_flight: 15}",),
    "threshold": (BUFFERED, LIU, "budget.latency_threshold=6 ms"),
    "availability": (BUFFERED, "devices.0.availability=0.3", "learning.selection=round-robin"),
    "capability": (BUFFERED, "devices.0.capability={choice: [1, 0.5]}",
                   "devices.0.capability_drawn=round"),
    "stale while they wait": ("clock={mode: asynchronous, in_flight: 9, max_staleness: 3}",
                              "devices.0.distance=60 m", "network.channel.shadowing=0 dB",
                              "devices.0.cpu.frequency=1 GHz"),
    "promises": (BUFFERED, LIU, "budget.latency_threshold=6 ms", "allocation.solver=kkt"),
    "left out": (BUFFERED, LIU, "budget.latency_threshold=6 ms", "rounds=25",
                 "devices.0.cpu.frequency={choice: [10 MHz, 3 GHz]}"),
    "ends at a tick": ("clock={mode: window, window: 500 us, max_staleness: 9}", LIU,
                       "budget.latency_threshold=6 ms", "allocation.solver=kkt"),
}  # fmt: skip
ONE_BY_ONE = {
    "buffered": ("clock={mode: buffered, in_flight: 12, buffer: 9}", "rounds=12"),
    "crowded": ("clock={mode: buffered, in_flight: 36, buffer: 20}", "rounds=6"),
    "alternating": ("clock={mode: buffered, in_flight: 2, buffer: 2}", "rounds=20"),
    "discarding": ("clock={mode: buffered, in_flight: 20, buffer: 5, max_staleness: 3}",),
    "equal": ("clock={mode: buffered, in_flight: 12, buffer: 10}", "rounds=10",
              "devices.0.distance=60 m", "network.channel.shadowing=0 dB",
              "devices.0.cpu.frequency={choice: [1 GHz, 17 MHz, 13 MHz, 11 MHz, 7 MHz, 3 MHz]}"),
}  # fmt: skip
TABLES = ("rounds.csv", "device_rounds.parquet", "spans.parquet", "summary.json")


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "forty.yaml"
    path.write_text(CELL)
    return lambda *changes: load(path, changes)


@pytest.fixture
def processes(monkeypatch):
    """Calling it makes further runs take a process per device."""
    always = lambda cell, clock, trained: True  # noqa: E731
    return lambda: monkeypatch.setattr(edgesim.runs.play_rounds, "needs_processes", always)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_tables_are_those_of_processes(scenario, processes, tmp_path, monkeypatch, case):
    given = scenario(*CASES[case])
    with monkeypatch.context() as counted:
        counted.setattr(EventLog, "span", None)  # no process is at work
        simulate(given, out=tmp_path / "columns")
    processes()
    simulate(given, out=tmp_path / "processes")
    for name in TABLES:
        column, process = (tmp_path / run / name for run in ("columns", "processes"))
        assert column.read_bytes() == process.read_bytes(), name


@pytest.mark.slow
@pytest.mark.parametrize("case", ONE_BY_ONE)
def test_jobs_that_are_handed_on_one_by_one_are_those_of_processes(
    scenario, processes, tmp_path, monkeypatch, case
):
    """In a cell of many devices, where a single one is drawn among candidates."""
    monkeypatch.setattr(selection_rules, "MANY", 10)
    relays = []

    def recorded(*given):
        relays.append(find_relay(*given))
        return relays[-1]

    monkeypatch.setattr(version_loop, "find_relay", recorded)
    given = scenario(*ONE_BY_ONE[case])
    simulate(given, out=tmp_path / "columns")
    processes()
    simulate(given, out=tmp_path / "processes")
    for name in TABLES:
        column, process = (tmp_path / run / name for run in ("columns", "processes"))
        assert column.read_bytes() == process.read_bytes(), name
    counts = [len(relay.grants) for relay in relays if relay]
    assert max(counts) > (1 if case == "alternating" else 3)  # several together


def test_the_first_free_candidate_is_asked_and_who_is_back_is_free():
    """Of 0, 1, 2, 3 only 2 is free. Then 0 comes back, and 3; for the last all are busy."""
    is_free = np.array([False, False, True, False])
    candidates = np.array([[1, 2], [2, 0], [3, 1], [2, 1]])
    chosen = first_free(is_free, np.array([0, 3, 2]), candidates)
    assert chosen.tolist() == [2, 0, 3, 2]
    assert first_free(is_free, np.array([0, 3, 1]), candidates[[0, 1, 0]][:, ::-1]).tolist() == [
        2,
        0,
    ]
    assert is_free.tolist() == [False, False, True, False]


def test_bits_at_the_server_are_those_received_and_those_discarded(scenario):
    """What is discarded has been sent, and paid for, and counts once."""
    changes = ("clock={mode: asynchronous, in_flight: 9, max_staleness: 5}", "rounds=30")
    run = simulate(scenario(*changes))
    jobs, spans = run.device_rounds, run.spans
    whole = jobs[jobs.status.isin(["arrived", "discarded"])]
    payload = 32 * run.summary["weights"]["global"]
    assert (jobs.status == "discarded").sum() == run.rounds.discarded.sum() > 3
    assert (whole.bits_up == payload).all() and whole.job.is_unique
    partly = jobs.bits_up[jobs.status == "unfinished"]
    assert len(partly) == 8 and (partly < payload).all()
    assert run.rounds.bits_up.sum() == pytest.approx(payload * len(whole) + partly.sum())
    assert spans.bits[spans.phase == "upload"].sum() == pytest.approx(run.rounds.bits_up.sum())


@pytest.mark.slow
@pytest.mark.parametrize("case", ["buffered", "window", "promises"])
def test_killed_with_jobs_at_work_it_goes_on_with_the_same_bytes(
    scenario, tmp_path, monkeypatch, case
):
    monkeypatch.setattr(selection_rules, "MANY", 10)
    assert_resumed(scenario(*CASES[case]), tmp_path, (4, 11), TABLES)


@pytest.mark.slow
@pytest.mark.parametrize("slot", ["until_used", "until_arrival"])
def test_a_job_in_flight_of_a_hundred_thousand_devices_takes_less_than_2_kb(scenario, slot):
    many = ("devices.0.count=100000", "devices.0.idle_power=0 W")
    clock = f"clock={{mode: buffered, in_flight: 10000, buffer: 1000, slot: {slot}}}"
    few, peak = "clock.in_flight=2000", []
    for changes in ((clock, few), (clock,)):
        tracemalloc.start()
        run = simulate(scenario(*many, *changes, "rounds=2"))
        peak.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert (peak[1] - peak[0]) / 8_000 < 2_048
    jobs = sum(run.log.columns("rounds")["dispatched"])
    assert jobs == 10_000 + (1_000 if slot == "until_used" else 1_999)
