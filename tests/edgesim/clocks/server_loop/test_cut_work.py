"""Devices that are told to send the steps that they have made while there is time to."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from edgesim import simulate
from edgesim.clocks.rules import Deadline
from edgesim.engine.rounds import Progress, cut_short
from edgesim.errors import EdgesimError
from edgesim.network.flows.ideal_downlink import IdealDownlink
from edgesim.presence.absences import Absences
from edgesim.presence.presence import Part, Presence
from edgesim.presence.trace_file import traced as timeline_of
from edgesim.runs.setup import set_up
from fl.contracts import Job, Payload, Phase, Stage, Work
from fl.executors.deferred_training import Promise
from tests.edgesim.network.fleets import make_fleet

FADING = "network.channel.fading={kind: rayleigh, coherence: 9 ms}"
FAST = "devices=[{count: 3, tx_power: 23 dBm, cpu: {frequency: [2 GHz, 90 MHz, 30 MHz], flops_per_cycle: 4}}]"  # noqa: E501
TABLES = "rounds.csv", "device_rounds.parquet", "spans.parquet", "scores.parquet"


@pytest.fixture
def scenario(three):
    return lambda *changes: three("clock={mode: deadline, partial: cut}", *changes)


class InAFifthOfASecond(IdealDownlink):
    def carry(self, bits, grant, span=None):
        yield self.env.timeout(0.2)


@pytest.fixture
def played(engine):
    """One round of three devices whose 20 steps take 0.04, 0.08 and 1 s each, upload 0.15 s."""
    parent = type(engine.method())

    class TwentySteps(parent):
        def configure(self, state, view, grant):
            return replace(super().configure(state, view, grant), phases=(Phase(0, 1, 20, 0.1),))

    def play(clock, budget_s=1.0, **options):
        weights, share = 4e5, 1.0 / 3.0
        snr = 2.0 ** (32.0 * weights / 0.15 / (share * 2e8)) - 1.0
        fleet = make_fleet(
            tx_power_w=1.0,
            cpu_hz=[weights / 0.04, weights / 0.08, weights],
            cycles_per_weight=1.0,
            capacitance=1e-27,
        )
        method = TwentySteps(
            personal_steps=0, warmup_steps=0, global_steps=20, rho_bounds=(0.0, 0.0)
        )
        return engine.play(
            fleet,
            snr * 1e-14,
            method,
            solver="equal",
            budget_s=budget_s,
            clock=clock,
            downlink=InAFifthOfASecond,
            **options,
        )

    return play


def test_at_the_cut_a_device_has_made_16_steps_and_one_twice_as_slow_8(played):
    """T_th 1 s, down 0.2 s, up 0.15 s: cut at 0.85 s, after 16.25, 8.125 and 0.65 steps."""
    run = played(Deadline(cuts_jobs=True))
    assert [update.job.phases[-1].steps for update in run.updates] == [16, 8, 20]
    assert [update.aborted for update in run.updates] == [False, False, True]
    rows, spans = run.log.table("device_rounds"), run.log.table("spans")
    assert rows.status.tolist() == ["arrived", "arrived", "late"]
    assert run.state[1] == ("aggregate", 0, (0, 1))
    assert rows.cycles.tolist() == pytest.approx([6.5e6, 3.25e6, 2.6e5])
    computing = spans[spans.phase == "global"]
    assert computing.start_s.tolist() == pytest.approx([0.2] * 3)
    assert computing.end_s.tolist() == pytest.approx([0.85] * 3)
    f_hz = [1e7, 5e6, 4e5]
    joules = [1e-27 * f**2 * c for f, c in zip(f_hz, rows.cycles, strict=True)]
    assert computing.energy_j.tolist() == pytest.approx(joules)
    assert run.env.now == pytest.approx(1.0)


def test_a_device_that_still_downloads_at_the_cut_is_late(played):
    """T_th 0.3 s, up 0.15 s: the model is there at 0.2 s only."""
    rows = played(Deadline(cuts_jobs=True), budget_s=0.3).log.table("device_rounds")
    assert rows.status.tolist() == ["late"] * 3
    assert rows.download_s.tolist() == pytest.approx([0.15] * 3) and not rows.cycles.any()


def absent(*there, on_leave="resume"):
    presence = Presence(3, [Part(timeline_of(there, math.inf), np.arange(3))])
    return Absences(presence, (on_leave,) * 3, ("resume",) * 3, np.zeros(3))


def test_absences_take_their_time_and_who_is_away_at_the_cut_is_late(played):
    """Device 0 computes from 0.2 to 0.5 s and from 0.7 to 0.85 s: 11.25 steps of 0.04 s."""
    back = absent([(0.0, 0.5), (0.7, math.inf)], [(0.0, 0.8), (0.9, math.inf)], [(0.0, math.inf)])
    run = played(Deadline(cuts_jobs=True), absences=back)
    assert [update.job.phases[-1].steps for update in run.updates] == [11, 20, 20]
    assert run.log.table("device_rounds").status.tolist() == ["arrived", "late", "late"]


@pytest.mark.parametrize("back_s, status, steps", [(2.2, "arrived", 11), (2.64, "late", 20)])
def test_who_leaves_while_it_sends_and_starts_again_is_cut_too(played, back_s, status, steps):
    """T_th 3 s, cut at 2.85 s. Device 0 has computed by 1 s and sends until it leaves at 1.1 s.

    Back at 2.2 s it has the model at 2.4 s and made 11.25 steps at the cut; back at 2.64 s, 0.25.
    """
    leaves = absent([(0.0, 1.1), (back_s, math.inf)], *[[(0.0, math.inf)]] * 2, on_leave="restart")
    run = played(Deadline(cuts_jobs=True), budget_s=3.0, absences=leaves)
    rows, spans = run.log.table("device_rounds"), run.log.table("spans")
    assert (rows.status[0], run.updates[0].job.phases[-1].steps) == (status, steps)
    again = spans[(spans.device == 0) & (spans.phase == "global")].iloc[1]
    assert (again.start_s, again.end_s) == pytest.approx((back_s + 0.2, 2.85))


def test_who_leaves_after_the_cut_does_not_compute_again(played):
    """Devices 0 and 1 are away from 0.9 to 0.92 s, so that their uploads are late."""
    away = [(0.0, 0.9), (0.92, math.inf)]
    run = played(Deadline(cuts_jobs=True), absences=absent(away, away, [(0.0, math.inf)]))
    rows = run.log.table("device_rounds")
    assert rows.status.tolist() == ["late"] * 3
    assert rows.compute_s.tolist() == pytest.approx([0.65] * 3)
    sent_s = 0.13 + 1e-6  # the server waits for the slack of the threshold
    assert rows.bits_up.tolist() == pytest.approx([sent_s / 0.15 * 1.28e7] * 2 + [0.0])


def test_before_its_last_stage_a_device_has_nothing_to_send():
    stages = Stage("warm-up", Work(1.0)), Stage("global", Work(4.0))
    job = Job(0, 0, (Phase(0, 1, 4, 0.1),), stages, Payload(0.0, 1.0), 0.0)
    update = Promise(job, None)
    assert cut_short(update, Progress(stages=0, part=0.9)) == 0 and update.job is job
    done = Progress(stages=1, part=0.6)
    assert cut_short(update, done) == 2 and done == Progress(stages=2)
    assert update.stages() == (stages[0], Stage("global", Work(2.0)))


def test_a_throttled_device_sends_the_steps_of_the_cycles_that_it_has_made(scenario, monkeypatch):
    """The processor is hot after some milliseconds; time alone would count more steps."""
    thermal = "{resistance: 1000 K/W, capacity: 0.001 J/K, limit: 40 degC, throttled: 2 MHz}"
    cpu = f"{{frequency: 5 MHz, flops_per_cycle: 4, static_power: 5 W, thermal: {thermal}}}"
    truncate, seen = Promise.truncate, []

    def noted(promise, fraction):
        seen.append(truncate(promise, fraction))
        return seen[-1]

    monkeypatch.setattr(Promise, "truncate", noted)
    run = simulate(scenario(f"devices=[{{count: 1, tx_power: 23 dBm, cpu: {cpu}}}]", "rounds=1"))
    (row,) = run.device_rounds.itertuples()
    assert row.cycles < 0.9 * row.compute_s * 5e6
    assert seen == [math.floor(row.cycles / 50560)] and row.status == "arrived"
    assert seen[0] < math.floor(row.compute_s * 5e6 / 50560)


@pytest.mark.slow
def test_nothing_changes_where_nobody_is_late(scenario, tmp_path):
    """x = 1, byte for byte."""
    for partial in ("none", "cut"):
        run = simulate(scenario(FAST, f"clock.partial={partial}"), out=tmp_path / partial)
        assert set(run.device_rounds.status) == {"arrived"}
    for name in TABLES:
        assert (tmp_path / "none" / name).read_bytes() == (tmp_path / "cut" / name).read_bytes()


@pytest.mark.parametrize("threshold", ["12 ms", "26 ms", "40 ms"])
def test_without_fading_it_trains_what_is_planned(scenario, threshold):
    """At 12 ms device 1 has no whole step, as device 2 at all of them."""
    budget = f"budget.latency_threshold={threshold}"
    cut, planned = (
        simulate(scenario(budget, f"clock.partial={kind}")) for kind in ("cut", "planned")
    )
    assert cut.scores.loss.tolist() == planned.scores.loss.tolist()
    assert cut.device_rounds.status.tolist() == planned.device_rounds.status.tolist()


@pytest.mark.slow
def test_fading_can_make_it_late_and_a_killed_run_goes_on_with_the_same_bytes(scenario, tmp_path):
    given = scenario(FADING, "rounds=6")

    def stop(event):
        if event["kind"] == "round" and event["round"] == 2:
            raise InterruptedError

    whole = simulate(given, out=tmp_path / "whole")
    slow = whole.device_rounds[whole.device_rounds.device == 1]
    assert {"arrived", "late"} == set(slow.status)
    assert (slow.cycles < 8 * 50560).all()
    with pytest.raises(InterruptedError):
        simulate(given, out=tmp_path / "killed", progress=stop)
    simulate(given, out=tmp_path / "killed")
    for name in TABLES:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "killed" / name).read_bytes()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("learning.method={name: scaffold, lr: 0.1}", "is cut, and scaffold has no meaning for"),
        ("clock.mode=synchronous", "which reads no partial; remove it or write mode: deadline"),
    ],
)
def test_what_cannot_be_cut_is_refused_in_one_sentence(scenario, change, said):
    with pytest.raises(EdgesimError) as refused:
        set_up(scenario(change))
    assert said in str(refused.value) and "\n" not in str(refused.value)
