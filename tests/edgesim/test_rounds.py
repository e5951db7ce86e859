"""Rounds on the clock: promise 1 (finish = Liu (28)), promise 2 (band and bits), late, failed, absent, infeasible."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from edgesim.engine.rounds import NoParticipantsError
from edgesim.network.device import make_fleet
from edgesim.network.link import BroadcastDownlink
from solvers import InfeasibleError

NOISE_W, BANDWIDTH_HZ, BUDGET_S = 1e-14, 2e8, 0.025


def devices(cpu_hz=(3e9,), tx_power_w=0.63, **changes):
    return make_fleet(tx_power_w=tx_power_w, cpu_hz=list(cpu_hz), cycles_per_weight=5, **changes)


def liu_28(fleet, gain, method, share, rho):
    """T_k of Liu, eqs. (24), (25), (28), written out anew."""
    cycles_per_s = fleet.cpu_hz / fleet.cycles_per_weight
    personal = method.personal_steps * method.personal_weights / cycles_per_s
    warmup = method.warmup_steps * method.global_weights / cycles_per_s
    pruned = (1 - rho) * method.global_steps * method.global_weights / cycles_per_s
    rate = share * BANDWIDTH_HZ * np.log2(1 + gain * fleet.tx_power_w / NOISE_W)
    bits = method.bits_per_weight * (1 - rho) * method.global_weights
    return (
        personal + warmup + pruned + np.where(bits > 0, bits / np.where(bits > 0, rate, 1.0), 0.0)
    )


@st.composite
def cells(draw):
    count = draw(st.integers(1, 6))

    def floats(low, high):
        return np.array(draw(st.lists(st.floats(low, high), min_size=count, max_size=count)))

    fleet = devices(cpu_hz=floats(1e9, 5e9), tx_power_w=floats(0.05, 2.0))
    return fleet, 10 ** floats(-14.0, -8.0)


def finished(played, num_devices):
    rows = played.log.table("device_rounds")
    last = rows[rows["round"] == rows["round"].max()]
    assert last.device.tolist() == list(range(num_devices))
    return last.finish_s.to_numpy(), last.share.to_numpy(), last.rho.to_numpy()


@settings(max_examples=60)
@given(cells(), st.integers(1, 5), st.floats(8e-3, 0.2), st.floats(0, 1e4))
def test_promise_1_finish_is_liu_28_and_the_threshold_where_pruned(
    engine, cell, global_steps, budget_s, start_s
):
    fleet, gain = cell
    method = engine.method(global_steps=global_steps)
    played = engine.play(fleet, gain, method, budget_s=budget_s, rounds=range(3), start_s=start_s)
    finish_s, share, rho = finished(played, len(fleet))
    fits = np.array(
        [
            status != "infeasible"
            for status in played.log.table("device_rounds").status[-len(fleet) :]
        ]
    )
    tick_s = 4 * np.spacing(
        played.env.now
    )  # three events and a difference, each rounded to the clock's doubles
    expected_s = liu_28(fleet, gain, method, share, rho)[fits]
    assert (abs(finish_s[fits] - expected_s) <= 1e-9 * expected_s + tick_s).all()
    between = fits & (rho > 0) & (rho < 1)
    assert (abs(finish_s[between] - budget_s) <= 1e-9 * budget_s + tick_s).all()
    assert (np.isnan(finish_s) == ~fits).all()


@settings(max_examples=60)
@given(cells(), st.data())
def test_promise_1_for_shares_given_by_hand(engine, cell, data):
    fleet, gain = cell
    weights = np.array(
        data.draw(st.lists(st.floats(0.01, 1.0), min_size=len(fleet), max_size=len(fleet)))
    )
    ratios = np.array(
        data.draw(st.lists(st.floats(0.0, 1.0), min_size=len(fleet), max_size=len(fleet)))
    )
    method = engine.method()
    hand = lambda problem: (weights / weights.sum() * 0.999, ratios)  # noqa: E731
    played = engine.play(fleet, gain, method, solver=hand, budget_s=1.0, rounds=range(2))
    finish_s, share, rho = finished(played, len(fleet))
    assert rho == pytest.approx(ratios, abs=0)
    assert finish_s == pytest.approx(liu_28(fleet, gain, method, share, rho), rel=1e-9)
    latency_s = played.log.table("rounds").latency_s.to_numpy()
    assert latency_s[-1] == pytest.approx(finish_s.max(), rel=1e-12)  # T_g = max T_k, (29)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    num_devices=st.integers(1, 6),
    share=st.sampled_from(["fixed", "reclaim"]),
    failure_rate_hz=st.sampled_from([0.0, 20.0]),
    clock=st.sampled_from(["synchronous", "deadline"]),
    noise=st.sampled_from([{"noise_w": 1e-14}, {"noise_w_per_hz": 1e-22}]),
)
def test_promise_2_shares_fit_the_band_and_bits_are_the_integral_of_the_rate(
    engine, seed, num_devices, share, failure_rate_hz, clock, noise
):
    fleet = devices(np.linspace(1e9, 4e9, num_devices), failure_rate_hz=failure_rate_hz)
    played = engine.play(
        fleet,
        1e-10,
        solver="equal",
        share=share,
        clock=clock,
        coherence_s=2e-3,
        seed=seed,
        rounds=range(3),
        **noise,
    )
    segments, channel = played.segments, played.cell.channel
    rows = played.log.table("device_rounds")
    planned = rows.groupby("round").share.sum().max()
    for instant in {segment[1] for segment in segments}:
        now = [segment for segment in segments if segment[1] <= instant < segment[2]]
        assert len({segment[0] for segment in now}) == len(now)
        assert sum(segment[3] for segment in now) <= min(planned, 1.0) + 1e-12
    for device, start_s, end_s, part, rate_bps, bits in segments:
        gain = channel.gains(0.5 * (start_s + end_s))[device]
        assert rate_bps == pytest.approx(
            channel.rate_bps(part, fleet.tx_power_w[device], gain), rel=1e-12
        )
        assert bits == pytest.approx(rate_bps * (end_s - start_s), rel=1e-9, abs=1e-6)
    uploads = played.log.table("spans")[played.log.table("spans").phase == "upload"]
    assert uploads.bits.sum() == pytest.approx(
        sum(segment[5] for segment in segments), rel=1e-12, abs=1e-9
    )
    back = rows[rows.finish_s.notna()]
    assert back.bits_up.to_numpy() == pytest.approx((1 - back.rho.to_numpy()) * 32 * 4e5, rel=1e-12)


def test_reclaimed_band_never_delays_a_round(engine):
    fleet = devices((1e9, 2e9, 4e9))
    latency = {
        share: engine.play(
            fleet, 1e-10, solver="equal", share=share, method=engine.method(rho_bounds=(0, 0))
        )
        .log.table("rounds")
        .latency_s[0]
        for share in ("fixed", "reclaim")
    }
    assert latency["reclaim"] < latency["fixed"]


def test_fading_moves_the_latency_away_from_the_plan(engine):
    static, fading = (
        engine.play(devices([3e9] * 4), 1e-10, coherence_s=coherence_s, rounds=range(5))
        .log.table("rounds")
        .latency_s
        for coherence_s in (math.inf, 5e-3)
    )
    assert static.tolist() == pytest.approx([BUDGET_S] * 5, rel=1e-9)
    assert (abs(fading - BUDGET_S) > 1e-4).all()


def hand(share, rho):
    return lambda problem: (np.array(share), np.array(rho))


def slow_and_slower(engine, clock):
    """Device 0 is in time, 1 too late while it sends (a small share), 2 too late while it computes (3e8 Hz)."""
    shares = hand([0.8, 0.001, 0.1], [0.9, 0.5, 0.5])
    return engine.play(devices((3e9, 3e9, 3e8)), 1e-10, solver=shares, clock=clock, rounds=range(2))


def test_synchronous_waits_and_aggregates_who_is_late(engine):
    played = slow_and_slower(engine, "synchronous")
    rows = played.log.table("device_rounds")
    assert rows.status.tolist() == ["arrived", "late", "late"] * 2
    assert played.log.table("rounds").arrived.tolist() == [3, 3]
    assert played.log.table("rounds").late.tolist() == [2, 2]
    assert played.log.table("rounds").latency_s[0] == rows.finish_s[:3].max()
    assert ("aggregate", 1, (0, 1, 2)) in played.state


def test_the_deadline_cuts_off_and_keeps_what_was_trained(engine):
    played = slow_and_slower(engine, "deadline")
    rows, rounds = played.log.table("device_rounds"), played.log.table("rounds")
    assert rounds.latency_s.tolist() == pytest.approx([BUDGET_S * (1 + 1e-6)] * 2, rel=1e-12)
    assert rows.status.tolist() == ["arrived", "late", "late"] * 2
    assert (rounds.arrived.tolist(), rounds.late.tolist()) == ([1, 1], [2, 2])
    assert rows.finish_s.isna().tolist() == [False, True, True] * 2
    assert played.state[:3] == (
        ("retain", 0, (0, 1)),
        ("aggregate", 0, (0,)),
        ("observe", 0, (0, 1, 2)),
    )
    assert 0 < rows.bits_up[1] < 0.5 * 32 * 4e5  # part of the upload was sent
    assert (rows.bits_up[2], rows.upload_s[2]) == (0.0, 0.0)
    assert 0 < rows.cycles[2] < 5 * (5 * 5e4 + 4e5 + 0.5 * 5 * 4e5)


def test_a_deadline_round_ends_early_when_all_are_back(engine):
    played = engine.play(
        devices((3e9, 3e9)), 1e-10, solver=hand([0.5, 0.5], [0.99, 0.99]), clock="deadline"
    )
    assert played.env.now == played.log.table("device_rounds").finish_s.max() < BUDGET_S


def test_a_device_that_cannot_compute_in_time_is_left_out_by_name(engine):
    played = engine.play(
        devices((1e8, 3e9)), 1e-10
    )  # 0.65e6 weight steps x 5 / 1e8 = 32.5 ms > 25 ms
    rows = played.log.table("device_rounds")
    assert rows.status.tolist() == ["infeasible", "arrived"]
    assert played.log.table("rounds").infeasible[0] == 1
    assert played.log.table("rounds").selected[0] == 2
    assert played.state[-1] == ("observe", 0, (0, 1))


def test_when_nobody_can_take_part_the_round_lasts_the_threshold(engine):
    for clock in ("synchronous", "deadline"):
        played = engine.play(devices((1e8, 1e8)), 1e-10, clock=clock, rounds=range(2))
        assert played.env.now == 2 * BUDGET_S
        assert played.log.table("rounds").selected.tolist() == [2, 2]


def test_when_nobody_is_there_and_nothing_ends_the_round_a_sentence_says_so(engine):
    absent = devices((3e9,), availability=1e-12)
    with pytest.raises(NoParticipantsError, match="round 0"):
        engine.play(absent, 1e-10, solver="equal", budget_s=math.inf)
    assert engine.play(absent, 1e-10).log.table("rounds").selected.tolist() == [0]


def test_availability_is_a_probability_per_round(engine):
    played = engine.play(
        devices([3e9] * 20, availability=0.3), 1e-10, solver="equal", rounds=range(20)
    )
    selected = played.log.table("rounds").selected
    assert selected.sum() == pytest.approx(120, abs=4 * math.sqrt(400 * 0.21))
    assert selected.nunique() > 3


def test_failures_are_exponential_and_lose_the_upload(engine):
    """25 ms at 40 failures a second: 1 - exp(-1) = 63 % of the devices fail."""
    played = engine.play(devices([3e9] * 20, failure_rate_hz=40.0), 1e-10, rounds=range(10))
    rows, rounds = played.log.table("device_rounds"), played.log.table("rounds")
    assert rounds.failed.sum() == pytest.approx(
        200 * (1 - math.exp(-1)), abs=4 * math.sqrt(200 * 0.23)
    )
    assert (rounds.failed + rounds.arrived == 20).all()
    received = [devices for hook, g, devices in played.state if hook == "aggregate"]
    arrived = rows[rows.status == "arrived"].groupby("round").device.apply(tuple).tolist()
    assert [each for each in received if each] == arrived
    whole = rows[rows.status == "arrived"].bits_up.max()
    assert (rows[rows.status == "failed"].bits_up <= whole).all()


def test_a_failed_device_frees_its_band_for_the_others(engine):
    """It fails within a millisecond, while it computes, and has not sent anything."""
    runs = [
        engine.play(
            devices([3e9] * 3, failure_rate_hz=[5000.0, 0, 0]),
            1e-10,
            share=share,
            solver=hand([0.4, 0.3, 0.3], [0.5] * 3),
        )
        for share in ("fixed", "reclaim")
    ]
    assert [run.log.table("rounds").failed[0] for run in runs] == [1, 1]
    assert runs[0].log.table("rounds").bits_up[0] == pytest.approx(2 * 0.5 * 32 * 4e5)
    assert runs[1].env.now < runs[0].env.now


def test_too_narrow_a_band_stretches_or_stops(engine):
    """rho is at most 0.1, and at T_th the rest does not fit: the least threshold that fits is planned for and met."""
    method = engine.method(rho_bounds=(0.0, 0.1))
    played = engine.play(devices([3e9] * 10), 1e-10, method)
    assert played.log.stretched_rounds == 1
    budget_s = played.log.tables["plans"]["budget_s"][0]
    assert budget_s > BUDGET_S
    assert played.log.table("device_rounds").finish_s.to_numpy() == pytest.approx(
        np.full(10, budget_s), rel=1e-6
    )
    assert set(played.log.table("device_rounds").status) == {"late"}
    with pytest.raises(InfeasibleError):
        engine.play(devices([3e9] * 10), 1e-10, method, when_infeasible="stop")


def test_a_plan_leaves_room_for_the_broadcast(engine):
    """40 Mbit at 2e8 Hz x log2(1 + ...) take some ms; finish is still T_th, because the plan knows of it."""
    downlink = lambda env, channel: BroadcastDownlink(env, channel, tx_power_w=1.0)  # noqa: E731
    played = engine.play(
        devices([3e9] * 4), [1e-10] * 3 + [1e-11], engine.method(bits_down=4e7), downlink=downlink
    )
    rows = played.log.table("device_rounds")
    assert rows.download_s.to_numpy() == pytest.approx(
        np.full(4, 4e7 / (2e8 * math.log2(1 + 1e-11 / NOISE_W)))
    )
    assert rows.download_s[0] > 0.01
    assert rows.finish_s.to_numpy() == pytest.approx(np.full(4, BUDGET_S), rel=1e-9)
    assert rows.bits_down.tolist() == pytest.approx([4e7] * 4)


def test_with_a_noise_density_equal_shares_still_meet_the_threshold(engine):
    played = engine.play(
        devices([3e9] * 5), 1e-10, solver="equal", noise_w_per_hz=1e-22, budget_s=0.015
    )
    rows = played.log.table("device_rounds")
    assert ((rows.rho > 0) & (rows.rho < 1)).all()
    assert rows.finish_s.to_numpy() == pytest.approx(np.full(5, 0.015), rel=1e-9)


@pytest.mark.parametrize("share", ["fixed", "reclaim"])
@pytest.mark.parametrize("clock", ["synchronous", "deadline"])
def test_a_resumed_run_gives_the_same_bytes(engine, tmp_path, clock, share):
    world = {
        "fleet": devices([2e9, 3e9, 4e9], failure_rate_hz=15.0, availability=0.8, idle_power_w=0.1),
        "path_gain": 1e-10,
        "clock": clock,
        "share": share,
        "coherence_s": 3e-3,
    }
    engine.play(**world, rounds=range(8)).log.write_tables(tmp_path / "whole")
    before = engine.play(**world, rounds=range(3))
    engine.play(
        **world,
        rounds=range(3, 8),
        log=before.log,
        state=before.state,
        start_s=before.log.columns("rounds")["time_s"][-1],
    ).log.write_tables(tmp_path / "resumed")
    for file in ("rounds.csv", "device_rounds.parquet", "spans.parquet"):
        assert (tmp_path / "whole" / file).read_bytes() == (
            tmp_path / "resumed" / file
        ).read_bytes()


def test_a_device_added_at_the_end_changes_nobodys_availability_or_failures(engine):
    few, more = (
        engine.play(
            devices([3e9] * count, failure_rate_hz=30.0, availability=0.7),
            1e-10,
            solver=lambda problem: (
                np.full(problem.num_devices, 0.1),
                np.full(problem.num_devices, 0.8),
            ),
            coherence_s=3e-3,
        ).log.table("device_rounds")
        for count in (4, 5)
    )
    same = more[more.device < 4]
    for column in ("device", "status", "finish_s", "bits_up"):
        np.testing.assert_array_equal(same[column], few[column])


def test_stale_events_do_not_hold_a_run_up(engine):
    """The run ends with its last round although timers of the past still wait in the queue."""
    played = engine.play(devices([3e9] * 2, failure_rate_hz=1e-3), 1e-10)
    assert played.env.now == pytest.approx(BUDGET_S, rel=1e-9)
    while played.env.peek() <= played.env.now:
        played.env.step()
    assert played.env.peek() < math.inf


@settings(max_examples=10)
@given(cells())
def test_latency_is_when_the_last_one_is_back(engine, cell):
    fleet, gain = cell
    assume(len(fleet) > 1)
    rounds = engine.play(fleet, gain, rounds=range(3)).log.table("rounds")
    assert rounds.time_s.to_numpy() == pytest.approx(np.cumsum(rounds.latency_s))


def test_bits_known_only_after_training_are_asked_for_at_the_upload(engine):
    from edgesim.engine.rounds import upload
    from fl.contracts import Grant

    asked = []

    class Late:
        job = engine.method().configure((), engine_view(), Grant(0, 1.0, 0.0, 1e9, 1.0))

        def bits_up(self):
            asked.append(True)
            return 0.0

    played = engine.play(devices(), 1e-10)
    process = upload(played.cell, Late(), Grant(0, 1.0, 0.0, 1e9, 1.0), played.log)
    assert not asked
    env = played.env
    env.run(env.process(process))
    assert asked


def test_work_known_only_after_training_gives_the_same_round(engine):
    """Work that is known before is never asked of the training; either way the bytes are the same."""
    world = {
        "fleet": devices((1e9, 2e9)),
        "path_gain": 1e-10,
        "rounds": range(3),
        "coherence_s": 3e-3,
    }
    before, after = (
        engine.play(**world, method=engine.method(known_before=known)) for known in (True, False)
    )
    assert [update.forced for update in before.updates] == [False] * 6
    assert [update.forced for update in after.updates] == [True] * 6
    np.testing.assert_equal(after.log.tables, before.log.tables)


def test_the_work_is_asked_for_when_the_computation_begins(engine):
    """Deadline, broadcast of 30 ms: nobody gets as far as to compute, nothing is trained."""
    method = engine.method(
        known_before=False, bits_down=3e-2 * 2e8 * math.log2(1 + 1e-10 * 1.0 / NOISE_W)
    )
    downlink = lambda env, channel: BroadcastDownlink(env, channel, tx_power_w=1.0)  # noqa: E731
    method = replace(method, personal_steps=0, warmup_steps=0, rho_bounds=(0.0, 0.0))
    cut = engine.play(
        devices((3e9, 3e9)), 1e-10, method, solver="equal", clock="deadline", downlink=downlink
    )
    assert [(update.forced, update.aborted) for update in cut.updates] == [(False, True)] * 2
    waited = engine.play(devices((3e9, 3e9)), 1e-10, method, solver="equal", downlink=downlink)
    assert [(update.forced, update.aborted) for update in waited.updates] == [(True, False)] * 2


def test_who_is_cut_off_while_it_computes_is_aborted_although_it_was_trained(engine):
    shares, method = hand([0.8, 0.001, 0.1], [0.9, 0.5, 0.5]), engine.method(known_before=False)
    played = engine.play(devices((3e9, 3e9, 3e8)), 1e-10, method, solver=shares, clock="deadline")
    assert [update.forced for update in played.updates] == [True] * 3
    assert [update.aborted for update in played.updates] == [False, False, True]
    assert played.state == (
        ("retain", 0, (0, 1)),
        ("aggregate", 0, (0,)),
        ("observe", 0, (0, 1, 2)),
    )


def engine_view():
    from fl.contracts import View

    empty, ones = np.zeros(1), np.ones(1)
    return View(0, 0.0, np.array([0]), empty, empty, empty, 1.0, ones, ones)


def test_an_error_inside_a_device_ends_the_run(engine):
    from edgesim.network.link import StalledLinkError

    with pytest.raises(StalledLinkError):
        engine.play(
            devices((3e9, 3e9)), 1e-10, solver=hand([0.0, 1.0], [0.5, 0.5]), clock="deadline"
        )


@pytest.mark.parametrize(
    ("part", "status"), [(1.0, "arrived"), (1 + 5e-7, "arrived"), (1 + 1e-5, "late")]
)
def test_late_begins_a_millionth_after_the_threshold(engine, part, status):
    """One device whose upload ends at exactly ``part`` of the threshold."""
    fleet, method = devices([3e9]), engine.method(warmup_steps=0, personal_steps=0, global_steps=0)
    rate = BANDWIDTH_HZ * np.log2(1 + 1e-10 * 0.63 / NOISE_W)
    share = method.payload(0.0).bits_up / (rate * BUDGET_S * part)
    played = engine.play(
        fleet, 1e-10, method, solver=lambda problem: (np.array([share]), np.zeros(1))
    )
    assert played.log.table("device_rounds").status.tolist() == [status]
    assert played.log.table("device_rounds").finish_s[0] == pytest.approx(
        BUDGET_S * part, rel=1e-12
    )


def test_devices_fail_at_other_times_in_another_round(engine):
    rows = engine.play(devices([3e9] * 8, failure_rate_hz=40.0), 1e-10, rounds=range(6)).log.table(
        "device_rounds"
    )
    failed = [
        tuple(rows[(rows["round"] == g) & (rows.status == "failed")].device) for g in range(6)
    ]
    assert len(set(failed)) > 1


def slow_download(env, channel):
    return BroadcastDownlink(env, channel, tx_power_w=1e-3, bandwidth_hz=1e4)


@pytest.mark.parametrize("solver", ["equal", "kkt"])
def test_a_method_that_decides_the_ratio_is_late_and_never_left_out(engine, solver):
    """The broadcast alone takes longer than the threshold; FedAvg-like costs still take part."""
    method = engine.method(personal_steps=0, warmup_steps=0, rho_bounds=(0.0, 0.0))
    played = engine.play(devices([3e9] * 3), 1e-10, method, solver=solver, downlink=slow_download)
    rows = played.log.table("device_rounds")
    assert (rows.download_s > BUDGET_S).all()
    assert rows.status.tolist() == ["late"] * 3
    assert rows.bits_up.tolist() == [32 * 4e5] * 3
    open_ratio = engine.play(devices([3e9] * 3), 1e-10, solver=solver, downlink=slow_download)
    assert open_ratio.log.table("device_rounds").status.tolist() == ["infeasible"] * 3


def test_stop_holds_for_plans_that_no_solver_bounds(engine):
    method = engine.method(rho_bounds=(0.0, 0.0))
    with pytest.raises(
        InfeasibleError,
        match=r"devices 0, 1 would be up to .* s later than the threshold of 0.002 s",
    ):
        engine.play(
            devices([3e9] * 2), 1e-10, method, solver="equal", budget_s=2e-3, when_infeasible="stop"
        )
    engine.play(
        devices([3e9] * 2), 1e-10, method, solver="equal", budget_s=1.0, when_infeasible="stop"
    )


def test_an_allocators_rounding_never_exceeds_the_band(engine):
    rounding = lambda problem: (np.full(4, (1 + 9e-10) / 4), np.full(4, 0.5))  # noqa: E731
    played = engine.play(devices([3e9] * 4), 1e-10, solver=rounding)
    assert sum(played.log.table("device_rounds").share) <= 1 + 1e-12
