"""Times and joules that plans count with, on a channel that stands still: what it then takes."""

from __future__ import annotations

import numpy as np
import pytest

from edgesim import load, simulate
from edgesim.network.channel import Channel
from edgesim.network.fading.selective import SelectiveFading
from edgesim.network.planning import settled_plans
from edgesim.runs.run import feasibility
from edgesim.seeds import Seeds

STILL = """
name: still
rounds: 1
network:
  bandwidth: 20 MHz
  carrier: {frequency: 3.5 GHz}
  noise: -169 dBm/Hz
  channel:
    path_loss: {model: constant, loss: 110 dB}
    fading: {kind: rayleigh, speed: 0.000001 m/s, process: clarke, delay_spread: 200 ns}
devices:
  - count: 6
    tx_power: 23 dBm
    cpu: {frequency: {uniform: [0.5 GHz, 3 GHz]}, cycles_per_weight: 1000}
budget: {latency_threshold: 300 ms}
allocation: {solver: kkt}
learning:
  dataset: none
  model: digits-cnn
  batch_size: 2
  method: {name: pruning-only, local_steps: 5, warmup_steps: 1, lr: 0.1, rho_max: 0.9}
"""
EQUAL = "allocation.solver=equal"
NO_THRESHOLD = ["learning.method={name: fedavg, local_steps: 5}", "budget.latency_threshold=none"]


@pytest.fixture
def still(tmp_path):
    path = tmp_path / "still.yaml"
    path.write_text(STILL)
    return lambda *changes: load(path, list(changes))


@pytest.mark.parametrize(
    "changes",
    [
        (),
        (EQUAL, *NO_THRESHOLD),
        (EQUAL, *NO_THRESHOLD, "network.noise=-100 dBm"),
        (EQUAL, *NO_THRESHOLD, "network.power_control={p0: -85 dBm, alpha: 0.8}"),
        (EQUAL, *NO_THRESHOLD, "network.downlink={mode: unicast, tx_power: 40 dBm}"),
    ],
)
def test_check_gives_the_times_that_the_round_then_takes(still, changes):
    """The gain was that of the whole band: 0.5 to 3 % too short, however the band was divided."""
    scenario = still(*changes)
    planned_ms = [row["planned_ms"] for row in feasibility(scenario).rows]
    run = simulate(scenario, seed=0)
    assert set(run.device_rounds.status) == {"arrived"}
    assert planned_ms == pytest.approx((1e3 * run.device_rounds.finish_s).tolist(), rel=1e-9)


def test_an_estimated_channel_is_planned_as_it_is_known_in_the_share(still):
    """Plans of kkt end at the threshold; pilots in a share are stronger than in the whole band."""
    known = "network.adaptation={rate: mcs, errors: expected, csi: {delay: 0 s, pilots: 1}}"
    flat = "network.channel.fading={kind: rayleigh, speed: 0.000001 m/s}"
    rows = feasibility(still(known, flat, "network.channel.path_loss.loss=134 dB")).rows
    assert [row["planned_ms"] for row in rows] == pytest.approx([300.0] * 6, rel=1e-6)


@pytest.mark.parametrize("noise", ["noise_w", "noise_w_per_hz"])
def test_without_a_share_or_without_power_there_is_no_rate(noise):
    """Others have what flows, be it in a share of the band or all of it."""
    fading = SelectiveFading(Seeds(0), 4, 1e-9, 0.0, 1e-7, 1e6, 4)
    channel = Channel(1e6, np.ones(4), **{noise: 1.0}, fading=fading)
    share, power_w = np.array([0.0, 0.5, 0.5, 1.0]), np.array([1.0, 0.0, 1.0, 1.0])
    with np.errstate(all="raise"):
        rate_bps = channel.known_bps(0.0, np.arange(4), share, power_w)
    assert rate_bps[:2].tolist() == [0.0, 0.0] and (rate_bps[2:] > 0.0).all()
    sent = 0.0, np.arange(4), share, power_w, channel.gains(0.0)
    assert rate_bps == pytest.approx(channel.flow_bps(*sent), rel=1e-12)


def test_a_battery_that_holds_what_a_round_takes_is_enough(still):
    """It was so with less: the planned upload was too short."""
    spent_j = simulate(still(EQUAL, *NO_THRESHOLD), seed=0).device_rounds.energy_j.tolist()
    for part, fits in ((1.001, True), (0.999, False)):
        battery = f"{{capacity: 2 J, start: {[part * each / 2.0 for each in spent_j]}}}"
        scenario = still(EQUAL, *NO_THRESHOLD, f"devices.0.battery={battery}")
        assert {row["feasible"] for row in feasibility(scenario).rows} == {fits}


def test_who_is_cut_off_sends_until_the_threshold(still):
    """The upload began too late for its share, and whoever was cut off was late."""
    slow = "devices.0.cpu={frequency: 10 MHz, flops_per_cycle: 4}"
    learning = (
        "learning={dataset: digits, partition: {kind: iid}, samples_per_device: 20, "
        "model: mlp, batch_size: 10, method: {name: fedavg, lr: 0.1, local_steps: 400}}"
    )
    cut = "clock={mode: deadline, partial: cut}"
    done = simulate(still(EQUAL, slow, learning, cut), seed=0).device_rounds
    assert set(done.status) == {"arrived"}
    assert done.finish_s.tolist() == pytest.approx([0.3] * 6, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("rate", ["now", "quantile"])
def test_a_plan_of_one_cell_that_still_changes_in_its_last_turn_says_so(still, rate, monkeypatch):
    """The gain depends on the share, and the share on the gain: equal shares are not enough."""
    moves = "network.channel.fading.speed=30 km/h", f"allocation.rate={rate}"
    assert unsettled(simulate(still(*moves))) == []
    monkeypatch.setattr(settled_plans, "REPLANS", 0)
    (sentence,) = unsettled(simulate(still(*moves)))
    assert sentence.startswith("the plans of 1 round, first of round 0, have not settled: ")


@pytest.mark.slow
def test_turns_that_are_mixed_end_where_plain_ones_do(still, monkeypatch):
    moves = "network.channel.fading.speed=30 km/h", "allocation.rate=now"
    plain = simulate(still(*moves)).device_rounds
    monkeypatch.setattr(settled_plans, "PLAIN_REPLANS", 0)
    mixed = simulate(still(*moves))
    assert unsettled(mixed) == []
    assert mixed.device_rounds["share"].to_numpy() == pytest.approx(plain["share"], rel=1e-3)


def unsettled(run):
    return [each for each in run.summary["warnings"] if "not settled" in each]
