"""Keys of tiers: what is refused, in one sentence; what is drawn for whom; plans of the edges."""

from __future__ import annotations

import numpy as np
import pytest

from edgesim import load, simulate
from edgesim.cli.feasibility_table import print_feasibility
from edgesim.errors import EdgesimError, InfeasibleScenarioError
from edgesim.runs.run import feasibility
from edgesim.runs.setup import set_up
from edgesim.sweep.sweep_point import check_point
from fl.methods import available, resolve
from tests.edgesim.hierarchy.conftest import ONE, TWO

SPREAD = (
    "network.channel={path_loss: {model: log-distance, reference_loss: 40 dB, exponent: 3}, "
    "shadowing: 6 dB}",
    "devices.0.distance={uniform: [40 m, 200 m]}",
)
PRUNED = (
    "learning.method={name: pruning-only, lr: 0.05}",
    "allocation.solver=kkt",
)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ([f"{TWO[:-1]}, backhaul: {{rate: 1 Mbit/s, links: [{{between: [edge 0, cloud]}}]}}}}"],
         "tiers.backhaul.rate stands beside links"),
        ([f"{TWO[:-1]}, backhaul: {{links: [{{between: [edge 0, cloud]}}]}}}}"],
         "lead no way from edge 1 to cloud"),
        ([f"{TWO[:-1]}, backhaul: {{links: [{{between: [edge 7, cloud]}}]}}}}"], "edge 7"),
        ([f"{TWO[:-1]}, backhaul: {{links: [{{between: [edge 0, edge 0]}}]}}}}"], "two nodes"),
        ([f"{TWO[:-1]}, backhaul: {{links: [{{between: [cloud, edge 0]}}]}}}}"],
         "write first the end that is farther from the cloud"),
        (["tiers={edges: [{}, {}], association: list}"], "needs members"),
        (["tiers={edges: [{}, {}], association: list, members: [0, 2, 1, 1]}"], "is 0 to 1"),
        (["tiers={edges: [{}, {}], association: list, members: [0, 1]}"], "2 values"),
        (["tiers={edges: [{}, {}], association: balanced, members: [0, 1, 0, 1]}"],
         "reads no members"),
        (["tiers={edges: [{}, {}], members: [0, 1, 0, 1]}"],
         "tiers.members is read with association: list only; remove it, or write that"),
        ([f"{TWO[:-1]}, backhaul: {{links: [{{between: edge 0}}]}}}}"],
         r"a list of names of two nodes, such as \[edge 0, cloud\]"),
        (["tiers={edges: []}"], "empty list"),
        (["tiers={edges: [{}, {}]}"], "nobody has a place"),
        (["tiers={edges: [{position: [0 m, 1]}], association: balanced}"], "no unit"),
        (["tiers={edges: [{position: [0 m, 0 m]}], association: balanced}"], "is not read"),
        ([ONE, "clock={mode: buffered}"], "the edges of tiers know rounds only"),
        ([TWO, "learning.method={name: fedmap}"], "keeps more than a mean"),
        ([TWO, "devices.0.battery={capacity: 100 J}"], "a battery or a modem, which tiers"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_one_sentence(scenario, changes, sentence):
    with pytest.raises(EdgesimError, match=sentence) as refusal:
        set_up(scenario(*changes))
    assert "\n" not in str(refusal.value)


def test_a_resolved_scenario_reads_back(scenario, tmp_path):
    link = "{between: [edge 0, hub], rate: 1 Gbit/s}"
    links = f"[{link}, {{between: [edge 1, hub]}}, {{between: [hub, cloud], delay: 1 ms}}]"
    given = scenario(f"{TWO[:-1]}, backhaul: {{links: {links}, forwarding: store-and-forward}}}}")
    (tmp_path / "again.yaml").write_text(given.to_yaml())
    assert load(tmp_path / "again.yaml").digest() == given.digest()


def test_every_device_belongs_to_one_edge(scenario):
    edges = "edges: [{position: [-80 m, 0 m]}, {position: [80 m, 0 m]}]"
    setup = set_up(scenario(*SPREAD, f"tiers={{{edges}}}"))
    members = np.concatenate([edge.members for edge in setup.hierarchy.edges])
    assert sorted(members.tolist()) == [0, 1, 2, 3]
    x_m, y_m = setup.fleet.x_m, setup.fleet.y_m
    for edge in setup.hierarchy.edges:
        x = -80.0 if edge.number == 0 else 80.0
        here = np.hypot(x_m[edge.members] - x, y_m[edge.members])
        assert edge.fleet.distance_m == pytest.approx(here)
        assert (here <= np.hypot(x_m[edge.members] + x, y_m[edge.members])).all()
        samples = [setup.task.data.train_index[k].tolist() for k in edge.members]
        assert [own.tolist() for own in edge.method.task.data.train_index] == samples
    graph = setup.hierarchy.graph
    assert graph.nodes[0]["kind"] == "device" and graph.has_edge("edge 1", "cloud")
    shadows = [edge.channel.links.shadowing_db for edge in setup.hierarchy.edges]
    assert len(set(np.round(np.concatenate(shadows), 9))) == 4  # each edge has its own


def test_devices_draw_the_same_wherever_they_belong(scenario):
    """Batches by device and the first model do not depend on the edge."""
    setup = set_up(scenario(TWO))
    for edge in setup.hierarchy.edges:
        assert edge.method.task.initial().equal(setup.task.initial())
        for n, k in enumerate(edge.members.tolist()):
            own, whole = (s.stream("train", device=d, round=3).random(4)
                          for s, d in ((edge.streams, n), (setup.seeds, k)))  # fmt: skip
            assert own.tolist() == whole.tolist()
    draws = [
        edge.streams.stream("availability", round=0).random() for edge in setup.hierarchy.edges
    ]
    assert draws[0] != draws[1]


def rho_of(run):
    return run.device_rounds[run.device_rounds["round"] == 0].rho.tolist()


@pytest.mark.slow
def test_hierarchical_pruning_of_one_edge_without_backhaul_is_pruning_only(scenario):
    """Our reconstruction of Liu, Wang, Deng and Nallanathan: T_th is that of the cloud's round."""
    tight = "budget.latency_threshold=9 ms"
    star = simulate(scenario(*PRUNED, tight))
    tiers = simulate(scenario(*PRUNED, tight, ONE))
    assert rho_of(star) == rho_of(tiers) and max(rho_of(star)) > 0.1
    # kappa_2 rounds and the backhaul leave each round of an edge (T_th - t_bh) / kappa_2
    backhaul = "backhaul: {delay: 3 ms}"
    spread = simulate(scenario(*PRUNED, "budget.latency_threshold=33 ms",
                               f"{ONE[:-1]}, local_rounds: 3, {backhaul}}}"))  # fmt: skip
    assert spread.device_rounds[spread.device_rounds.edge_round == 0].rho.tolist()[:4] == (
        pytest.approx(rho_of(star), abs=1e-9)
    )
    assert spread.rounds.latency_s.tolist() == pytest.approx([0.033] * 3, rel=1e-6)


def test_equal_edges_have_equal_plans_and_a_backhaul_can_take_all_the_time(scenario):
    same = "network.channel.path_loss.loss=95 dB", "devices.0.cpu.frequency=1 GHz"
    tight = "budget.latency_threshold=5 ms"
    run = simulate(scenario(*PRUNED, *same, tight, TWO))
    assert len({round(rho, 12) for rho in rho_of(run)}) == 1 and rho_of(run)[0] > 0.0
    slow = f"{TWO[:-1]}, backhaul: {{delay: 2.5 ms}}}}"
    with pytest.raises(InfeasibleScenarioError, match="backhaul alone takes 5 ms"):
        simulate(scenario(*PRUNED, *same, tight, slow))


def test_the_check_lists_every_device_of_every_edge(scenario):
    table = feasibility(scenario(TWO))
    assert [(row["device"], row["edge"]) for row in table.rows] == [(0, 0), (1, 1), (2, 0), (3, 1)]
    assert "edge 1: all 2 devices can take part" in table.note


def test_edges_of_unequal_backhauls_have_thresholds_of_their_own(scenario, capsys):
    """20 ms of the cloud's 100 are on the way to edge 0 and back; each edge has two rounds."""
    links = "[{between: [edge 0, cloud], delay: 10 ms}, {between: [edge 1, cloud]}]"
    tiers = f"{TWO[:-1]}, local_rounds: 2, backhaul: {{links: {links}}}}}"
    table = feasibility(scenario(*PRUNED, tiers, "budget.latency_threshold=100 ms"))
    assert table.thresholds_ms == pytest.approx((40.0, 50.0))
    print_feasibility("joint", table)
    assert "thresholds of the edges 40 to 50 ms" in capsys.readouterr().out


TWO_PARTS = "personal_lr: 0.05, global_lr: 0.05, personal_steps: 2, global_steps: 2"
PARAMS = {
    "liu": TWO_PARTS,
    "fedalt": TWO_PARTS,
    "fedsim": TWO_PARTS,
    "fedmap": "phase_rounds: 1, local_steps: 2",
    "fedrep": "lr: 0.05, local_steps: 2, head_steps: 1",
    "pfedme": "local_steps: 2, lr: 0.02",
}
FAST = ("fedavg", "scaffold", "liu", "fedpm")


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in FAST else pytest.mark.slow) for n in available()],
)
def test_every_method_runs_or_refuses(scenario, name):
    """One edge is the cell alone for all that run; two edges learn, too."""
    params = PARAMS.get(name, "lr: 0.05, local_steps: 2")
    method = f"learning.method={{name: {name}, {params}}}", "learning.samples_per_device=10"
    if resolve(name).stale != "damp":
        with pytest.raises(EdgesimError, match="remove tiers"):
            simulate(scenario(*method, TWO))
        return
    star, one = (simulate(scenario(*method, "rounds=2", *tiers)) for tiers in ((), (ONE,)))
    for table in ("scores", "measures"):
        a, b = getattr(star, table), getattr(one, table)
        for column in a.columns:
            assert np.array_equal(a[column], b[column], equal_nan=a[column].dtype == float), column
    two = simulate(scenario(*method, "rounds=1", f"{TWO[:-1]}, local_rounds: 2}}"))
    assert np.isfinite(two.rounds.loss).all() and two.rounds.accuracy.between(0, 1).all()
    assert set(two.measures.name) == set(star.measures.name)


def test_the_work_of_a_swept_point_is_that_of_all_rounds_of_all_edges(scenario):
    """Four equal devices: two edges of two do in a round what one of four does; two rounds, twice.

    A sweep estimates its time by it.
    """
    one, two, twice = (
        check_point(scenario(tiers), {}, None, False).training_flops
        for tiers in (ONE, TWO, TWO.replace("association", "local_rounds: 2, association"))
    )
    assert one > 0 and two == one
    assert twice == 2 * one
