"""Transfers over a backhaul: times by hand, shared links, and the certificate of max-min rates."""

from __future__ import annotations

import math

import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.hierarchy.backhaul import Backhaul, Transfers, backhaul_graph
from edgesim.network.band.max_min_rates import max_min_rates
from edgesim.scenario.hierarchy.tiers_schema import TiersSection

TREE = [
    {"between": ["edge 0", "hub"], "rate": "4 Mbit/s", "delay": "1 ms", "energy_per_bit": "1 nJ"},
    {"between": ["edge 1", "hub"], "rate": "1 Mbit/s", "delay": "2 ms"},
    {"between": ["hub", "cloud"], "rate": "3 Mbit/s", "delay": "10 ms", "energy_per_bit": "2 nJ"},
]


def backhaul(edges=2, cut_through=True, **keys):
    tiers = TiersSection.model_validate({"edges": [{}] * edges, "backhaul": keys})
    return Backhaul(backhaul_graph(tiers, len(tiers.edges)), cut_through)


def end_times(net, transfers):
    """(edge, start_s, bits) of uploads -> when each ends, s."""
    env, ends = simpy.Environment(), {}
    network = Transfers(env, net)

    def one(i, edge, start_s, bits):
        yield env.timeout(start_s)
        yield from network.carry(edge, bits, up=True)
        ends[i] = env.now

    for i, each in enumerate(transfers):
        env.process(one(i, *each))
    env.run()
    return [ends[i] for i in range(len(transfers))]


def test_one_transfer_over_two_links():
    """Fluid: bits over the slowest link and all delays; else both times after each other."""
    net = backhaul(links=TREE)
    assert end_times(net, [(0, 0.0, 6e6)]) == [pytest.approx(6 / 3 + 0.011, rel=1e-12)]
    whole = backhaul(links=TREE, cut_through=False)
    assert end_times(whole, [(0, 0.0, 6e6)]) == [pytest.approx(6 / 4 + 6 / 3 + 0.011, rel=1e-12)]
    up, down = net.path(0, up=True), net.path(0, up=False)
    assert up == [("edge 0", "hub"), ("hub", "cloud")]
    assert down == [("cloud", "hub"), ("hub", "edge 0")]
    assert net.energy_j(up, 1e9) == pytest.approx(3.0)


def test_one_common_link_is_processor_sharing():
    """Arrivals 0, 1, 1.5 with 2, 1 and .25 s of the whole link end at 3.25, 3.25 and 2.25 s."""
    links = [{"between": [f"edge {e}", "hub"]} for e in range(3)]
    net = backhaul(3, links=[*links, {"between": ["hub", "cloud"], "rate": "1 Mbit/s"}])
    ends = end_times(net, [(0, 0.0, 2e6), (1, 1.0, 1e6), (2, 1.5, 0.25e6)])
    assert ends == pytest.approx([3.25, 3.25, 2.25], rel=1e-12)


def test_a_slow_link_leaves_its_part_of_the_common_one_to_others():
    """Edge 1 gets 1 of 3 Mbit/s, edge 0 the other 2; alone again, edge 0 has 3."""
    ends = end_times(backhaul(links=TREE), [(0, 0.0, 5e6), (1, 0.0, 1e6)])
    assert ends == pytest.approx([1.0 + 3 / 3 + 0.011, 1.0 + 0.012], rel=1e-12)


def test_links_of_their_own_and_no_limit():
    net = backhaul(rate="2 Mbit/s", down_rate="8 Mbit/s", delay="3 ms")
    assert end_times(net, [(0, 0.0, 1e6), (1, 0.0, 1e6)]) == pytest.approx([0.503, 0.503])
    assert net.planned_s(0, [0, 1], 1e6) == pytest.approx(0.503 + 0.128)
    assert end_times(backhaul(), [(0, 0.25, 1e9)]) == [0.25]


def test_the_plan_counts_with_everybody_at_once():
    net = backhaul(links=TREE)
    assert net.planned_s(0, [0, 1], 6e6) == pytest.approx(2 * (6 / 2 + 0.011))
    assert net.planned_s(0, [0], 6e6) == pytest.approx(2 * (6 / 3 + 0.011))


PATHS = st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True), max_size=7)
CAPACITIES = st.lists(st.floats(0.1, 100) | st.just(math.inf), min_size=4, max_size=4)


def is_max_min(rates, paths, capacity, tolerance=1e-9):
    """The certificate: no link carries too much, and every flow has a full link on its path on
    which no flow is faster.
    """
    users = {link: [i for i, path in enumerate(paths) if link in path] for link in capacity}
    load = {link: math.fsum(rates[i] for i in flows) for link, flows in users.items()}
    if any(load[link] > capacity[link] * (1.0 + tolerance) for link in load):
        return False
    return all(
        any(
            load[link] >= capacity[link] * (1.0 - tolerance)
            and rates[i] >= max(rates[j] for j in users[link]) * (1.0 - tolerance)
            for link in path
        )
        or (math.isinf(rates[i]) and all(math.isinf(capacity[link]) for link in path))
        for i, path in enumerate(paths)
    )


@pytest.mark.slow
@settings(max_examples=200)
@given(PATHS, CAPACITIES)
def test_rates_carry_their_certificate(paths, capacities):
    capacity = dict(zip("abcd", capacities, strict=True))
    rates = max_min_rates(paths, capacity)
    assert is_max_min(rates, paths, capacity)
    for i, rate in enumerate(rates):
        if math.isfinite(rate):  # a faster or slower flow breaks it
            assert not is_max_min([*rates[:i], 1.01 * rate, *rates[i + 1 :]], paths, capacity)
            assert not is_max_min([*rates[:i], 0.99 * rate, *rates[i + 1 :]], paths, capacity)
