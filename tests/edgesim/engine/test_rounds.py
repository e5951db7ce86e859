"""Rounds as processes: finish times, shares and the integral of the rate, and how a round ends."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.edgesim.network.fleets import make_fleet

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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    """Device 0 is in time, 1 too late while it sends (a small share), 2 too late while it
    computes (3e8 Hz).
    """
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
