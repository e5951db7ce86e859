"""Fading over the band: correlation in time and frequency, what flows, and what plans promise."""

from pathlib import Path

import numpy as np
import pytest
import simpy
from scipy import integrate, special

from edgesim import simulate
from edgesim.errors import ScenarioError
from edgesim.network.channel import Channel
from edgesim.network.fading.selective import (
    SelectiveFading,
    effective_snr,
    fades_in_band,
    parts_of,
)
from edgesim.network.planning import planner
from edgesim.network.uplink import Uplink
from edgesim.scenario import load
from edgesim.seeds import Seeds
from fl.contracts import Grant

FILE = Path(__file__).parents[4] / "scenarios" / "urban-macro.yaml"
F_D, TAU = 30 / 3.6 * 3.5e9 / 3e8, 97e-9


def fading(devices, band_hz=18.36e6, parts=13, k_factor=0.0, tau=TAU):
    return SelectiveFading(
        Seeds(0), devices, F_D, k_factor, delay_spread_s=tau, bandwidth_hz=band_hz, parts=parts
    )


@pytest.mark.parametrize(("df_hz", "dt_s"), [(0.0, 2e-3), (2.84e6, 0.0), (1e6, 1e-3), (40e6, 0.0)])
def test_the_correlation_is_a_product_of_one_in_time_and_one_in_frequency(df_hz, dt_s):
    """J0(2 pi f_D dt) / (1 + j 2 pi df tau); of 24 waves E|a|^4 is 2 - 1/24."""
    band = fading(20_000, band_hz=2.0 * df_hz, parts=2)  # parts at -df / 2 and df / 2
    now, then = band.scattered(0.7), band.scattered(0.7 + dt_s)
    expected = special.j0(2 * np.pi * F_D * dt_s) / (1 + 2j * np.pi * df_hz * TAU)
    found = (then[:, 1] * now[:, 0].conj()).mean()
    assert abs(found - expected) < 0.02
    assert (np.abs(now) ** 4).mean() == pytest.approx(2 - 1 / 24, abs=0.1)


@pytest.mark.parametrize(("tau", "df_hz"), [(97e-9, 2.84e6), (267e-9, 1.03e6)])
def test_half_of_the_correlation_is_left_after_2_84_mhz_at_97_ns(tau, df_hz):
    """sqrt(3) / (2 pi tau); 1.03 MHz at 267 ns."""
    now = fading(20_000, band_hz=2.0 * df_hz, parts=2, tau=tau).scattered(0.7)
    assert abs((now[:, 1] * now[:, 0].conj()).mean()) == pytest.approx(0.5, abs=0.02)


@pytest.mark.slow
def test_the_mean_over_the_band_varies_as_that_of_4_42_fades():
    """x = 2 pi 18.36 MHz 97 ns = 11.1898, x atan x = 16.5795, ln(1 + x^2) / 2 = 2.4190: a part of
    2 / 125.21 x 14.1605 = 0.22619 of the variance of one is left."""
    x = 2 * np.pi * 18.36e6 * TAU
    part, _ = integrate.quad(lambda d: 2 * (1 - d) / (1 + (x * d) ** 2), 0.0, 1.0)
    assert part == pytest.approx(0.22619, abs=1e-5)
    assert fades_in_band(18.36e6, TAU) == pytest.approx(1 / part, rel=1e-9)
    assert fades_in_band(1e3, TAU) == 1.0
    power = fading(20_000, parts=104).power(40)
    assert power.mean() == pytest.approx(1.0, abs=0.01)
    assert power.var() == pytest.approx(0.22619, rel=0.05)


def test_it_needs_no_history_and_one_device_more_moves_nobody():
    band = fading(3, k_factor=np.array([0.0, 1.0, 8.0]))
    later = band.powers(17)
    assert fading(4, k_factor=np.array([0.0, 1.0, 8.0, 2.0])).powers(17)[:3].tolist() == (
        later.tolist()
    )
    band.powers(3)
    assert band.powers(17).tolist() == later.tolist()
    assert band.powers(17, devices=1).tolist() == later[1].tolist()
    assert band.power(17) == pytest.approx(later.mean(axis=1))


def test_parts_have_at_most_four_resource_blocks():
    assert [parts_of(0.0, n) for n in (1, 4, 5, 51, 273)] == [1, 1, 2, 13, 69]
    assert parts_of(20e6, None) == 14 and parts_of(1.44e6, None) == 1
    # g 2 and 6 in two halves of the band: sqrt(3 x 7) - 1
    assert effective_snr(4.0, np.array([0.5, 1.5])) == pytest.approx(21**0.5 - 1)


def test_the_flow_is_the_mean_over_the_parts():
    """Rate b W mean_r log2(1 + g |a_r|^2), in every stretch."""
    band = fading(2)
    channel = Channel(18.36e6, np.array([1e-11, 1e-12]), noise_w_per_hz=1e-20, fading=band)
    env, segments = simpy.Environment(), []
    link = Uplink(env, channel, on_segment=lambda *told: segments.append(told))
    grant = Grant(1, 0.25, 0.0, 1e9, 0.2)
    link.begin_round([grant])
    env.run(env.process(link.carry(1e6, grant)))
    assert sum(told[5] for told in segments) == pytest.approx(1e6) and len(segments) > 3
    for _, start_s, _, share, rate, _ in segments:
        used_hz = share * 18.36e6
        snr = 1e-12 * 0.2 / (1e-20 * used_hz) * band.powers(channel.block(start_s))[1]
        assert rate == pytest.approx(used_hz * np.log2(1 + snr).mean(), rel=1e-9)
    flat = channel.flat_gains(0.0, 7e11, np.arange(2))
    mean = np.log2(1 + channel.path_gain[:, None] * 7e11 * band.powers(0)).mean(axis=1)
    assert np.log2(1 + 7e11 * flat) == pytest.approx(mean)


def test_no_delay_spread_is_a_flat_band():
    band = fading(5, tau=0.0)
    assert band.powers(3) == pytest.approx(np.repeat(band.power(3)[:, None], 13, axis=1))


SELECTIVE = "network.channel.fading={kind: rayleigh, speed: 3 km/h, process: clarke%s}"
CELL = ["~schemes", "rounds=8", "devices.0.count=8", "budget.latency_threshold=200 ms"]


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["network.adaptation={rate: mcs}"]], ids=["shannon", "mcs"])
def test_a_plan_for_a_quantile_counts_with_the_width_of_the_band(more):
    wide = simulate(load(FILE, [*CELL, *more, SELECTIVE % ", delay_spread: 97 ns"])).summary
    count = 8 * 8
    assert wide["late_share"] <= wide["promised_late_share"] + 3 * (0.05 * 0.95 / count) ** 0.5
    assert 0.04 < wide["promised_late_share"] <= 0.05 + 1e-4
    flat = simulate(load(FILE, [*CELL, *more, SELECTIVE % "", "rounds=1"])).summary
    first = simulate(load(FILE, [*CELL, *more, SELECTIVE % ", delay_spread: 97 ns", "rounds=1"]))
    assert first.summary["rho_mean"] < flat["rho_mean"] + (0.002 if more else -0.02)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        (["network.channel.fading={kind: rayleigh, speed: 3 km/h, delay_spread: 97 ns}"], "clarke"),
        (["network.channel.fading={kind: none, delay_spread: 97 ns}"], "reads no delay_spread"),
        ([SELECTIVE % ", delay_spread: 1 s"], "at most 0.001"),
        ([SELECTIVE % ", delay_spread: 97 ns", "network.uplink.share=fair"], "a flat band"),
        (
            [
                SELECTIVE % ", delay_spread: 97 ns",
                "network.adaptation={rate: mcs, errors: expected, csi: {}}",
            ],
            "one fade of the whole band",
        ),
    ],
)
def test_what_does_not_fit_is_one_sentence(changes, part):
    with pytest.raises(ScenarioError) as refused:
        load(FILE, ["~schemes", *changes])
    assert part in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("mode", "loss", "solver"),
    [
        ("synchronous", 110, "kkt"),
        ("synchronous", 122, "kkt"),
        ("asynchronous", 110, "kkt"),
        ("asynchronous", 122, "kkt"),
        ("synchronous", 140, "latency"),  # at -11 dB, where plain repetition swings ever further
    ],
)
def test_on_a_channel_that_stands_still_every_device_ends_at_the_threshold(
    mode, loss, solver, tmp_path, monkeypatch
):
    """The gain of a share was that of an equal one: all were up to 13 % late for their plans."""
    path = tmp_path / "still.yaml"
    path.write_text(f"""
name: still
rounds: {2 if mode == "synchronous" else 20}
network:
  bandwidth: 20 MHz
  carrier: {{frequency: 3.5 GHz}}
  noise: -169 dBm/Hz
  channel:
    path_loss: {{model: constant, loss: {loss} dB}}
    fading: {{kind: rayleigh, speed: 0.000001 m/s, process: clarke, delay_spread: 200 ns}}
devices:
  - count: 10
    tx_power: 23 dBm
    cpu: {{frequency: {{uniform: [0.5 GHz, 3 GHz]}}, cycles_per_weight: 1000}}
budget: {{latency_threshold: 300 ms}}
allocation: {{solver: {solver}}}
learning:
  dataset: none
  model: digits-cnn
  batch_size: 2
  method: {{name: pruning-only, local_steps: 5, warmup_steps: 1, lr: 0.1, rho_max: 0.9}}
clock: {{mode: {mode}}}
""")
    solved = []
    allocate = planner.allocate
    monkeypatch.setattr(planner, "allocate", lambda *a: solved.append(1) or allocate(*a))
    run = simulate(load(path), seed=0)
    done = run.device_rounds.query("finish_s > 0")
    assert len(done) == 20
    if solver == "kkt":
        assert set(done.status) == {"arrived"}
        assert done.finish_s.to_numpy() == pytest.approx(0.3, rel=1e-6)
    else:  # all end together, as this solver has it
        assert np.ptp(done.query("round == 0").finish_s) < 1e-6 * done.finish_s.max()
    if mode == "synchronous":
        assert len(solved) <= 2 * 10  # of each round
