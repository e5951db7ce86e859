"""Newcomers divide what is not promised to devices at work, and rounds on a shared band."""

import numpy as np
import pytest
import simpy

from edgesim import load, simulate
from edgesim.errors import EdgesimError
from edgesim.network.cell import Cell
from edgesim.network.channel import Channel
from edgesim.network.flows.ideal_downlink import IdealDownlink
from edgesim.network.uplink import Uplink
from edgesim.seeds import Seeds
from fl.contracts import Demand, Grant, RoundPlan, Work
from solvers import allocate
from tests.edgesim.network.fleets import make_fleet

KEPT = (0.2, 0.4)  # 1 Mbit at 10 Mbit/s due in 0.5 and in 0.25 s


@pytest.fixture
def cell():
    """Rates 10, 10 and 20 Mbit/s over the whole band, threshold 0.5 s; device 2 computes 0.1 s."""
    env, snr = simpy.Environment(), np.array([1.0, 1.0, 3.0])
    channel = Channel(1e7, snr, noise_w=1.0)
    fleet = make_fleet(tx_power_w=1.0, cpu_hz=[1.0] * 3, cycles_per_weight=1.0)
    uplink = Uplink(env, channel)
    links = uplink, IdealDownlink(env, channel)
    keep = {"budget_s": 0.5, "keeps_promises": True}
    return Cell(env, channel, fleet, allocate, *links, np.ones(3), Seeds(0), **keep)


def demand(bits, rho_max=1.0):
    zero, one = np.zeros(1), np.ones(1)
    bits, work = (0 * one, np.array([bits])), (Work(0.1 * one), Work(zero))
    return Demand(np.array([2]), *bits, *work, zero, rho_max * one, one, zero)


def occupied(cell, *shares):
    cell.begin_round(RoundPlan([Grant(k, b, 0.0, 1.0, 1.0) for k, b in enumerate(shares)]), True)


def test_a_newcomer_sends_unpruned_in_what_is_left(cell):
    occupied(cell, *KEPT)
    assert cell.uplink.free_share == pytest.approx(0.4)
    (grant,) = cell.plan(demand(1e6), cell.view(0)).grants
    assert (grant.share, grant.rho) == (pytest.approx(0.125), 0.0)  # 1 Mbit / 20 Mbit/s / 0.4 s


def test_a_newcomer_is_pruned_to_what_is_left(cell):
    """0.4 of 20 Mbit/s in 0.4 s are 3.2 Mbit: 0.4 x 2 bit/s/Hz x 0.4 s / 4 Mbit a hertz more."""
    occupied(cell, *KEPT)
    plan = cell.plan(demand(4e6), cell.view(0))
    (grant,) = plan.grants
    assert grant.share == pytest.approx(0.4) and grant.rho == pytest.approx(0.2)
    assert plan.pruning_per_hz == pytest.approx(-8e-8) and plan.pruning_per_s == pytest.approx(-2.0)


def test_who_does_not_fit_waits_and_no_promise_is_revoked(cell):
    occupied(cell, *KEPT)
    assert len(cell.plan(demand(4e6, rho_max=0.1), cell.view(0)).grants) == 0
    cell.uplink.release(0)
    (grant,) = cell.plan(demand(4e6, rho_max=0.1), cell.view(0)).grants
    assert grant.share == pytest.approx(0.5) and grant.rho == 0.0
    occupied(cell, 0.6)
    assert len(cell.plan(demand(1e3), cell.view(0)).grants) == 0


CELL = """
name: four
rounds: 3
network:
  bandwidth: 4 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: [95 dB, 100 dB, 105 dB, 90 dB]}}
devices:
  - {count: 4, tx_power: 23 dBm, idle_power: 0.1 W, cpu: {frequency: [2 GHz, 1 GHz, 70 MHz, 30 MHz],
     flops_per_cycle: 4}}
budget: {latency_threshold: 60 ms}
learning: {dataset: none, model: mlp, batch_size: 10, method: {name: pruning-only}}
"""


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "four.yaml"
    path.write_text(CELL)
    return lambda *changes: simulate(load(path, changes))


@pytest.mark.parametrize("clock", ["{mode: synchronous}", "{mode: buffered, buffer: 2}"])
def test_band_that_is_not_used_makes_nobody_later_than_planned(run, clock):
    solver = "equal" if "buffered" in clock else "kkt"
    finish = {}
    for share in ("fixed", "fair", "edf"):
        log = run(f"clock={clock}", f"allocation.solver={solver}", f"network.uplink.share={share}")
        jobs = log.log.table("device_rounds")
        back = jobs[jobs.status.isin(["arrived", "late"])]
        assert set(back.status) == {"arrived"}
        finish[share] = back.finish_s.mean()
    assert finish["fair"] < finish["fixed"] and finish["edf"] < finish["fixed"]


def test_who_waits_for_the_band_does_not_send(run):
    """edf: joules of an upload are the transmit power in its air time and idle power before."""
    spans = run("network.uplink.share=edf", "rounds=1").log.table("spans")
    sent = spans[spans.phase == "upload"]
    seconds = (sent.end_s - sent.start_s).to_numpy()
    air_s = (sent.energy_j.to_numpy() - 0.1 * seconds) / (10**-0.7 - 0.1)
    assert (air_s <= seconds + 1e-12).all() and (air_s < 0.9 * seconds).any()
    assert air_s.sum() <= sent.end_s.max() - sent.start_s.min() + 1e-12


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["network.noise=-174 dBm/Hz"], "is edf, which is best only where the noise is a power"),
        (
            ["network.carrier={frequency: 3.5 GHz, bandwidth: 5 MHz, scs: 15 kHz,"
             " tdd: DDDSU, tdd_clock: slots}", "network.bandwidth=4.5 MHz"],
            "which counts with the mean over the TDD pattern",
        ),
        (["devices.0.battery={capacity: 10 J}"], "devices.0 has hardware that counts sending"),
        (
            ["network.adaptation={rate: mcs, errors: drawn, harq: {most: 2}}",
             "network.noise=-174 dBm/Hz", "allocation.solver=equal"],
            "is edf, which does not repeat lost blocks",
        ),
    ],
)  # fmt: skip
def test_what_a_shared_band_does_not_go_with_is_one_sentence(run, changes, said):
    with pytest.raises(EdgesimError) as refused:
        run("network.uplink.share=edf", *changes)
    assert said in str(refused.value) and "\n" not in str(refused.value)
