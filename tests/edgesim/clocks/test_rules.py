"""Traces of every clock on given durations: who is in which version, and how stale."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from edgesim.clocks import server_loop
from edgesim.clocks.rules import Buffered, OverCommit, Rules, Windowed
from edgesim.clocks.server_failures import ServerFailures, failing
from edgesim.engine import progress_limits
from edgesim.engine.progress_limits import NoProgressError
from edgesim.seeds import Seeds


def buffered(slots, buffer, **more):
    return Buffered(slots=slots, buffer=buffer, **more)


def test_two_devices_one_by_one(traced):
    run = traced((1.0, 2.3), buffered(2, 1), 7)
    assert [time_s for time_s, _ in run.versions] == pytest.approx([1, 2, 2.3, 3, 4, 4.6, 5])
    assert run.staleness == [0, 0, 2, 1, 0, 2, 1]
    assert sum(run.staleness) + run.still_out == 7 * (2 - 1)


def test_three_devices_one_by_one(traced):
    run = traced((1.0, 2.1, 4.3), buffered(3, 1), 15)
    assert [time_s for time_s, _ in run.versions] == pytest.approx(
        [1, 2, 2.1, 3, 4, 4.2, 4.3, 5, 6, 6.3, 7, 8, 8.4, 8.6, 9]
    )
    assert run.staleness == [0, 0, 2, 1, 0, 2, 6, 2, 0, 3, 1, 0, 2, 6, 2]


def test_slots_that_are_taken_until_the_update_is_used(traced):
    run = traced((1.0, 1.5, 4.0), buffered(3, 2, until_used=True), 4)
    expected = [(1.5, {0: 0, 1: 0}), (3.0, {0: 0, 1: 0}), (4.0, {0: 0, 2: 2}), (5.0, {0: 0, 1: 1})]
    assert run.versions == expected
    assert sum(run.staleness) + run.still_out == 4 * (3 - 2)


@pytest.mark.parametrize(
    ("buffer", "expected"), [(1, [0, 1, 2, 3]), (2, [0, 0, 1, 1]), (4, [0] * 4)]
)
def test_equal_devices_arrive_together_and_are_used_in_device_order(traced, buffer, expected):
    run = traced((1.0,) * 4, buffered(4, buffer), 8)
    assert run.staleness == (expected * 8)[: len(run.staleness)]


@pytest.mark.slow
def test_mean_staleness_of_a_device_follows_from_the_rates_of_the_others(traced):
    run = traced((1.0, 2.0 + 1e-6, 4.0 + 1e-5), buffered(3, 1), 350)
    used = run.jobs[run.jobs.version_out >= 0].groupby("device").staleness.mean()
    assert used.tolist() == pytest.approx([0.75, 2.5, 6.0], rel=0.03)
    assert np.mean(run.staleness) == pytest.approx(2.0, rel=0.03)
    assert 350 / run.versions[-1][0] == pytest.approx(1 + 1 / 2 + 1 / 4, rel=0.01)  # a second


def test_windows_take_what_has_come_and_ask_nobody_twice(traced):
    run = traced((0.7, 1.6, 2.5), Windowed(slots=3, window_s=1.0), 6)
    assert [used for _, used in run.versions] == [
        {0: 0},
        {0: 0, 1: 1},
        {0: 0, 2: 2},
        {0: 0, 1: 1},
        {0: 0},
        {0: 0, 1: 1, 2: 2},
    ]
    assert [time_s for time_s, _ in run.versions] == [1, 2, 3, 4, 5, 6]


def test_a_window_in_which_nothing_comes_makes_an_empty_version(traced):
    run = traced((2.5,), Windowed(slots=1, window_s=1.0), 3)
    assert run.versions == [(1.0, {}), (2.0, {}), (3.0, {0: 2})]
    assert run.rounds.staleness_mean.isna().tolist() == [True, True, False]


def test_too_stale_updates_are_discarded_and_paid_for(traced):
    run = traced((1.0, 2.3), buffered(2, 1, max_staleness=1), 5, capacitance=2.0)
    late = run.jobs[run.jobs.status == "discarded"]
    assert late.device.tolist() == [1, 1] and late.staleness.tolist() == [2, 2]
    assert (late.version_out == -1).all() and (late.weight == 0).all()
    assert late.energy_j.tolist() == pytest.approx([4.6, 4.6])  # kappa f^2 x 2.3 cycles
    assert run.rounds.discarded.sum() == 2


def test_what_grows_too_stale_while_it_waits_is_discarded(traced):
    """Four devices arrive together at 1 s, 2 s, ..., all fresh: one version is made of each of the
    first two, and for the next one the others are two versions old."""
    run = traced((1.0,) * 4, buffered(4, 1, max_staleness=1), 5)
    assert run.versions == [
        (1.0, {0: 0}),
        (1.0, {1: 1}),
        (2.0, {0: 0}),
        (2.0, {1: 1}),
        (3.0, {0: 0}),
    ]
    late = run.jobs[run.jobs.status == "discarded"]
    assert late["round"].tolist() == [2, 2, 4, 4] and late.device.tolist() == [2, 3, 2, 3]
    assert late.staleness.tolist() == [2] * 4 and (late.version_out == -1).all()


def test_overcommit_closes_at_the_last_that_is_needed_and_pays_for_the_rest(traced):
    run = traced((1.0, 2.0, 3.0, 5.0), OverCommit(needed=3, asked=4), 2, capacitance=1.0)
    assert run.rounds.time_s.tolist() == [3.0, 6.0]
    assert run.rounds.cancelled.tolist() == [1, 1] and run.rounds.arrived.tolist() == [3, 3]
    cut = run.jobs[run.jobs.status == "cancelled"]
    assert cut.device.tolist() == [3, 3] and cut.energy_j.tolist() == [3.0, 3.0]


@pytest.mark.slow
def test_overcommit_is_as_long_as_the_order_statistic_of_exponential_times(traced):
    """E[10th of 13] = H13 - H3 against E[max of 10] = H10; of 13 jobs 3 are wasted."""
    rng = np.random.default_rng(1)
    times = rng.standard_exponential((300, 13))
    rounds = [traced(row, OverCommit(needed=10, asked=13), 1).rounds for row in times[:40]]
    tenth = [each.time_s[0] for each in rounds]
    assert tenth == pytest.approx(np.sort(times[:40], axis=1)[:, 9].tolist())
    assert {(each.cancelled[0], each.dispatched[0]) for each in rounds} == {(3, 13)}
    harmonic = {n: sum(1 / i for i in range(1, n + 1)) for n in (3, 10, 13)}
    assert harmonic[13] - harmonic[3] == pytest.approx(1.346801, abs=1e-6)
    assert harmonic[10] == pytest.approx(2.928968, abs=1e-6)
    assert np.sort(times, axis=1)[:, 9].mean() == pytest.approx(1.346801, abs=0.1)
    assert times[:, :10].max(axis=1).mean() == pytest.approx(2.928968, abs=0.2)


durations = st.lists(st.floats(0.1, 10.0), min_size=2, max_size=4, unique=True)


@pytest.mark.slow
@settings(max_examples=100)
@given(durations, st.data())
def test_staleness_sums_to_the_number_of_those_at_work(traced, lengths, data):
    """Staleness and the ages of those still out sum to versions x (M - 1), or x (M - K)."""
    slots, versions = len(lengths), 5  # so that the place of an arrival is taken again at once
    buffer, used = data.draw(st.integers(1, slots)), data.draw(st.booleans())
    run = traced(lengths, buffered(slots, buffer, until_used=used), versions)
    jobs = {name: np.array(column) for name, column in run.log.columns("device_rounds").items()}
    back = jobs["status"] != "unfinished"
    instants = (jobs["dispatched_s"] + jobs["finish_s"])[back].round(9)
    assume(len(np.unique(instants)) == len(instants))  # with ties there are fewer at work
    unused = jobs["version_out"] < 0
    ages = jobs["staleness"][~unused].sum() + (versions - jobs["version_in"][unused]).sum()
    assert ages == versions * (slots - (buffer if used else 1))


def test_every_second_of_a_device_is_work_or_waiting(traced):
    run = traced((1.0, 2.3, 0.4, 3.1), buffered(2, 2), 9, idle_power_w=0.1, capacitance=0.5)
    spans, end_s = run.spans, run.rounds.time_s.iloc[-1]
    busy = (spans.end_s - spans.start_s).groupby(spans.device).sum()
    assert busy.tolist() == pytest.approx([end_s] * 4, rel=1e-9)
    for _, own in spans.groupby("device"):
        own = own.sort_values("start_s")
        assert (own.start_s.to_numpy()[1:] >= own.end_s.to_numpy()[:-1] - 1e-12).all()
    assert run.rounds.energy_j.sum() == pytest.approx(spans.energy_j.sum())
    assert run.rounds.unfinished.tolist()[-1] == (run.jobs.status == "unfinished").sum() > 0


def test_twice_the_durations_take_twice_the_time_with_the_same_staleness(traced):
    one, two = (
        traced([factor * t for t in (1.0, 2.3, 0.4)], buffered(3, 2), 9) for factor in (1.0, 2.0)
    )
    assert [2 * time_s for time_s, _ in one.versions] == [time_s for time_s, _ in two.versions]
    assert one.staleness == two.staleness


def test_other_numbers_of_the_devices_change_their_numbers_only(traced):
    lengths, order = (1.0, 2.3, 0.37), [2, 0, 1]
    one = traced(lengths, buffered(3, 2), 9)
    two = traced([lengths[k] for k in order], buffered(3, 2), 9)
    renamed = [(t, {order[k]: tau for k, tau in used.items()}) for t, used in two.versions]
    assert renamed == [(t, dict(used)) for t, used in one.versions]


def test_a_device_that_fails_leaves_its_place_and_comes_back(traced):
    run = traced((1.0, 2.0), buffered(2, 1), 4, failure_rate_hz=[0.0, 0.8])
    failed = run.jobs[run.jobs.status == "failed"]
    assert len(failed) and (failed.version_out == -1).all()
    assert run.rounds.failed.sum() == len(failed)
    assert [used for _, used in run.versions][:3] == [{0: 0}] * 3


def test_a_job_that_starts_again_from_its_version_has_a_failure_of_its_own(traced):
    """Alone it would otherwise fail at the same place for ever; its waiting counts as well."""
    given = {"failure_rate_hz": 2.0, "idle_power_w": 0.1, "capacitance": 1.0}
    run = traced((1.0,), buffered(1, 1), 5, **given)
    failed = run.jobs[run.jobs.status == "failed"]
    assert len(failed) > 5 and failed.energy_j.nunique() == len(failed)
    run = traced((1.0, 3.0), Windowed(slots=2, window_s=2.0), 5, **given)
    spans, end_s = run.spans, run.rounds.time_s.iloc[-1]
    assert (run.jobs.status == "failed").any()
    busy = (spans.end_s - spans.start_s).groupby(spans.device).sum()
    assert busy.tolist() == pytest.approx([end_s] * 2, rel=1e-9)


@pytest.mark.slow
def test_jobs_that_never_end_are_one_sentence(traced, monkeypatch):
    """The limit counts those of the slots, not of all devices, since the last arrival."""
    monkeypatch.setattr(progress_limits, "MOST_IN_VAIN", 20)
    fails = {"failure_rate_hz": [1e9, 1e9, 1e9, 1e9]}
    for slots, count in ((1, 26), (2, 31)):
        said = rf"^{count} times in a row a job, .* brought no update by .* without a version 0 "
        with pytest.raises(NoProgressError, match=said):
            traced((1.0,) * 4, buffered(slots, 1), 2, **fails)
    run = traced((1.0, 1e-3), buffered(2, 200), 1, failure_rate_hz=[1e3, 0.0])
    assert (run.jobs.status == "failed").sum() > 30  # one after each arrival of the other


def test_a_server_that_is_never_up_for_a_round_is_one_sentence(traced):
    failures = ServerFailures(failing(1e-3, 1.0, Seeds(0)))
    said = "the server failed 50 times by .* without a version 0 of the model"
    with pytest.raises(NoProgressError, match=said):
        traced((1.0,), Rules(), 1, failures=failures)


def test_a_plan_that_has_not_settled_is_recorded_also_before_one_that_has(traced, monkeypatch):
    """Version 0 has plans at 0 s and 1 s, 10 % and 2 % off; the others have settled."""
    changes, plan = iter([0.1, 0.02, 0.0, 0.0, 0.0, 0.0]), server_loop.make_plan
    monkeypatch.setattr(
        server_loop, "make_plan", lambda *about: replace(plan(*about), unsettled=next(changes))
    )
    run = traced((1.0, 2.3), buffered(2, 2), 2)
    assert run.log.columns("unsettled_plans") == {"round": [0], "change": [0.1]}
