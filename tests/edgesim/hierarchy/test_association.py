"""Who belongs to which edge: rules by hand, and the local search against all associations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import simpy

from edgesim import load, simulate
from edgesim.errors import InfeasibleScenarioError
from edgesim.hierarchy.association import balanced, by_price, nearest, strongest
from edgesim.hierarchy.own_sites import OwnSites
from edgesim.runs.setup import set_up
from tests.edgesim.hierarchy.stable_association import is_stable, total_cost

PLACES = """
name: places
rounds: 1
network:
  bandwidth: 150 kHz
  noise: -110 dBm
  channel: {path_loss: {model: log-distance, reference_loss: 40 dB, exponent: 3}}
devices:
  - count: 3
    tx_power: 23 dBm
    position: {list: [[-90 m, 0 m], [-20 m, 10 m], [60 m, 0 m]]}
    cpu: {frequency: [1 GHz, 2 GHz, 1 GHz], cycles_per_weight: 40}
budget: {latency_threshold: 60 ms}
learning: {dataset: none, model: mlp, batch_size: 10, method: {name: pruning-only}}
tiers:
  edges: [{position: [-100 m, 0 m]}, {position: [100 m, 0 m], bandwidth: 250 kHz}]
"""


def test_nearest_and_strongest_take_the_first_of_equals():
    table = np.array([[3.0, 1.0, 2.0], [2.0, 4.0, 2.0]])
    assert nearest(table).tolist() == [1, 0, 0]
    assert strongest(table).tolist() == [0, 1, 0]


def test_balanced_serves_the_largest_regret_first():
    """Ratios of the two gains: 100, 2, 10, 1.5; edge 0 has room for two: devices 0 and 2."""
    gain = np.array([[100.0, 2.0, 10.0, 1.5], [1.0, 1.0, 1.0, 1.0]])
    assert balanced(gain).tolist() == [0, 1, 0, 1]
    many = balanced(np.random.default_rng(0).random((3, 10)))
    assert np.bincount(many, minlength=3).max() == 4


def test_balanced_puts_devices_without_any_edge_last():
    """Device 0 has no edge, device 2 edge 1 alone: it chooses first, and 0 takes what is left."""
    gain = np.array([[0.0, 2.0, 0.0, 3.0], [0.0, 4.0, 1.0, 2.0]])
    assert balanced(gain).tolist() == [0, 1, 1, 0]


def random_cost(seed):
    """A cost with economies and congestion, so that single moves do not always suffice."""
    weight = np.random.default_rng(seed).random((2, 3)) + 0.1

    def cost(e, members):
        return math.fsum(weight[e][list(members)]) * (1.0 + 0.7 * len(members) ** 2)

    return cost


@pytest.mark.parametrize("seed", range(5))
def test_the_search_ends_where_no_move_or_swap_helps(seed):
    """All 2^3 associations: the end is stable, and no stable one was called unstable."""
    cost = random_cost(seed)
    every = [np.array(at) for at in itertools.product(range(2), repeat=3)]
    best = min(every, key=lambda at: total_cost(cost, at, 2))
    for start in every:
        end = by_price(cost, start, 2)
        assert is_stable(cost, end, 2)
        assert total_cost(cost, end, 2) <= total_cost(cost, start, 2)
    assert is_stable(cost, best, 2)
    worst = max(every, key=lambda at: total_cost(cost, at, 2))
    assert not is_stable(cost, worst, 2)


FAR = "tiers.backhaul.links=[{between: [edge 0, cloud]}, {between: [edge 1, cloud], delay: 12 ms}]"


@pytest.mark.parametrize(
    ("backhaul", "expected", "nearby"),
    [
        ("tiers.backhaul.delay=0 ms", [0, 1, 1], [0, 0, 1]),
        (FAR, [0, 0, 1], [0, 1, 1]),  # edge 1 has 36 ms of the 60 ms
    ],
)
def test_price_prunes_least_of_all_eight_associations(tmp_path, backhaul, expected, nearby):
    path = tmp_path / "places.yaml"
    path.write_text(PLACES)
    sums = {}
    for at in itertools.product(range(2), repeat=3):
        listed = f"tiers.members={list(at)}", "tiers.association=list"
        setup = set_up(load(path, [*listed, backhaul]))
        rho = 0.0
        for own in setup.edges:
            cell = own.cell(simpy.Environment())
            view = cell.view(0)
            demand = own.method.demand(None, view, np.arange(len(own.fleet)))
            plan = cell.plan(demand, view)
            late = plan.infeasible or plan.budget_s > cell.budget_s
            rho += math.inf if late else sum(grant.rho for grant in plan.grants)
        sums[at] = rho
    chosen = set_up(load(path, ["tiers.association=price", backhaul])).hierarchy.edge_of
    assert sums[tuple(chosen.tolist())] == pytest.approx(min(sums.values()), abs=1e-12)
    assert chosen.tolist() == expected and sums[tuple(expected)] < sums[tuple(nearby)] - 0.1


def test_a_price_without_pruning_is_the_time_of_the_slowest_device(tmp_path):
    """Five steps on 4,810 weights at 8,000 cycles: 192.4 ms at 1 GHz, 96.2 ms at 2 GHz. With 32 bit
    each: edge 0 has 75 kHz for each of devices 0 and 1 (10 and 80.6 m), edge 1 250 kHz (40 m).
    """
    path = tmp_path / "places.yaml"
    path.write_text(PLACES)
    slow = "devices.0.cpu.cycles_per_weight=8000", "budget.latency_threshold=none"
    method = "learning.method={name: fedavg}", "allocation.solver=equal"
    listed = "tiers.association=list", "tiers.members=[0, 0, 1]"
    given = load(path, [*slow, *method, *listed])
    setup = set_up(given)
    sites = OwnSites(given, given.tiers, setup.seeds, setup.fleet)
    cost = sites.cost(setup.method, setup.allocator)

    def upload_s(bandwidth_hz, distance_m):
        snr_db = 23.0 + 110.0 - 40.0 - 30.0 * math.log10(distance_m)
        return 4810 * 32 / (bandwidth_hz * math.log2(1.0 + 10.0 ** (snr_db / 10.0)))

    near_s, far_s = (upload_s(75e3, each) for each in (10.0, math.hypot(80.0, 10.0)))
    assert near_s + 0.1924 > far_s + 0.0962  # the slower processor, though its upload is shorter
    priced = [cost(0, (0, 1)), cost(1, (2,))]
    by_hand = [near_s + 0.1924, upload_s(250e3, 40.0) + 0.1924]
    assert priced == pytest.approx(by_hand, rel=1e-9)
    ends = simulate(given).device_rounds.groupby("edge").finish_s.max().tolist()
    assert priced == pytest.approx(ends, rel=1e-9)


LOAD = (5.0, 4.0, 3.0, 2.0)


def squared_load(e, members):
    """(sum of the loads of an edge's devices)^2."""
    return sum(LOAD[k] for k in members) ** 2


def test_moves_and_swaps_by_hand():
    """From 5 + 4 and 3 + 2 no move helps (106 = 9^2 + 5^2), but the swap of 5 and 3: 7^2 + 7^2.

    From all at edge 0 (196): 5 moves (106), 3 moves (6^2 + 8^2 = 100), then 5 and 4 swap (98).
    """
    start = np.array([0, 0, 1, 1])
    assert total_cost(squared_load, start, 2) == 106.0
    assert not is_stable(squared_load, start, 2)
    for k in range(4):
        moved = start.copy()
        moved[k] = 1 - moved[k]
        assert total_cost(squared_load, moved, 2) >= 106.0
    end = by_price(squared_load, start, 2)
    assert end.tolist() == [1, 0, 0, 1] and total_cost(squared_load, end, 2) == 98.0
    assert is_stable(squared_load, end, 2)
    assert by_price(squared_load, np.zeros(4, dtype=int), 2).tolist() == [0, 1, 1, 0]


def test_a_move_that_does_not_fit_is_none():
    """Edge 1 has no room for a load above 3: of 5, 4, 3, 2 only 3 moves (11^2 + 3^2 = 130)."""

    def cost(e, members):
        full = e == 1 and sum(LOAD[k] for k in members) > 3.0
        return math.inf if full else squared_load(e, members)

    end = by_price(cost, np.zeros(4, dtype=int), 2)
    assert end.tolist() == [0, 0, 1, 0] and is_stable(cost, end, 2)


NEAR = """
import numpy as np

def within_30(fleet, streams):
    return np.where(fleet.distance_m > 30.0, np.inf, 90.0)

def within_50(fleet, streams):
    return np.where(fleet.distance_m > 50.0, np.inf, 90.0)
"""


def test_an_edge_that_reaches_none_of_its_devices_is_refused_with_the_reason(tmp_path):
    """It said that nobody can take part, or the selection asks none. A threshold ends its rounds.

    Devices 0 and 2 are 10 m and 40 m from their edges, device 1 80.6 m.
    """
    (tmp_path / "places.yaml").write_text(PLACES)
    (tmp_path / "near.py").write_text(NEAR)

    def run(reach, threshold):
        loss = f"network.channel.path_loss={{model: code, code: ./near.py:within_{reach}}}"
        changes = [loss, f"budget.latency_threshold={threshold}", "allocation.solver=equal"]
        given = load(tmp_path / "places.yaml", [*changes, "learning.method={name: fedavg}"])
        return simulate(given, allow_code=True).rounds.arrived.tolist()

    assert (run(50, "none"), run(30, "60 ms")) == ([2], [1])
    said = r"1: .*: device 2 is out of reach: .*; nothing would end a round of edge 1; give budget"
    with pytest.raises(InfeasibleScenarioError, match=said):
        run(30, "none")
