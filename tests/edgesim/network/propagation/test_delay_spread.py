"""Delay spreads by position, and runs whose devices have their own."""

from pathlib import Path

import numpy as np
import pytest

from edgesim import simulate
from edgesim.errors import ScenarioError
from edgesim.network.fading.selective import fades_in_band
from edgesim.network.layout.coupling import make_coupling
from edgesim.network.planned_gains import PlannedGains
from edgesim.network.propagation.delay_spread import delay_spreads_s, lg_delay_spread
from edgesim.network.propagation.site_fields import FieldsOfSite
from edgesim.runs.setup import set_up
from edgesim.scenario import load
from edgesim.seeds import Seeds

FILE = Path(__file__).parents[4] / "scenarios" / "urban-macro.yaml"
TABLE = (
    "network.channel.fading={kind: rayleigh, speed: 3 km/h, process: clarke, delay_spread: table}"
)
CELLS = ["devices.0.position={cells: 35 m}"]
CELL = ["~schemes", TABLE, "budget.latency_threshold=200 ms"]
# medians at 3.5 GHz, ns: line of sight, none, indoor
MEDIANS_NS = {"umi": (40, 97, 240), "uma": (74, 267, 240), "rma": (32, 37, 34), "inh": (20, 39)}


@pytest.mark.parametrize("model", MEDIANS_NS)
def test_medians(model):
    """uma: 10^(-7.067 - 0.0794 lg 6), uma and inh below 6 GHz as at 6 GHz."""
    found = [
        lg_delay_spread(model, s, 3.5)[0] for s in ("los", "nlos", "o2i")[: len(MEDIANS_NS[model])]
    ]
    assert [round(1e9 * 10**mean) for mean in found] == list(MEDIANS_NS[model])


@pytest.mark.parametrize(("model", "ghz", "spread"), [("uma", 3.5, 0.5902), ("umi", 28.0, 0.39)])
def test_delays_go_with_shadowing_and_k_factor(model, ghz, spread):
    """Correlation -0.4 with the shadowing; uma -0.4 and umi -0.7 with the K factor, of 40 sites."""
    rng, everywhere = np.random.default_rng(0), np.full(500, True)
    rows = []
    for site in range(40):
        fields, place_m = FieldsOfSite(Seeds(0), model, site), rng.uniform(-1e4, 1e4, (500, 2))
        links = (place_m, everywhere, ~everywhere)
        sf_db, k = fields.shadowing_and_k(*links)
        rows.append([sf_db, np.log(k), np.log10(delay_spreads_s(fields, ghz, *links))])
    sf_db, k_db, lg = np.concatenate(rows, axis=1)
    mean, deviation = lg_delay_spread(model, "los", ghz)
    assert deviation == pytest.approx(spread, abs=1e-4)
    assert lg.mean() == pytest.approx(mean, abs=0.02)
    assert lg.std() == pytest.approx(deviation, rel=0.03)
    found = np.corrcoef([sf_db, k_db, lg])[2, :2]
    assert found == pytest.approx([-0.4, -0.4 if model == "uma" else -0.7], abs=0.04)


def test_delays_are_a_function_of_the_place():
    fields, place_m = FieldsOfSite(Seeds(0), "uma"), np.array([[50.0, 80.0], [300.0, 0.0]])
    sight, indoor = np.array([False, True]), np.array([False, False])
    both = delay_spreads_s(fields, 3.5, place_m, sight, indoor)
    again = delay_spreads_s(fields, 3.5, place_m[1:], sight[1:], indoor[1:])
    assert both[1] == again[0] != both[0]
    assert delay_spreads_s(fields, 3.5, place_m, sight, ~indoor)[0] != both[0]


@pytest.mark.slow
def test_devices_have_their_own_and_are_planned_with_them():
    """With a long delay spread a device sees more fades in its band, and has a better quantile."""
    scenario = load(FILE, [*CELL, "rounds=4", "devices.0.count=5"])
    channel = set_up(scenario).channel
    tau_s = channel.fading.delay_spread_s
    assert len(set(tau_s.tolist())) == 5 and 1e-9 < tau_s.min() < tau_s.max() < 1e-5
    seen = channel.fading.blocks_in(np.full(2, 0.05), np.array([1, 3]))
    doppler_hz = 3 / 3.6 * 3.5e9 / 3e8
    in_band = fades_in_band(channel.bandwidth_hz, tau_s[[1, 3]])
    assert seen.tolist() == np.floor(max(0.1 * doppler_hz, 1.0) * in_band).tolist()
    assert seen[0] != seen[1]
    plan, five = PlannedGains(channel, "quantile"), np.arange(5)
    sent = [1e13 * np.ones(5), 0.05 * np.ones(5)]
    alone = plan.uploads(0.0, five[3:], *(each[3:] for each in sent), 0.05)
    assert alone.tolist() == plan.uploads(0.0, five, *sent, 0.05)[3:].tolist()
    summary = simulate(scenario).summary
    spare = 3 * (0.05 * 0.95 / 20) ** 0.5
    assert summary["late_share"] <= summary["promised_late_share"] + spare
    assert 0.04 < summary["promised_late_share"] <= 0.05 + 1e-4


def test_of_several_sites_that_of_the_own_counts():
    network = ["network.layout={kind: hex, rings: 1, sectors: 1}", "network.uplink.share=fixed"]
    scenario = load(FILE, [*CELL, *network, "devices.0.count=30", *CELLS])
    setup = set_up(scenario)
    coupling = make_coupling(scenario.network, setup.fleet, setup.seeds)
    links = coupling.at(np.stack([setup.fleet.x_m, setup.fleet.y_m], axis=1))
    site = coupling.sites.site_of[links.serving]
    assert len(set(site.tolist())) > 3
    expected = links.delay_spread_s[np.arange(30), site]
    assert setup.channel.fading.delay_spread_s.tolist() == expected.tolist()


def test_a_path_loss_without_places_has_no_table():
    with pytest.raises(ScenarioError, match=r"delay_spread.*is table, which path_loss"):
        load(
            FILE,
            ["~schemes", "network.channel={path_loss: {model: constant, loss: 100 dB}}", TABLE],
        )
