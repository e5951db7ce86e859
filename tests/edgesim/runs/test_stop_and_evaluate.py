"""`evaluate.every` by simulated time, and `stop` by time and by jobs, with every kind of engine."""

from __future__ import annotations

import numpy as np
import pytest

from edgesim import load, simulate
from edgesim.errors import EdgesimError
from edgesim.results.run_listing import list_runs
from edgesim.verification.verify import verify
from tests.edgesim.resumed_runs import KilledError, assert_resumed, killed_after

TRAINED = (
    "learning={dataset: digits, partition: {kind: iid}, samples_per_device: 10, model: mlp, "
    "batch_size: 10, method: {name: fedavg, lr: 0.05}}"
)
BUFFERED = "clock={mode: buffered, buffer: 2}"


@pytest.fixture
def scenario(few):
    return lambda *changes: few("rounds=40", *changes)


def test_evaluations_follow_the_multiples_of_a_time(scenario):
    run = simulate(scenario(TRAINED, "rounds=9", "evaluate={every: 25 ms}", BUFFERED))
    times_s = np.array([0.0, *run.rounds.time_s])
    passed = np.floor(times_s[1:] / 0.025) > np.floor(times_s[:-1] / 0.025)
    passed[-1] = True
    assert (run.rounds.accuracy.notna().to_numpy() == passed).all()
    assert 1 < passed.sum() < 9


def test_a_resumed_run_is_listed_with_the_last_accuracy_from_before(scenario, tmp_path):
    given = scenario(TRAINED, "rounds=6", "evaluate={every: 2}")
    for version in (1, 2):  # evaluated after version 1, and not after 2
        with pytest.raises(KilledError):
            simulate(given, out=tmp_path / "run", progress=killed_after(version))
        (listed,) = list_runs(tmp_path)
        assert listed.rounds == version + 1 and listed.accuracy is not None


@pytest.mark.parametrize("more", [[], [TRAINED]], ids=["arrays", "trained"])
def test_windows_whose_sum_rounds_down_end_the_run_in_time(scenario, more):
    """Ten times 0.1 s are 0.9999999999999999 s, if they are added."""
    run = simulate(scenario(*more, "clock={mode: window, window: 0.1 s}", "stop={time: 1 s}"))
    assert len(run.rounds) == 10 and run.rounds.time_s.iloc[-1] < 1.0


def test_windows_whose_sum_rounds_down_are_evaluated_in_time(scenario):
    """Three times 0.7 s are 2.0999999999999996 s, if they are added."""
    window = "clock={mode: window, window: 0.7 s}"
    run = simulate(scenario(TRAINED, window, "rounds=10", "evaluate={every: 2.1 s}"))
    assert np.flatnonzero(run.rounds.accuracy.notna()).tolist() == [2, 5, 8, 9]


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], [BUFFERED], [TRAINED]], ids=["arrays", "buffered", "trained"])
def test_a_run_ends_with_the_version_in_which_a_time_has_passed(scenario, tmp_path, more):
    every = "evaluate={every: 100}"
    whole = simulate(scenario(*more, every))
    run = simulate(scenario(*more, every, "stop={time: 50 ms}"), out=tmp_path / "run")
    count = int(np.searchsorted(whole.rounds.time_s, 0.05)) + 1
    assert 1 < len(run.rounds) == count < 40
    assert run.rounds.time_s.tolist() == whole.rounds.time_s[:count].tolist()
    assert run.summary["rounds"] == count
    assert bool(run.rounds.accuracy.notna().iloc[-1]) == (TRAINED in more)  # the last one is
    if BUFFERED in more:
        assert run.rounds.unfinished.iloc[-1] > 0 == run.rounds.in_flight.iloc[-1]
    ((_, checks),) = verify([tmp_path / "run"])
    assert "WRONG" not in {check.outcome for check in checks}
    again = simulate(scenario(*more, every, "stop={time: 50 ms}"), out=tmp_path / "run")
    assert again.summary == run.summary  # had ended: nothing is computed again
    (tmp_path / "run" / "rounds.csv").unlink()
    mended = simulate(scenario(*more, every, "stop={time: 50 ms}"), out=tmp_path / "run")
    assert len(mended.rounds) == count


@pytest.mark.parametrize("more", [[], [BUFFERED], [TRAINED]], ids=["arrays", "buffered", "trained"])
def test_a_run_ends_with_the_version_that_reaches_a_number_of_jobs(scenario, tmp_path, more):
    """All four are asked in every synchronous round: ten jobs are handed out in the third."""
    given = scenario(*more, "stop={jobs: 10}")
    names = "rounds.csv", "device_rounds.parquet", "spans.parquet", "summary.json"
    run = assert_resumed(given, tmp_path, [1], names)
    asked = run.rounds.dispatched if BUFFERED in more else run.rounds.selected
    assert asked.sum() >= 10 > asked[:-1].sum()
    assert BUFFERED in more or len(run.rounds) == 3


@pytest.mark.slow
def test_a_run_that_was_ended_by_a_time_has_no_more_rounds_where_rounds_are_raised(
    scenario, tmp_path
):
    ends = "stop={time: 50 ms}"
    simulate(scenario(ends), out=tmp_path / "run")
    raised = simulate(scenario(ends, "rounds=60"), out=tmp_path / "run")
    whole = simulate(scenario(ends, "rounds=60"), out=tmp_path / "whole")
    assert raised.rounds.equals(whole.rounds) and raised.summary == whole.summary
    for name in "scenario.yaml", "rounds.csv", "spans.parquet", "summary.json":
        parts = (tmp_path / folder / name for folder in ("run", "whole"))
        assert len({part.read_bytes() for part in parts}) == 1


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        (["stop={}"], "stop is empty; write time: 1 h or jobs: 1000"),
        (["stop={time: 3}"], "3"),
        (["evaluate={every: 0 s}"], "allowed is more than 0"),
        (["evaluate={every: 2.5}"], "(rounds), or a time such as 60 s"),
        (["evaluate={every: 3 m}"], "3 m"),
    ],
)
def test_a_mistake_is_one_sentence(scenario, changes, part):
    with pytest.raises(EdgesimError) as error:
        simulate(scenario(*changes))
    assert part in str(error.value) and "\n" not in str(error.value)


def test_a_resolved_scenario_reads_back(scenario, tmp_path):
    given = scenario("evaluate={every: 60 s}", "stop={time: 1 h, jobs: 5}", "rounds=2")
    simulate(given, out=tmp_path / "run")
    again = load(tmp_path / "run" / "scenario.yaml")
    assert again.evaluate.every == 60.0 and isinstance(again.evaluate.every, float)
    assert (again.stop.time_s, again.stop.jobs) == (3600.0, 5)
