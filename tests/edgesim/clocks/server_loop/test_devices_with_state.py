"""Heat, batteries, modems and other load under every clock: conservation, and resumed runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edgesim import load, simulate
from edgesim.engine.participants import NoParticipantsError
from tests.edgesim.resumed_runs import assert_resumed

CELL = """
name: phones
rounds: 8
network:
  bandwidth: 40 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 95 dB}, fading: {kind: rayleigh, coherence: 20 ms}}
devices:
  - count: 4
    tx_power: 23 dBm
    idle_power: 1 W
    cpu:
      frequency: [2 GHz, 1.5 GHz, 1.8 GHz, 1.2 GHz]
      cycles_per_weight: 800
      capacitance: 4.0e-28
      static_power: 100 mW
      thermal: {resistance: 10 K/W, capacity: 0.05 J/K, limit: 40 degC, throttled: 800 MHz}
      background: {to_busy: 2 Hz, to_idle: 5 Hz, busy_share: 0.4}
    battery: {capacity: 10 J, start: [0.5, 0.14, 1, 0.7], resume: 0.05, charging: {power: 0.4 W}}
    radio: {circuit_power: 100 mW, efficiency: 0.35, tail_power: 0.2 W}
  - {count: 1, tx_power: 23 dBm, idle_power: 0.1 W, cpu: {frequency: 2 GHz, cycles_per_weight: 800}}
budget: {latency_threshold: 2 s}
allocation: {solver: equal}
learning: {dataset: none, model: liu-cnn, batch_size: 32, method: {name: fedavg}}
"""
CLOCKS = {
    "synchronous": [],
    "deadline": ["clock.mode=deadline", "budget.latency_threshold=900 ms"],
    "overcommit": ["clock={mode: overcommit, over_commit: 1.4}", "learning.method.participants=3"],
    "buffered": ["clock={mode: buffered, buffer: 2}"],
    "asynchronous": ["clock={mode: asynchronous, in_flight: 3}"],
    "window": ["clock={mode: window, window: 500 ms}"],
}
FILES = (
    *("rounds.csv", "device_rounds.parquet", "spans.parquet", "device_states.parquet"),
    *("summary.json", "trace.json"),
)


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "phones.yaml"
    path.write_text(CELL)
    return lambda clock, *changes: load(path, [*CLOCKS[clock], *changes])


CRASHES = {"alive": (), "crashing": ("devices.0.failure_rate=1 Hz",)}


@pytest.mark.parametrize("changes", CRASHES.values(), ids=CRASHES)
@pytest.mark.parametrize("clock", CLOCKS)
def test_joules_and_seconds_are_conserved(scenario, clock, changes):
    """Of each device: joules used are those of its spans, its battery's balance is kept, and its
    busy, idle and dead time follow each other without a gap until the end of the run.
    """
    run = simulate(scenario(clock, *changes))
    spans, states = run.spans, run.log.table("device_states")
    end_s = run.rounds["time_s"].iloc[-1]
    start_j = 10.0 * np.array([0.5, 0.14, 1, 0.7])
    assert (spans["phase"] == "off").any(), "no battery was empty"
    assert (states["throttled_s"] > 0.0).all(axis=None) or states["throttled_s"].max() > 0.0
    for k in range(4):
        own, last = spans[spans["device"] == k], states[states["device"] == k].iloc[-1]
        assert last["time_s"] == end_s
        assert math.fsum(own["energy_j"]) == pytest.approx(last["used_j"], rel=1e-9)
        balance_j = start_j[k] + last["charged_j"] - last["used_j"]
        assert last["battery_j"] == pytest.approx(balance_j, abs=1e-9)
        own = own.sort_values(["start_s", "end_s"])
        assert own["start_s"].iloc[0] == 0.0
        assert (own["start_s"].to_numpy()[1:] == own["end_s"].to_numpy()[:-1]).all()
        assert own["end_s"].iloc[-1] == end_s
        off = own[own["phase"] == "off"]
        assert math.fsum(off["end_s"] - off["start_s"]) == pytest.approx(last["off_s"], rel=1e-9)
        assert not off["energy_j"].any()


@pytest.mark.slow
@pytest.mark.parametrize("changes", CRASHES.values(), ids=CRASHES)
@pytest.mark.parametrize("clock", CLOCKS)
def test_a_resumed_run_gives_the_bytes_of_the_whole_one(scenario, clock, changes, tmp_path):
    assert_resumed(scenario(clock, *changes), tmp_path, (0, 3), FILES)


def test_a_device_that_dies_at_work_has_failed(scenario):
    """A static power of 3 W beside other programs takes more than planned: the job of device 2,
    which begins with 10 J, has failed at the instant at which its battery is empty. Devices whose
    plan takes more than they have are left out.
    """
    changes = ["devices.0.cpu.static_power=3 W", "devices.0.cpu.background.to_busy=50 Hz"]
    run = simulate(scenario("synchronous", "rounds=3", *changes))
    rows, spans = run.device_rounds, run.spans
    failed = rows[rows["status"] == "failed"]
    assert (failed["round"].iloc[0], failed["device"].iloc[0]) == (0, 2)
    own = spans[spans["device"] == 2]
    died_s = own[own["phase"] == "off"]["start_s"].iloc[0]
    spent = own[own["end_s"] <= died_s]
    assert math.fsum(spent["energy_j"]) == pytest.approx(10.0 + 0.4 * died_s, rel=1e-12)
    assert 2 not in set(rows[rows["round"] == 1]["device"])  # it is away until it returns
    assert set(rows[(rows["round"] == 0) & (rows["status"] == "infeasible")]["device"]) == {0, 1, 3}


@pytest.mark.slow
def test_a_finished_run_on_such_devices_is_verified(scenario, tmp_path):
    from edgesim.verification.verify import check_run

    run = simulate(scenario("synchronous"), out=tmp_path / "run")
    outcomes = {check.name: check.outcome for check in check_run(run.folder, None, False)}
    assert "FAILED" not in {each.upper() for each in outcomes.values()}, outcomes
    assert outcomes["allocations"] == "ok"


def test_joules_that_are_not_those_of_the_spans_are_found(scenario):
    from edgesim.verification.device_states import check_states

    run = simulate(scenario("synchronous", "rounds=3"))
    tables = {"device_states": run.device_states, "spans": run.spans}
    assert check_states(tables).outcome == "ok"
    for column in ("used_j", "battery_j"):
        wrong = run.device_states.copy()
        wrong.loc[wrong.index[-1], column] += 0.01
        assert check_states({**tables, "device_states": wrong}).outcome == "WRONG", column


def test_where_all_batteries_are_too_low_the_sentence_names_them(scenario):
    battery = "{capacity: 1.1 J, start: 0.03, resume: 0.1}"
    cpu = "{frequency: 2 GHz, cycles_per_weight: 2000, static_power: 2 W}"
    empty = f"{{count: 3, tx_power: 23 dBm, idle_power: 1 W, battery: {battery}, cpu: {cpu}}}"
    method = "{name: fedavg, local_steps: 2}"
    learning = f"{{dataset: none, model: mlp, batch_size: 10, method: {method}}}"
    cell = ["network.bandwidth=5 MHz", "network.channel.path_loss.loss=100 dB"]
    changes = ["~budget", f"devices=[{empty}]", f"learning={learning}", *cell]
    with pytest.raises(NoParticipantsError, match="or what their batteries hold"):
        simulate(scenario("synchronous", *changes))
