"""Jobs whose devices leave or crash: lost, started again, or gone on with; hand-computed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edgesim.clocks.rules import Buffered, Deadline, Rules
from edgesim.engine import progress_limits
from edgesim.engine.participants import NoParticipantsError
from edgesim.engine.progress_limits import NoProgressError
from edgesim.presence.absences import Absences
from edgesim.presence.presence import Part, Presence
from edgesim.presence.trace_file import traced as timeline_of
from edgesim.records.event_log import EventLog
from edgesim.records.run_tables.table_columns import ABSENCE_COLUMNS, JOB_COLUMNS
from tests.edgesim.network.fleets import make_fleet


def absences(intervals, on_leave="lost", on_failure="lost", repair_s=0.0, period_s=math.inf):
    """Devices that are there in given intervals; without intervals they are always there."""
    count = len(intervals)
    parts = [Part(timeline_of(intervals, period_s), np.arange(count))]
    always = Presence(count, [] if not any(intervals) else parts)
    return Absences(always, (on_leave,) * count, (on_failure,) * count, np.full(count, repair_s))


def spans_of(ran, device=0):
    rows = ran.spans[ran.spans.device == device]
    return [
        (row.phase, row.start_s, row.end_s) for row in rows.itertuples() if row.end_s > row.start_s
    ]


GONE_FROM_1_TO_3 = [[(0.0, 1.0), (3.0, math.inf)], [(0.0, math.inf)]]


def test_a_lost_job_is_paid_for_and_another_begins_when_the_device_is_back(traced):
    """Job of 2 s, there in [0, 1) and [3, inf): 1 s is lost, and the next one ends at 5."""
    alone = absences([GONE_FROM_1_TO_3[0]])
    ran = traced((2.0,), Rules(), 1, absences=alone, capacitance=1.0)
    assert ran.jobs.status.tolist() == ["left"]
    assert ran.rounds[["left", "arrived", "time_s"]].values.tolist() == [[1, 0, 1.0]]
    ran = traced((2.0,), Rules(), 2, absences=alone, capacitance=1.0)
    assert ran.jobs.status.tolist() == ["left", "arrived"]
    assert ran.jobs.energy_j.tolist() == [1.0, 2.0]  # kappa f^2 = 1 J a cycle, of one second
    assert spans_of(ran) == [("train", 0.0, 1.0), ("train", 3.0, 5.0)]
    assert ran.rounds.time_s.tolist() == [1.0, 5.0]


@pytest.mark.parametrize(
    ("on_leave", "end_s", "joules"), [("resume", 4.0, 2.0), ("restart", 5.0, 3.0)]
)
def test_a_job_goes_on_or_starts_again_when_its_device_is_back(traced, on_leave, end_s, joules):
    there = absences([GONE_FROM_1_TO_3[0]], on_leave)
    ran = traced((2.0,), Rules(), 1, absences=there, capacitance=1.0)
    assert spans_of(ran) == [("train", 0.0, 1.0), ("train", 3.0, end_s)]
    assert ran.jobs[["status", "finish_s", "energy_j"]].values.tolist() == [
        ["arrived", end_s, joules]
    ]


def test_a_job_ends_before_its_device_leaves_at_the_same_instant(traced):
    there = absences([[(0.0, 2.0)]])
    assert traced((2.0,), Rules(), 1, absences=there).jobs.status.tolist() == ["arrived"]


def test_that_holds_for_a_job_of_several_stages_too(engine):
    """The end of the upload is an event that is made long after that of the departure."""
    fleet = make_fleet(tx_power_w=0.5, cpu_hz=[1e9], cycles_per_weight=5.0)

    def statuses(end_s):
        log, there = EventLog(JOB_COLUMNS, ABSENCE_COLUMNS), absences([[(0.0, end_s)]])
        engine.play(fleet, 1e-10, absences=there, log=log)
        rows = log.table("device_rounds")
        return rows.status.tolist(), rows.finish_s[0]

    (status,), finish_s = statuses(math.inf)
    assert status == "arrived"
    assert statuses(finish_s)[0] == ["arrived"]
    assert statuses(math.nextafter(finish_s, 0.0))[0] == ["left"]


def test_a_device_that_never_returns_loses_its_job_also_with_resume(traced):
    there = absences([[(0.0, 1.0)], [(0.0, math.inf)]], "resume")
    ran = traced((2.0, 2.0), Rules(), 2, absences=there)
    assert ran.jobs.status.tolist() == ["left", "arrived", "arrived"]


def test_a_job_that_restarts_for_ever_is_one_sentence(traced, monkeypatch):
    monkeypatch.setattr(progress_limits, "MOST_RESTARTS", 7)
    there = absences([[(0.0, 1.0)]], "restart", period_s=1.5)
    with pytest.raises(NoProgressError, match=r"a job of device 0 has started 8 times by 11.5 s"):
        traced((2.0,), Rules(), 1, absences=there)


def test_nobody_there_and_nobody_returning_is_one_sentence(traced):
    with pytest.raises(NoParticipantsError, match="no device can take part in round 2"):
        traced((0.5,), Rules(), 3, absences=absences([[(0.0, 1.0)]], period_s=math.inf))


def test_a_free_slot_is_taken_at_the_instant_of_a_return(traced):
    """Device 0 is out until 10; device 1 comes at 2.5 and needs 1 s: versions at 3.5, 4.5, ..."""
    there = absences([[(0.0, math.inf)], [(2.5, math.inf)]])
    ran = traced((10.0, 1.0), Buffered(slots=2), 3, absences=there)
    assert [time_s for time_s, _ in ran.versions] == [3.5, 4.5, 5.5]


def test_a_waiting_round_begins_with_the_return_and_its_deadline_too(traced):
    """Nobody is there until 7: the deadline of 1.5 s counts from then, not from 0."""
    ran = traced((1.0,), Deadline(), 1, absences=absences([[(7.0, math.inf)]]), budget_s=1.5)
    assert ran.jobs.status.tolist() == ["arrived"]
    assert ran.rounds.time_s.tolist() == [8.0]


def test_a_crash_while_computing_and_while_away_at_once(traced):
    """Repair counts from the crash; a device that is away by then goes on when it returns."""
    rate_hz, work_s = 1.0, 3.0
    given = {"failure_rate_hz": rate_hz}
    there = absences([[]], on_failure="resume", repair_s=0.25)
    ran = traced((work_s,), Rules(), 1, absences=there, **given)
    repairs = ran.spans[ran.spans.phase == "repair"]
    assert len(repairs) > 0
    assert np.allclose(repairs.end_s - repairs.start_s, 0.25)
    assert ran.rounds.time_s[0] == pytest.approx(work_s + 0.25 * len(repairs), rel=1e-12)
    assert ran.jobs.compute_s[0] == pytest.approx(work_s, rel=1e-12)


def test_a_device_does_not_crash_while_it_is_away(traced):
    """The first crash is after as much work as without the absence of 5 s."""

    def first_crash_s(intervals):
        there = absences([intervals], "resume", "resume", repair_s=0.25)
        spans = traced((30.0,), Rules(), 1, absences=there, failure_rate_hz=0.5).spans
        return spans.start_s[spans.phase == "repair"].iloc[0]

    crash_s = first_crash_s([(0.0, math.inf)])
    away = [(0.0, crash_s / 2.0), (crash_s / 2.0 + 5.0, math.inf)]
    assert first_crash_s(away) == pytest.approx(crash_s + 5.0, rel=1e-12)


@pytest.mark.parametrize("on_leave", ["lost", "restart", "resume"])
def test_a_device_that_leaves_before_it_is_repaired_has_left_its_job(traced, on_leave):
    """It crashes, leaves 0.1 s later and is back after 5 s; a repair takes 0.25 s."""

    def played(on_leave, intervals):
        there = absences([intervals], on_leave, "resume", repair_s=0.25)
        return traced((30.0,), Rules(), 1, absences=there, failure_rate_hz=0.5)

    always = played("resume", [(0.0, math.inf)]).spans
    crash_s = always.start_s[always.phase == "repair"].iloc[0]
    ran = played(on_leave, [(0.0, crash_s + 0.1), (crash_s + 5.0, math.inf)])
    computed_s = {"lost": crash_s, "restart": crash_s + 30.0, "resume": 30.0}[on_leave]
    assert ran.jobs.compute_s[0] == pytest.approx(computed_s, rel=1e-12)
    assert ran.jobs.status[0] == ("left" if on_leave == "lost" else "arrived")
    assert spans_of(ran)[:2] == [
        ("train", 0.0, crash_s),
        ("repair", crash_s, pytest.approx(crash_s + 0.1, rel=1e-12)),
    ]
    if on_leave == "lost":
        assert ran.rounds.time_s.tolist() == [pytest.approx(crash_s + 0.1, rel=1e-12)]


@pytest.mark.slow
@pytest.mark.parametrize(("then", "mean_s"), [("restart", 106.8754), ("resume", 78.0)])
def test_mean_time_of_a_job_that_starts_again_or_goes_on(traced, then, mean_s):
    """lam .01, x 60, r 30: (1 / lam + r) (exp(lam x) - 1) and x (1 + lam r)."""
    count = 1500
    crashes = absences([[]] * count, on_failure=then, repair_s=30.0)
    ran = traced((60.0,) * count, Rules(), 1, absences=crashes, failure_rate_hz=0.01)
    taken_s = ran.jobs.finish_s
    assert abs(taken_s.mean() - mean_s) < 3.0 * taken_s.std() / math.sqrt(count)
