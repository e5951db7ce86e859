"""Plans of a network, sector by sector: by hand, and what they promise."""

from pathlib import Path

import numpy as np
import pytest

from edgesim import load, simulate
from edgesim.network.adaptation.power_control import PowerControl
from edgesim.network.downlink.sector_downlink import SectorDownlink
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.network_planning import network_planner
from edgesim.network.interference.sector_channel import DisturbedChannel, SectorChannel
from edgesim.network.planning import settled_plans
from edgesim.records.summary import unsettled_warnings
from solvers.rate_laws.efficiency_laws import CappedLaw, HullLaw

STAIRS = HullLaw(np.array([0.25, 1.0, 3.0, 10.0]), np.array([0.25, 0.8, 1.5, 2.5]))
LAWS = {"shannon": None, "hull": STAIRS, "truncated": CappedLaw(0.4, 10**2.2, 0.1)}

SCENARIOS = Path(__file__).parents[5] / "scenarios"
ONE_SECTOR = [
    "learning.dataset=none", "~learning.partition", "~evaluate", "rounds=1", "devices.0.count=6",
    "network.layout={kind: sites, position: {list: [[0 m, 0 m]]}}", "network.interference=none",
    "network.power_control=none", "allocation.rate=now", "budget.latency_threshold=1 s",
    "network.channel.fading={speed: 3 km/h, delay_spread: 1000 ns, process: clarke}",
]  # fmt: skip


def test_two_sectors_by_hand(network):
    """One device each: I = 0.2 W x 1e-11 / 10 MHz at both, 33.795951 Mbit/s over the whole band."""
    two = Couplings([[1e-10, 1e-11], [1e-11, 1e-10]], [0, 1])
    played = network.play(two, bandwidth_hz=10e6, budget_s=0.2)
    view = played.cell.view(0)
    assert view.rate_bps == pytest.approx([33.795951e6] * 2, abs=1.0)
    rows = played.log.table("device_rounds")
    assert rows.share.tolist() == [1.0, 1.0] and rows.finish_s.max() <= 0.2
    assert rows.rate_bps[1] > rows.rate_bps[0]  # whose processor is faster sends alone at first
    assert rows.rate_bps.between(33.795951e6, 73.207161e6).all()


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("power", [None, PowerControl(10**-11.5, 0.8)], ids=["all", "controlled"])
@pytest.mark.parametrize("heard", ["none", "events", "full"])
def test_nobody_is_late_who_was_planned_with_full_interference(network, law, power, heard):
    """Static, fixed shares: those who hear everybody all the time end at the threshold."""
    played = network.play(network.gains(3), heard, power=power, law=law, budget_s=0.2)
    rows, rounds = played.log.table("device_rounds"), played.log.table("rounds")
    assert rows.status.eq("arrived").all() and rounds.solver_residual.max() <= 1e-8
    assert rows.finish_s.max() <= 0.2 * (1.0 + 1e-9)
    assert (rows.rho > 0.0).any()
    if heard == "full":
        pruned = (rows.rho > 0.0) & (rows.rho < 1.0)
        assert rows.finish_s[pruned].to_numpy() == pytest.approx(0.2, rel=1e-9)
    else:
        assert rows.finish_s.min() < 0.2 * (1.0 - 1e-6)


@pytest.mark.parametrize("mode", ["broadcast", "unicast"])
def test_nobody_is_late_whose_download_was_planned_beside_all_sectors(network, mode):
    played = network.play(
        network.gains(3),
        budget_s=0.5,
        downlink=lambda env, channel: SectorDownlink(
            env, channel, channel.couplings, 1.0, mode=mode
        ),
    )
    rows = played.log.table("device_rounds")
    assert rows.status.eq("arrived").all() and rows.finish_s.max() <= 0.5 * (1.0 + 1e-9)
    assert rows.download_s.min() > 0.01 and (rows.rho > 0.0).any()


def test_plans_of_sectors_are_those_of_cells_in_this_interference(network):
    """The plan of sector 0 is that of a cell whose noise density is N0 + I_0."""
    couplings = network.gains(5)
    played = network.play(couplings, heard="full", budget_s=1.0)
    plan = played.cell.plan(*_asked(played))
    first = np.flatnonzero(couplings.serving == 0)
    alone = Couplings(couplings.gain[first][:, :1], np.zeros(len(first), dtype=int))
    noise = played.cell.channel.noise_w_per_hz + plan.density[0]
    cell = network.play(alone, budget_s=1.0, noise_w_per_hz=noise, planned="none")
    share = plan.grants.share[np.isin(plan.grants.device, first)]
    # clocks differ: the fleet of three has others than the first three of twelve
    assert share.sum() == pytest.approx(1.0) and len(cell.log.table("device_rounds")) == len(first)
    for s in range(couplings.sectors):
        of_s = plan.grants.share[couplings.serving[plan.grants.device] == s]
        assert of_s.sum() <= 1.0 + 1e-12


def _asked(played):
    cell, method = played.cell, played.method if hasattr(played, "method") else None
    view = cell.view(0)
    from tests.edgesim.conftest import TimingMethod

    method = method or TimingMethod()
    return method.demand(None, view, view.idle), view


@pytest.mark.slow
def test_the_interference_of_a_plan_is_that_of_its_grants(network):
    """With power control it depends on the shares, which depend on it."""
    power = PowerControl(10**-11.5, 0.8)
    played = network.play(network.gains(7), power=power, budget_s=1.0)
    plan = played.cell.plan(*_asked(played))
    grants, couplings = plan.grants, played.cell.couplings
    psd = power.density_w_per_hz(couplings.own[grants.device])
    limit = np.minimum(0.2, psd * grants.share * 18.36e6)
    assert grants.power_w == pytest.approx(limit, rel=1e-12)
    assert (grants.power_w < 0.2).any()
    sent = np.zeros(len(couplings))
    sent[grants.device] = grants.power_w / 18.36e6
    assert plan.density == pytest.approx(couplings.interference(sent), rel=1e-7, abs=0.0)


@pytest.mark.slow
def test_plans_for_loads_expect_less_than_full_interference(network):
    """q / (R T) of every device, with the bits that the plan leaves it."""
    couplings = network.gains(9)
    full, load = (
        network.play(couplings, planned=planned, heard=planned, budget_s=1.0)
        for planned in ("full", "load")
    )
    plans = [played.cell.plan(*_asked(played)) for played in (full, load)]
    assert (plans[1].density < plans[0].density).all() and (plans[1].density > 0.0).all()
    assert plans[1].grants.rho.sum() < plans[0].grants.rho.sum()
    rows = load.log.table("device_rounds")
    assert rows.finish_s.max() == pytest.approx(1.0, rel=1e-6)  # heard as it was planned
    x = rows.upload_s.to_numpy() / 1.0
    power = np.zeros(len(couplings))
    power[rows.device] = 0.2 * x / 18.36e6
    assert plans[1].density == pytest.approx(couplings.interference(power), rel=1e-6, abs=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("rate", ["now", "quantile"])
def test_plans_that_still_change_in_their_last_turn_say_so(rate, network, monkeypatch):
    """Loads go half the way in a turn: after 3 the plan is off, after 20 by no more than gains are.

    It was taken as it was, and nobody was told.
    """
    about = {"planned": "load", "heard": "load", "budget_s": 1.0, "rate": rate, "coherence_s": 0.02}
    settled = network.play(network.gains(9), rounds=range(2), **about).log
    assert unsettled_warnings(settled.columns("unsettled_plans")) == []
    monkeypatch.setattr(network_planner, "TURNS", 3)
    log = network.play(network.gains(9), rounds=range(2), **about).log
    rows = log.columns("unsettled_plans")
    assert rows["round"] == [0, 1] and min(rows["change"]) > 1e-3
    (sentence,) = unsettled_warnings(rows)
    assert sentence.startswith("the plans of 2 rounds, first of round 0, have not settled: ")


@pytest.mark.slow
def test_a_plan_of_a_sector_that_has_not_settled_says_so(monkeypatch):
    """Gains of the instant that follow the share, in one sector without interference."""
    scenario = load(SCENARIOS / "handovers.yaml", ONE_SECTOR, label="handed over")
    assert not any("not settled" in each for each in simulate(scenario).summary["warnings"])
    monkeypatch.setattr(settled_plans, "REPLANS", 0)
    *_, sentence = simulate(scenario).summary["warnings"]
    assert sentence.startswith("the plans of 1 round, first of round 0, have not settled: ")


def test_an_unsettled_plan_has_the_interference_that_it_was_made_with(network, monkeypatch):
    """It was that of the turn after the last, with which nothing was planned."""
    monkeypatch.setattr(network_planner, "TURNS", 3)
    played = network.play(network.gains(9), planned="load", heard="load", budget_s=1.0)
    asked = _asked(played)
    used, of_density = [], network_planner.NetworkPlanner.sector_planner

    def noted(self, density, among=0):
        used.append(density)
        return of_density(self, density, among)

    monkeypatch.setattr(network_planner.NetworkPlanner, "sector_planner", noted)
    plan = played.cell.planner.plan(*asked)
    assert len(used) == 3 and plan.unsettled > 1e-3
    assert plan.density.tolist() == used[-1].tolist()


@pytest.mark.slow
def test_a_round_of_fading_is_planned_for_its_quantile(network):
    """Rayleigh blocks of 20 ms: hardly anybody is late, with the interference of everybody."""
    played = network.play(
        network.gains(11, 3, 2), rate="quantile", coherence_s=0.02, rounds=range(8), budget_s=1.0
    )
    rows = played.log.table("device_rounds")
    said = played.log.table("upload_forecasts")
    assert len(said) == len(rows) and said.planned_bps.gt(0.0).all()
    n, eps = len(rows), 0.05
    assert rows.status.eq("late").mean() <= eps + 3 * np.sqrt(eps * (1 - eps) / n)


def test_one_sector_is_the_cell_to_the_last_bit(network, engine):
    """The same round in a `Cell` and in a network of one omnidirectional site."""
    one = Couplings([[1e-10], [3e-11], [1e-11]], [0, 0, 0])
    for heard in ("events", "none"):
        played = network.play(one, heard, rounds=range(2), budget_s=0.3)
        fleet = played.cell.fleet
        cell = engine.play(
            fleet,
            one.own,
            noise_w=None,
            noise_w_per_hz=played.cell.channel.noise_w_per_hz,
            bandwidth_hz=18.36e6,
            budget_s=0.3,
            rounds=range(2),
        )
        for name in ("rounds", "device_rounds", "spans"):
            assert played.log.table(name).equals(cell.log.table(name)), name


def test_a_channel_in_interference_scales_its_gains():
    couplings = Couplings([[1e-10, 1e-12], [1e-12, 1e-11]], [0, 1])
    channel = SectorChannel(couplings, None, 2.0, bandwidth_hz=1e6, noise_w_per_hz=1e-20)
    assert channel.gains(0.0).tolist() == [0.5e-10, 0.5e-11]
    disturbed = DisturbedChannel(channel, np.array([0.5, 0.25]))
    assert disturbed.gains(0.0).tolist() == [0.25e-10, 0.125e-11]
    assert disturbed.static and disturbed.path_gain.tolist() == [0.25e-10, 0.125e-11]
    couplings.move(0, sector=1)
    assert channel.gains(0.0).tolist() == [0.5e-12, 0.5e-11]
    assert channel.path_gain.tolist() == [0.5e-12, 0.5e-11]


@pytest.mark.slow
def test_a_sector_alone_keeps_the_promise_of_a_quantile_with_coding_schemes():
    """Its turns were mixed, and ended just above a corner of the table: 29 % late for 5."""
    fading = "{kind: rayleigh, speed: 3 km/h, process: clarke, delay_spread: 97 ns}"
    scenario = [
        *("rounds=1", "devices.0.count=8", "budget.latency_threshold=200 ms"),
        *("network.adaptation={rate: mcs}", f"network.channel.fading={fading}"),
        "network.layout={kind: sites, position: {list: [[0 m, 0 m]]}}",
        "network.interference=none",
    ]
    summary = simulate(load(SCENARIOS / "urban-macro.yaml", scenario, label="quantile")).summary
    assert 0.04 < summary["promised_late_share"] <= 0.05 + 1e-4
    assert not any("not settled" in each for each in summary["warnings"])
