"""A server that fails goes on with what it had stored; a resumed run has the same bytes."""

from __future__ import annotations

import numpy as np
import pytest

from edgesim import simulate
from edgesim.clocks.server_failures import ServerFailures, failing
from edgesim.errors import EdgesimError
from edgesim.presence.timeline import Timeline
from edgesim.seeds import Seeds
from edgesim.verification.verify import verify
from fl.method_base.method import Method
from fl.method_base.state import State
from tests.edgesim.resumed_runs import assert_resumed

FAILING = (
    "rounds=14",
    "devices.0.idle_power=0.1 W",
    "server={up: 25 ms, repair: 3 ms, save_every: 3}",
)
TRAINED = (
    "learning={dataset: digits, partition: {kind: iid}, samples_per_device: 10, model: mlp, "
    "batch_size: 10, method: {name: fedavg, lr: 0.05}}"
)
CLOCKS = {
    "synchronous": "clock={mode: synchronous}",
    "buffered": "clock={mode: buffered, buffer: 3}",
    "window": "clock={mode: window, window: 6 ms}",
}


@pytest.fixture
def scenario(few):
    return lambda *changes: few(*FAILING, *changes)


def test_the_server_is_down_for_its_repair_after_exponential_times():
    failures = ServerFailures(failing(10.0, 2.0, Seeds(0)))
    at_s, lengths = 0.0, []
    for _ in range(3000):
        failed_s = failures.next_change_s(at_s)
        assert not failures.is_down(np.nextafter(failed_s, 0.0)) and failures.is_down(failed_s)
        lengths.append(failed_s - at_s)
        at_s = failures.next_change_s(failed_s)
        assert at_s == failed_s + 2.0 and not failures.is_down(at_s)
        if len(lengths) == 600:
            break
    assert abs(np.mean(lengths) - 10.0) < 3.0 * 10.0 / np.sqrt(len(lengths))


def test_a_failure_discards_the_jobs_at_work_and_the_round_begins_again(traced):
    """Jobs of 1 and 3 s; the server fails at 2 s for 0.5 s: both are lost, and end at 5.5 s."""
    edges_s = iter([2.0, 2.5, np.inf])
    timeline = Timeline(np.array([True]), lambda n, before_s: np.array([next(edges_s)]))
    ran = traced(
        (1.0, 3.0), None, 1, failures=ServerFailures(timeline), capacitance=1.0, idle_power_w=1.0
    )
    assert ran.jobs.status.tolist() == ["discarded", "arrived", "discarded", "arrived"]
    assert ran.jobs.device.tolist() == [0, 0, 1, 1]
    assert ran.jobs.energy_j.tolist() == [1.0, 1.0, 2.0, 3.0]
    row = ran.rounds.iloc[0]
    assert (row.time_s, row.arrived, row.discarded, row.dispatched) == (5.5, 2, 2, 4)
    assert row.server_failures == 1
    busy_s = (ran.spans.end_s - ran.spans.start_s).groupby(ran.spans.device).sum()
    assert busy_s.tolist() == [5.5, 5.5]  # working or waiting all the time


def test_what_was_stored_comes_back_and_what_is_at_devices_stays():
    saved = State(2, w="old", local={0: "a"}, memo={"m": 1}, notes={"n": 1})
    now = State(5, w="new", local={0: "b", 1: "c"}, memo={"m": 2}, notes={"n": 2})
    after = Method.recovered(None, saved, now)
    assert (after.g, after.w, after.memo, after.notes) == (5, "old", {"m": 1}, {"n": 1})
    assert after.local == {0: "b", 1: "c"}


@pytest.mark.slow
@pytest.mark.parametrize("clock", CLOCKS)
def test_a_killed_run_goes_on_with_the_same_bytes(scenario, tmp_path, clock):
    given = scenario(CLOCKS[clock], TRAINED)
    names = "rounds.csv", "device_rounds.parquet", "spans.parquet", "model.safetensors"
    whole = assert_resumed(given, tmp_path, (3, 7, 10), names)
    assert whole.rounds.server_failures.sum() > 1
    ((_, checks),) = verify([tmp_path / "killed"])
    assert "WRONG" not in {check.outcome for check in checks}


@pytest.mark.slow
def test_versions_since_the_stored_state_are_void(scenario):
    """With save_every beyond the run every failure throws the model back to the initial one."""
    never = simulate(scenario(TRAINED, "server={up: 15 ms, repair: 1 ms, save_every: 100}"))
    always = simulate(scenario(TRAINED, "server={up: 15 ms, repair: 1 ms, save_every: 1}"))
    assert never.rounds.time_s.tolist() == always.rounds.time_s.tolist()
    assert never.rounds.server_failures.sum() > 3
    assert never.rounds.loss.iloc[-1] > always.rounds.loss.iloc[-1]


def test_a_mistake_is_one_sentence(scenario):
    with pytest.raises(EdgesimError, match=r"server.up is missing"):
        simulate(scenario("server={repair: 1 s}"))
    with pytest.raises(EdgesimError, match="allowed is more than 0"):
        simulate(scenario("server={up: 1 s, repair: 0 s}"))


def test_a_device_does_not_fail_at_the_same_place_after_every_return_of_the_server(traced):
    """The server fails at 30 s, when the device has failed long ago, and asks it once more."""
    edges_s = iter([30.0, 30.5, np.inf])
    timeline = Timeline(np.array([True]), lambda n, before_s: np.array([next(edges_s)]))
    fails = {"failures": ServerFailures(timeline), "failure_rate_hz": [1.0, 0.0]}
    ran = traced((50.0, 60.0), None, 1, **fails)
    first_s, second_s = ran.jobs.compute_s[ran.jobs.device == 0]
    assert ran.jobs.status.tolist() == ["failed", "failed", "discarded", "arrived"]
    assert max(first_s, second_s) < 30.0 and abs(first_s - second_s) > 1e-3
