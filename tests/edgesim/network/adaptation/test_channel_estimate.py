"""Old and noisy channel estimates: their correlation, what flows lose by them, what plans see."""

import math
from pathlib import Path

import numpy as np
import pytest
import simpy
from scipy import stats

from edgesim.errors import ScenarioError
from edgesim.network.adaptation.block_errors import Harq, RepeatedSchemes
from edgesim.network.adaptation.channel_estimate import (
    ChannelEstimate,
    delay_correlation,
    pilot_correlation,
)
from edgesim.network.adaptation.drawn_repetitions import DrawnRepetitions
from edgesim.network.adaptation.link_adaptation import schemes
from edgesim.network.fading.processes import COHERENCE_RULE, BlockFading, ClarkeFading, doppler_hz
from edgesim.network.planned_gains import PlannedGains
from edgesim.network.uplink import Uplink
from edgesim.runs.run import simulate
from edgesim.runs.setup import set_up
from edgesim.scenario import load
from edgesim.seeds import Seeds
from fl.contracts import Grant

FILE = Path(__file__).parents[4] / "scenarios" / "urban-macro.yaml"
SCHEMES = RepeatedSchemes(*schemes("64qam"), Harq())
F_D = doppler_hz(3 / 3.6, 3.5e9)


def estimate(fading, delay_s=0.0, pilots=1e12):
    return ChannelEstimate(fading, Seeds(0), SCHEMES, delay_s, pilots)


@pytest.mark.parametrize(
    ("speed_km_h", "delay_s", "rho"),
    [(3, 5e-3, 0.976813), (3, 10e-3, 0.908864), (30, 5e-3, -0.277917)],
)
def test_the_correlation_of_a_delay(speed_km_h, delay_s, rho):
    shift_hz = doppler_hz(speed_km_h / 3.6, 3.5e9)
    assert delay_correlation(shift_hz, delay_s) == pytest.approx(rho, abs=1e-6)
    assert pilot_correlation(10.0, 4.0) ** 2 == pytest.approx(40.0 / 41.0)


@pytest.mark.parametrize(("known", "quantile"), [(0.2, 0.022499), (1.0, 0.219276), (3.0, 1.184835)])
def test_what_is_true_given_what_is_known(known, quantile):
    """rho = 0.9: 5 % of |h|^2 lie below, by the noncentral chi-square law and in the draws."""
    spread = (1.0 - 0.81) / 2.0
    law = stats.ncx2(2, 0.81 * known / spread, scale=spread)
    assert law.ppf(0.05) == pytest.approx(quantile, abs=1e-6)
    count = 400_000
    fading = BlockFading(Seeds(1), count, 1.0)
    seen = estimate(fading, 0.0, 1.0).power(3, 0.81 / 0.19, np.arange(count))
    near = np.abs(seen / known - 1.0) < 0.03
    assert seen.mean() == pytest.approx(1.0, abs=0.01)
    below = (fading.power(3)[near] < quantile).mean()
    assert below == pytest.approx(0.05, abs=3 * math.sqrt(0.05 * 0.95 / near.sum()) + 2e-3)


def test_a_block_decorrelates_with_its_coherence_time_and_clarke_is_played():
    count = 60_000
    fading = BlockFading(Seeds(1), count, COHERENCE_RULE / F_D, 1e-9)
    seen = estimate(fading, 10e-3).power(2, 1.0, np.arange(count))
    rho = np.corrcoef(seen, fading.power(2))[0, 1]  # of powers: the square of that of amplitudes
    assert rho == pytest.approx(0.908864**2, abs=0.02)
    waves = ClarkeFading(Seeds(1), 5, F_D)
    seen = estimate(waves, 3e-3).power(7, 1.0, np.arange(5))
    then = np.abs(waves.amplitudes(0, 3e-3 - 7 * waves.step_s)[1]) ** 2
    assert seen == pytest.approx(then, rel=1e-5)


def test_a_perfect_estimate_loses_nothing_and_a_wrong_one_does():
    fading = BlockFading(Seeds(0), 4, 1.0)
    perfect = estimate(fading)
    everybody = np.arange(4)
    assert perfect.power(1, 1.0, everybody) == pytest.approx(fading.power(1), rel=1e-5)
    snr = 10.0 ** np.linspace(-1, 2.5, 50)
    best = SCHEMES.harq.goodput(10 * np.log10(snr)[:, None], SCHEMES.half_db, SCHEMES.bits)
    assert perfect.efficiency(snr, snr) == pytest.approx(best.max(axis=1), rel=1e-12)
    for known in (snr / 4.0, snr * 4.0):
        assert (perfect.efficiency(snr, known) <= best.max(axis=1) + 1e-12).all()
    assert perfect.efficiency(snr, snr * 4.0).sum() < 0.9 * best.max(axis=1).sum()


def test_what_a_scheme_carries_that_was_chosen_by_a_wrong_estimate():
    """Scheme 0 (120/512 bit/s/Hz) loses a tenth of its blocks at its least ratio, -6.38 dB, and
    with the energy of two none: 0.234375 / 1.1.

    An estimate of -0.41 dB chooses scheme 5 (379/512 from -0.51 dB on), of which three blocks at
    -6.38 dB, so -1.61 dB in all, are lost, and of a fourth, -0.36 dB, 1 / (1 + 9 e^1.5) = 0.0242:
    (1 - 0.0242) 0.740234 / 4.
    """
    perfect = estimate(BlockFading(Seeds(0), 1, 1.0))
    true, wrong = float(SCHEMES.snr[0]), 10.0**-0.041
    assert 10.0 * math.log10(true) == pytest.approx(-6.38, abs=0.005)
    assert perfect.efficiency(true, true) == pytest.approx(0.234375 / 1.1, rel=1e-6)
    assert perfect.efficiency(true, wrong) == pytest.approx(0.9758 * 0.740234 / 4.0, rel=5e-3)
    assert perfect.efficiency(wrong, true) == pytest.approx(0.234375, rel=1e-6)


CSI = "network.adaptation={{rate: mcs, errors: expected{}}}"
FEW = ["~schemes", "devices.0.count=5", "network.channel.fading={kind: rayleigh, speed: 3 km/h}"]
FEW += ["allocation={solver: kkt, rate: now}", "budget.latency_threshold=1 s"]


def channel_with(csi):
    return set_up(load(FILE, [*FEW, CSI.format(csi)])).channel


def test_the_flow_sees_the_truth_and_the_plan_the_estimate():
    """Bits are the integral of the goodput of schemes that were chosen by the estimate."""
    known, channel = channel_with(""), channel_with(", csi: {delay: 5 ms, pilots: 4}")
    everybody = np.arange(5)
    assert channel.gains(0.3).tolist() == known.gains(0.3).tolist()
    assert known.known_gains(0.3, 1e12, everybody).tolist() == known.gains(0.3).tolist()
    plan = channel.known_gains(0.3, 1e12, everybody)
    seen = channel.estimate.power(channel.block(0.3), 1e9, everybody)
    assert plan == pytest.approx(channel.path_gain * seen, rel=1e-6)
    assert (plan != known.gains(0.3)).all()
    ends_s = []
    for each in (known, channel):
        env, segments = simpy.Environment(), []
        link = Uplink(env, each, on_segment=lambda *told, kept=segments: kept.append(told))
        power_w = 10.0 * each.noise_w_per_hz * 4e6 / each.path_gain[1]  # 10 dB on average
        grant = Grant(1, 0.2, 0.0, 1e9, power_w)
        link.begin_round([grant])
        env.run(env.process(link.carry(2e6, grant)))
        ends_s.append(env.now)
        assert sum(told[5] for told in segments) == pytest.approx(2e6, rel=1e-12)
    for _, start_s, _, share, rate, _ in segments[:5]:
        gain, used_hz = channel.gains(start_s)[1], share * channel.bandwidth_hz
        snr_db = 10 * np.log10(gain * power_w / channel.noise_w_per_hz / used_hz)
        seen = channel.estimate.power(channel.block(start_s), 10.0, 1)
        best = SCHEMES.best(10.0 + 10 * np.log10(seen))
        goodput = SCHEMES.harq.goodput(snr_db, SCHEMES.half_db[best], SCHEMES.bits[best])
        assert rate == pytest.approx(float(used_hz * goodput), rel=1e-9)
    assert ends_s[1] > ends_s[0]


def test_plans_of_a_downlink_know_its_channel():
    """As the downlink does: the gain of the instant, and with 95 % over one Rayleigh block
    -ln(0.95) = 0.0512933 of the mean gain. Uploads beside it count with the estimate.
    """
    known, channel = channel_with(""), channel_with(", csi: {delay: 5 ms, pilots: 4}")
    everybody, block_s = np.arange(5), np.zeros(5)
    about = 0.3, everybody, 10.0 / channel.path_gain, block_s, 0.05  # 10 dB on average
    now = PlannedGains(channel, "now", downlink=True)
    assert now.uploads(*about).tolist() == channel.gains(0.3).tolist()
    assert now.worst_listener(0.3, everybody, 1e12) == channel.gains(0.3).min()
    for rate in ("mean", "quantile"):
        down, without, up = (
            PlannedGains(each, rate, downlink=is_down).uploads(*about)
            for each, is_down in ((channel, True), (known, True), (channel, False))
        )
        assert down.tolist() == without.tolist() and (up < 0.9 * down).any()
    for each in (known, channel):
        each.fading = BlockFading(Seeds(0), 5, 1.0)
    rayleigh = PlannedGains(channel, "quantile", downlink=True).uploads(*about)
    assert rayleigh == pytest.approx(0.0512933 * channel.path_gain, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("errors", ["expected", "drawn"])
def test_runs_with_estimates_say_how_often_blocks_were_sent(errors):
    """Wrong schemes cost repetitions: more than the 1.0 to 1.1 of a channel that is known."""
    csi = CSI.format(", csi: {delay: 8 ms, pilots: 4}").replace("expected", errors)
    run = simulate(load(FILE, [*FEW, csi, "rounds=3"]))
    taken = run.device_rounds["transmissions"]
    assert taken.between(1.0, 4.0).all() and 1.0 < taken.mean() < 2.5
    known = simulate(load(FILE, [*FEW, CSI.format("").replace("expected", errors), "rounds=1"]))
    assert "transmissions" not in known.device_rounds


@pytest.mark.slow
def test_a_block_lost_after_all_repetitions_waits_for_a_status():
    """One transmission at the 10 % point: a tenth of the uploads ends 20 ms later."""
    once = RepeatedSchemes(*schemes("64qam"), Harq(most=1))
    drawn = DrawnRepetitions(once, Seeds(0), status_delay_s=20e-3)
    snr = float(once.snr[8])
    tails = np.array([drawn.draw(0, 0.01 * n, snr, 1e6, 1e6)[1] for n in range(2000)])
    snr_db = 10 * np.log10(snr)
    lost = once.harq.lost(snr_db, once.half_db[once.best(snr_db)])[0]
    assert lost == pytest.approx(0.1, abs=0.01)
    assert set(tails.tolist()) == {0.0, 20e-3}
    assert (tails > 0.0).mean() == pytest.approx(lost, abs=0.025)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        (["network.adaptation={rate: mcs, csi: {pilots: 4}}"], "which loses no blocks"),
        ([CSI.format(", csi: {pilots: 0}")], "at least 1"),
        ([CSI.format(", csi: {delay: -1 ms}")], "at least 0"),
        ([CSI.format(", csi: {}"), "network.channel.fading=none"], "csi is read with fading only"),
        (
            [CSI.format(", csi: {}"), "network.uplink.share=fair"],
            "fair, which knows its channel",
        ),
        (["network.adaptation={rate: mcs, harq: {status_delay: 1 ms}}"], "repeats no blocks"),
    ],
)
def test_what_does_not_fit_is_one_sentence(changes, part):
    with pytest.raises(ScenarioError) as refused:
        load(FILE, [*FEW, *changes])
    assert part in str(refused.value) and "\n" not in str(refused.value)
