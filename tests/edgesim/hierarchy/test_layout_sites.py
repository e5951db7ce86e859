"""Edge servers at the sites of a layout: by hand, limits, resumed runs, who belongs where."""

from __future__ import annotations

import math

import numpy as np
import pytest
import simpy

from edgesim import load, simulate
from edgesim.errors import EdgesimError
from edgesim.hierarchy.layout_sites import LayoutSites
from edgesim.runs.setup import set_up
from edgesim.verification.verify import verify
from tests.edgesim.hierarchy.stable_association import is_stable
from tests.edgesim.resumed_runs import assert_resumed

TWO_SITES = """
name: two-sites
rounds: 2
network:
  bandwidth: 1 MHz
  noise: -174 dBm/Hz
  layout: {kind: sites, position: {list: [[0 m, 0 m], [300 m, 0 m]]}}
  channel: {path_loss: {model: log-distance, reference_loss: 40 dB, exponent: 3}}
devices:
  - count: 2
    position: {list: [[0 m, 50 m], [300 m, 50 m]]}
    tx_power: 20 dBm
    idle_power: 0.1 W
    cpu: {frequency: 1 GHz, flops_per_cycle: 4}
allocation: {solver: equal}
learning: {dataset: none, model: mlp, batch_size: 10, method: {name: fedavg}}
"""
SIX = (  # three devices of each site, at six distances
    "devices.0.count=6",
    "devices.0.position={list: [[0 m, 50 m], [0 m, -90 m], [-60 m, 0 m], "
    "[300 m, 40 m], [300 m, -80 m], [370 m, 0 m]]}",
    "devices.0.cpu.frequency=[1 GHz, 2 GHz, 800 MHz, 1.5 GHz, 1 GHz, 3 GHz]",
)
DIGITS = (
    "learning={dataset: digits, partition: {kind: labels, labels_per_device: 3}, "
    "samples_per_device: 20, model: mlp, batch_size: 10, "
    "method: {name: fedavg, lr: 0.1, weighting: samples}}",
)
PRUNED = "learning.method={name: pruning-only}", "allocation.solver=kkt"
SECTORS = (
    "network.layout.sectors=3",
    "network.carrier={frequency: 3.5 GHz}",
    "network.channel.path_loss={model: uma, antenna: {kind: column}}",
)
ONE_SITE = "network.layout.position={list: [[0 m, 0 m]]}"
FADING = "network.channel.fading={kind: rician, k: 3 dB, coherence: 20 ms}"
BY_BLOCK = "network.interference=resolved"
GRID = "network.carrier={frequency: 3.5 GHz, bandwidth: 5 MHz}"
CSI = "network.adaptation={rate: mcs, errors: drawn, csi: {}}"


@pytest.fixture
def sites(tmp_path):
    """sites(*changes) -> the scenario with them."""
    path = tmp_path / "two-sites.yaml"
    path.write_text(TWO_SITES)
    return lambda *changes: load(path, [*changes])


def rates_bps():
    """Rate of a device alone, and while the other one sends, on all of its site's band, bit/s.

    40 + 30 log10(50) dB to the own site, and 40 + 30 log10(sqrt(300^2 + 50^2)) dB to the other.
    """
    own, other = (0.1 * 10 ** (-4 - 3 * math.log10(d)) for d in (50.0, math.hypot(300.0, 50.0)))
    noise_w = 10**-20.4 * 1e6
    return tuple(1e6 * math.log2(1 + own / (noise_w + heard)) for heard in (0.0, other))


def test_uploads_of_two_edges_disturb_each_other_while_both_send(sites):
    """The second edge begins s later: both are alone for s, and share the air in between."""
    alone, both = rates_bps()
    assert (alone, both) == pytest.approx((14.2946e6, 7.8046e6), rel=1e-5)
    run = simulate(sites("tiers={}"))
    bits, computed_s = run.device_rounds.bits_up[0], run.device_rounds.compute_s[0]
    assert run.device_rounds.upload_s.tolist() == pytest.approx([bits / both] * 4, rel=1e-9)
    for s in (0.4 * float(bits) / alone, 1.5 * float(bits) / alone):
        links = f"[{{between: [edge 0, cloud]}}, {{between: [edge 1, cloud], delay: {s!r} s}}]"
        late = simulate(sites(f"tiers={{backhaul: {{links: {links}}}}}", "rounds=1"))
        sent_s = s + max(bits - alone * s, 0.0) / both if s < bits / alone else bits / alone
        rows = late.device_rounds
        assert rows.upload_s.tolist() == pytest.approx([sent_s] * 2, rel=1e-9)
        assert late.rounds.latency_s.tolist() == pytest.approx([2 * s + computed_s + sent_s])
        assert rows.edge.tolist() == rows.sector.tolist() == [0, 1]
    # the mean of log2(1 + SINR) over the upload, which was never disturbed
    assert rows.sinr_db.tolist() == pytest.approx([10 * math.log10(2 ** (alone / 1e6) - 1)] * 2)


def test_interference_of_everybody_is_that_of_both_whoever_sends(sites):
    _, both = rates_bps()
    links = "[{between: [edge 0, cloud]}, {between: [edge 1, cloud], delay: 10 s}]"
    far = f"tiers={{local_rounds: 2, backhaul: {{links: {links}}}}}"
    rows = simulate(sites(far, "network.interference=full")).device_rounds
    # before the second edge has begun its rounds, nobody there has a grant
    heard = rows.sort_values(["edge", "round", "edge_round"]).rate_bps.to_numpy() / both
    assert heard[:4].min() > 1.8 and heard[4:] == pytest.approx(np.ones(4), rel=1e-9)


@pytest.mark.parametrize(
    "changes",
    [
        SECTORS,
        (*SIX, FADING, CSI, "devices.0.failure_rate=3 Hz", "devices.0.availability=0.8"),
        (*SIX, *DIGITS, "network.uplink.share=reclaim"),
    ],
    ids=["sectors", "fading", "trained"],
)
def test_one_site_is_the_layout_alone_to_the_last_bit(sites, changes):
    plain, tiers = (simulate(sites(*changes, ONE_SITE, *more)) for more in ((), ("tiers={}",)))
    for table in ("rounds", "device_rounds", "spans", "scores"):
        a, b = getattr(plain, table), getattr(tiers, table)
        assert len(a) == len(b) and (len(a) or table == "scores")
        for column in a.columns:
            numbers = a[column].dtype == float
            assert np.array_equal(a[column], b[column], equal_nan=numbers), (table, column)


@pytest.mark.parametrize(
    "changes",
    [
        SECTORS,
        (FADING, CSI),
        ("network.interference=full", "network.uplink.share=reclaim"),
        ("network.interference={refresh: 1 ms}",),
        (BY_BLOCK, "network.bandwidth=3.96 MHz", GRID),
    ],
    ids=["sectors", "fading", "full", "refresh", "resolved"],
)
def test_an_exchange_after_every_round_is_the_layout(sites, changes):
    """Without backhaul all edges begin together; up to rounding, since others are summed apart."""
    plain, tiers = (simulate(sites(*SIX, *DIGITS, *changes, *m)) for m in ((), ("tiers={}",)))
    for column in ("time_s", "energy_j", "bits_up", "loss"):
        of_both = tiers.rounds[column].to_numpy(), plain.rounds[column].to_numpy()
        assert of_both[0] == pytest.approx(of_both[1], rel=1e-5 if column == "loss" else 1e-9)
    for column in ("share", "finish_s", "sinr_db", "sector"):
        of_both = tiers.device_rounds[column].to_numpy(), plain.device_rounds[column].to_numpy()
        assert of_both[0] == pytest.approx(of_both[1], rel=1e-9, nan_ok=True), column
    assert tiers.device_rounds.edge.nunique() == 2 and tiers.rounds.loss.notna().all()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["events", "full", "{refresh: 5 ms}"])
def test_a_run_that_is_killed_at_any_round_equals_the_whole_run(sites, tmp_path, mode):
    """Also verified: every edge plans its sectors again, with the interference of the others."""
    links = "[{between: [edge 0, cloud]}, {between: [edge 1, cloud], delay: 7 ms}]"
    given = sites(
        *SIX, *PRUNED, FADING, f"tiers={{local_rounds: 2, backhaul: {{links: {links}}}}}",
        f"network.interference={mode}", "budget.latency_threshold=90 ms",
    )  # fmt: skip
    names = "rounds.csv", "device_rounds.parquet", "spans.parquet", "devices.csv"
    whole = assert_resumed(given, tmp_path, range(2), names)
    ((_, checks),) = verify([tmp_path / "killed"])
    assert {each.outcome for each in checks} <= {"ok", "not checked"}, checks
    planned = next(each for each in checks if each.name == "allocations")
    assert planned.detail.count("4 rounds planned again") == 2
    for _, spans in whole.spans.groupby("device"):  # busy + idle is all the time
        busy_s = (spans.end_s - spans.start_s).sum()
        assert busy_s == pytest.approx(whole.rounds.time_s.iloc[-1], rel=1e-9)


def test_nobody_is_later_than_planned_for_whatever_the_other_edge_does(sites):
    """Plans count with everybody of the other edge sending all the time."""
    links = "[{between: [edge 0, cloud]}, {between: [edge 1, cloud], delay: 7 ms}]"
    tiers = f"tiers={{local_rounds: 2, backhaul: {{links: {links}}}}}"
    run = simulate(sites(*SIX, *PRUNED, tiers, "budget.latency_threshold=90 ms"))
    rows = run.device_rounds
    assert (rows.status == "arrived").all() and 0.2 < rows.rho.max() < 1.0
    left_s = {0: 90e-3 / 2, 1: (90e-3 - 14e-3) / 2}
    assert (rows.finish_s <= rows.edge.map(left_s) * (1 + 1e-9)).all()
    none = simulate(sites(*SIX, *PRUNED, tiers, "budget.latency_threshold=90 ms",
                          "network.interference=none"))  # fmt: skip
    assert none.device_rounds.rho.mean() < rows.rho.mean()


LINE = "devices.0.position={list: [[20 m, 0 m], [120 m, 0 m], [140 m, 0 m], [290 m, 0 m]]}"


@pytest.mark.parametrize(
    ("tiers", "expected"),
    [
        ("{}", [0, 0, 0, 1]),
        ("{association: nearest}", [0, 0, 0, 1]),
        ("{association: balanced}", [0, 0, 1, 1]),
        ("{association: list, members: [0, 1, 0, 1]}", [0, 1, 0, 1]),
    ],
)
def test_devices_belong_to_the_edge_of_the_site_that_serves_them(sites, tiers, expected):
    setup = set_up(sites("devices.0.count=4", LINE, f"tiers={tiers}"))
    assert setup.hierarchy.edge_of.tolist() == expected
    assert setup.hierarchy.air.channel.couplings.serving.tolist() == expected
    for edge in setup.hierarchy.edges:
        x_m = np.array([20.0, 120.0, 140.0, 290.0])[edge.members] - 300.0 * edge.number
        assert edge.fleet.distance_m == pytest.approx(np.abs(x_m))
        assert edge.channel.path_gain == pytest.approx(10**-4 * np.abs(x_m) ** -3.0)


def test_nearest_and_strongest_differ_where_a_wall_of_shadow_stands(sites):
    shadowed = "network.channel.shadowing=20 dB", *SIX
    nearest, strongest = (
        set_up(sites(*shadowed, f"tiers={{association: {rule}}}")).hierarchy
        for rule in ("nearest", "strongest")
    )
    assert nearest.edge_of.tolist() == [0, 0, 0, 1, 1, 1] != strongest.edge_of.tolist()
    coupling = strongest.air.channel.couplings
    assert strongest.edge_of.tolist() == coupling.gain.argmax(axis=1).tolist()


@pytest.mark.slow
def test_price_counts_with_the_interference_of_all_others(sites):
    """Its costs are those of the plans, and it ends where no move or swap lowers their sum."""
    crowd = (
        *PRUNED,
        "devices.0.count=6",
        "devices.0.position={list: [[10 m, 0 m], [0 m, 12 m], [-14 m, 0 m], [0 m, -16 m], "
        "[9 m, 9 m], [146 m, 0 m]]}",
        "budget.latency_threshold=30 ms",
    )

    def pruned(at, heard):
        members = f"tiers={{association: list, members: {list(at)}}}"
        setup = set_up(sites(*crowd, members, f"network.interference={heard}"))
        rho = 0.0
        for own in setup.edges:
            cell = own.cell(simpy.Environment())
            view = cell.view(0)
            plan = cell.plan(own.method.demand(None, view, view.idle), view)
            late = plan.infeasible or plan.budget_s > cell.budget_s
            rho += math.inf if late else sum(grant.rho for grant in plan.grants)
        return rho

    ends = {}
    for heard in ("events", "none"):
        given = sites(*crowd, "tiers={association: price}", f"network.interference={heard}")
        setup = set_up(given)
        cost = LayoutSites(given, setup.seeds, setup.fleet).cost(setup.method, setup.allocator)
        for at in ([0] * 6, [0, 0, 0, 0, 0, 1], [1, 0, 0, 0, 0, 1]):
            members = [tuple(np.flatnonzero(np.array(at) == e).tolist()) for e in range(2)]
            total = math.fsum(cost(e, members[e]) for e in range(2))
            assert total == pytest.approx(pruned(at, heard), rel=1e-9)
        ends[heard] = setup.hierarchy.edge_of
        assert is_stable(cost, ends[heard], 2)
    # where nobody is heard the far device has a band of its own; else the others would drown it
    assert ends["none"][5] == 1 and not ends["events"].any()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["tiers={edges: [{}]}"], "whose sites are the edges"),
        (["tiers={}", "network.layout=single", "devices.0.position={disc: 9 m}"], "is missing"),
        (["tiers={association: list, members: [0, 2]}"], "allowed is 0 to 1"),
        (["tiers={backhaul: {links: [{between: [edge 0, cloud]}]}}"], "no way from edge 1"),
        (["tiers={}", "budget.latency_threshold=1 s", "network.interference=load"],
         "needs the plans of all sectors at once"),
        (["tiers={}", "budget.latency_threshold=1 s", "allocation.interference=load"],
         "needs the plans of all sectors at once"),
        (["tiers={}", "allocation.interference=measured"], "do not keep so far; write full"),
        (["tiers={}", "network.downlink={mode: unicast, tx_power: 43 dBm}"],
         "have ideal downlinks so far"),
        (["tiers={association: price}", "network.power_control={}", "allocation.solver=kkt"],
         "what an edge costs depends on the edges of all other devices"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_one_sentence(sites, changes, sentence):
    with pytest.raises(EdgesimError, match=sentence) as refusal:
        set_up(sites(*changes))
    assert "\n" not in str(refusal.value)


@pytest.mark.slow
@pytest.mark.parametrize("rate", ["now", "quantile"])
def test_each_device_keeps_its_own_band_below_a_cloud(sites, rate):
    """Delays differ from device to device, and devices of the second site are numbers 3 to 5."""
    selective = "{kind: rayleigh, speed: 3 km/h, process: clarke, delay_spread: table}"
    changes = (
        *(*SIX, *SECTORS, f"network.channel.fading={selective}"),
        *("budget.latency_threshold=1 s", f"allocation.rate={rate}"),
    )
    alone, tiered = (simulate(sites(*changes, *more)) for more in ((), ("tiers={}",)))
    column = "rate_bps" if rate == "now" else "planned_bps"
    tables = [
        run.device_rounds if rate == "now" else run.upload_forecasts for run in (alone, tiered)
    ]
    each = [table.query("round == 0").sort_values("device")[column] for table in tables]
    assert len(each[0]) == 6
    assert each[1].to_numpy() == pytest.approx(each[0].to_numpy(), rel=1e-12)
