"""Uplink power control: the standard's formula, plans with it, and what a run sends."""

import math
from pathlib import Path

import numpy as np
import pytest
import simpy

import edgesim
from edgesim.network.adaptation.power_control import BLOCK_HZ, PowerControl, make_power_control
from edgesim.network.channel import Channel
from edgesim.network.device import draw_fleet
from edgesim.network.planning.pruning_problem import pruning_problem
from edgesim.network.propagation.path_loss import large_scale_of, path_gains
from edgesim.runs.setup import set_up
from edgesim.scenario import load
from edgesim.seeds import Seeds
from fl.contracts import Demand, Work

URBAN = Path(__file__).parents[4] / "scenarios" / "urban-macro.yaml"
CONTROL = "network.power_control={p0: -85 dBm, alpha: 0.8}"
DEFAULT = PowerControl(10.0**-11.5, 0.8)


def dbm(watt):
    return 10.0 * np.log10(watt / 1e-3)


def test_the_standards_formula_by_hand():
    """PL 110 dB, 10 blocks at 30 kHz (mu = 1): -85 + 10 lg(2 x 10) + 0.8 x 110 = 16.010300 dBm.

    Without 2^mu it would be 13.0103 dBm.
    """
    share_hz = 10 * 12 * 30e3
    density = DEFAULT.density_w_per_hz(np.array([1e-11]))
    assert dbm(density * share_hz) == pytest.approx(16.010300, abs=1e-6)
    assert BLOCK_HZ == 180e3
    full = PowerControl(1e-12, 1.0).density_w_per_hz(np.array([1e-7, 1e-13]))
    assert full * [1e-7, 1e-13] * BLOCK_HZ == pytest.approx(1e-12)  # alpha 1: P0 arrives of all
    none = PowerControl(1e-12, 0.0).density_w_per_hz(np.array([1e-7, 1e-13]))
    assert none * BLOCK_HZ == pytest.approx(1e-12)  # alpha 0: P0 is sent by all


def test_a_channel_limits_the_power_by_share():
    """18 MHz are 100 blocks: 11 dBm each at PL 120 dB, 23 dBm from 15.9 on; -21 dBm at 80 dB."""
    channel = Channel(18e6, [1e-12, 1e-8], noise_w_per_hz=1e-20, power_control=DEFAULT)
    most_w, block_w = np.array([0.2, 0.2]), 10.0 ** (np.array([11.0, -21.0]) / 10.0) * 1e-3
    few = channel.sent_w(np.array([0.1, 0.1]), most_w, 0.0)
    assert few == pytest.approx(10 * block_w)
    assert channel.sent_w(1.0, most_w, 0.0) == pytest.approx([0.2, 100 * block_w[1]])
    free = Channel(18e6, [1e-11, 1e-8], noise_w_per_hz=1e-20)
    assert free.sent_w(0.3, most_w, 0.0) is most_w
    with pytest.raises(ValueError, match="noise density"):
        Channel(18e6, [1e-11], noise_w=1e-13, power_control=DEFAULT)


def test_the_implementation_loss_of_a_receiver_is_no_path_loss():
    scenario = load(
        URBAN, ["~schemes", CONTROL, "network.adaptation={rate: mcs, implementation_loss: 2 dB}"]
    )
    control = make_power_control(scenario.network)
    # a channel's gain has the 2 dB in it; the power is that of the loss without them
    with_loss = control.density_w_per_hz(np.array([1e-11 * 10**-0.2]))
    assert with_loss == pytest.approx(DEFAULT.density_w_per_hz(np.array([1e-11])))
    assert make_power_control(load(URBAN, ["~schemes"]).network) is None


@pytest.mark.parametrize("more", [[], ["network.fidelity=adapted"]], ids=["shannon", "mcs"])
def test_a_run_sends_what_power_control_says(more):
    """Static, so that plans come true: mean powers are those of the formula, nobody is late."""
    changes = [CONTROL, "rounds=1", "network.channel.fading=none", *more]
    scenario = load(URBAN, changes, "quantile")
    run = edgesim.simulate(scenario)
    spans = run.spans[(run.spans.phase == "upload") & (run.spans.bits > 0)].set_index("device")
    sent_w = spans.energy_j / (spans.end_s - spans.start_s)
    rows = run.device_rounds.set_index("device")
    blocks = rows.share[spans.index].to_numpy() * scenario.network.bandwidth_hz / 180e3
    path_loss_db = -10.0 * np.log10(gains_of(scenario)[spans.index])
    expected = np.minimum(23.0, -85.0 + 10.0 * np.log10(blocks) + 0.8 * path_loss_db)
    assert dbm(sent_w.to_numpy()) == pytest.approx(expected, abs=1e-9)
    assert not (rows.status == "late").any() and len(spans) > 10
    assert sent_w.min() < 1e-3 and np.ptp(expected) > 10.0


def gains_of(scenario):
    """Path gains [K] without the loss of the receiver."""
    streams = Seeds(scenario.seed)
    fleet = draw_fleet(scenario.devices, streams)
    return path_gains(large_scale_of(scenario.network, fleet, streams))


def test_power_control_prunes_more_and_spends_less():
    """Less power is never more rate; joules fall by more than the bits."""
    static = ["rounds=1", "network.channel.fading=none"]
    all_power = edgesim.simulate(load(URBAN, static, "quantile")).rounds.iloc[0]
    control = edgesim.simulate(load(URBAN, [*static, CONTROL], "quantile")).rounds.iloc[0]
    assert control.rho_mean > all_power.rho_mean + 0.1
    assert control.energy_j / control.bits_up < 0.1 * all_power.energy_j / all_power.bits_up
    # so much power that Pmax is what counts: as without
    loud = ["network.power_control={p0: 24 dBm, alpha: 1}"]
    same = edgesim.simulate(load(URBAN, [*static, *loud], "quantile")).rounds.iloc[0]
    assert same.rho_mean == pytest.approx(all_power.rho_mean, rel=1e-9)
    assert math.isclose(same.energy_j, all_power.energy_j, rel_tol=1e-9)


def test_newcomers_on_a_part_of_the_band_send_what_the_formula_says():
    """A problem over a third of the band has the kinks of the whole: three times its shares."""
    scenario = load(URBAN, [CONTROL, "network.channel.fading=none"], "quantile")
    cell = set_up(scenario).cell(simpy.Environment())
    view, count = cell.view(0), len(cell.fleet)
    devices, one = np.arange(count), np.ones(count)
    work = Work(1e3 * one, 0.0 * one)
    demand = Demand(devices, 1e3 * one, 1e6 * one, work, work, 0.0 * one, one, one)
    gain = cell.channel.path_gain
    problems = [
        pruning_problem(cell.channel, cell.fleet, demand, view, devices, one, 0.0 * one, gain, band)
        for band in (1.0, 1.0 / 3.0)
    ]
    whole, part = problems
    narrow = part.full_power_share < 1.0
    assert 0 < narrow.sum() < count
    assert part.full_power_share[narrow] == pytest.approx(3.0 * whole.full_power_share[narrow])
    share = np.full(count, 0.2)
    assert part.rate_at(3.0 * share) == pytest.approx(whole.rate_at(share))
