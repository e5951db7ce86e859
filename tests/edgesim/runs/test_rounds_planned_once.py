"""The check before a run and its first round ask for one plan: it is found once."""

import pytest

from edgesim import load, simulate
from edgesim.network.interference.network_planning.network_planner import NetworkPlanner
from edgesim.network.planning.planner import Planner

TINY = """
name: tiny
rounds: 2
network:
  bandwidth: 200 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 100 dB}, fading: {kind: rayleigh, coherence: 5 ms}}
devices: [{count: 3, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}]
budget: {latency_threshold: 25 ms}
learning: {dataset: none, model: mlp, batch_size: 20, method: {name: liu}}
"""
QUANTILE = "allocation={rate: quantile, reliability: 0.9}"
SECTORS = [
    "network.carrier={frequency: 3.5 GHz}",
    "network.noise=-169 dBm/Hz",
    "network.layout={kind: hex, rings: 0}",
    "network.channel={path_loss: {model: uma, antenna: {kind: column}}}",
    "budget.latency_threshold=2 s",
]
ASYNCHRONOUS = ["clock={mode: asynchronous}", "allocation={solver: equal}", "rounds=1"]
TWO_EDGES = "tiers={edges: [{}, {}], members: [0, 0, 1], association: list}"
SOME_AWAY = ["devices.0.availability=0.5", "rounds=1"]


@pytest.fixture
def tiny(tmp_path):
    """`load` of the scenario above with changes."""
    (tmp_path / "tiny.yaml").write_text(TINY)
    return lambda *changes: load(tmp_path / "tiny.yaml", [*changes])


@pytest.fixture
def planned(monkeypatch):
    """The rounds that plans were found for, in order."""

    def counted(owner):
        rounds, plan = [], owner.plan

        def note(self, demand, view, *options, **named):
            rounds.append(view.g)
            return plan(self, demand, view, *options, **named)

        monkeypatch.setattr(owner, "plan", note)
        return rounds

    return counted


@pytest.mark.parametrize(
    ("changes", "rounds"),
    [
        ([], [0, 1]),
        ([QUANTILE], [0]),  # where plans count with fading, rounds ask the same
        (ASYNCHRONOUS, [0]),
        (SOME_AWAY, [0, 0]),  # the check asks all devices, the round those that are there
    ],
    ids=["now", "quantile", "asynchronous", "away"],
)
def test_the_first_round_has_the_plan_of_the_check(tiny, planned, changes, rounds):
    found = planned(Planner)
    simulate(tiny(*changes))
    assert found == rounds


def test_a_network_is_planned_once_a_round(tiny, planned):
    found = planned(NetworkPlanner)
    simulate(tiny(*SECTORS))
    assert found == [0, 1]


def test_every_edge_keeps_its_own_plan(tiny, planned):
    found = planned(Planner)
    simulate(tiny(TWO_EDGES, QUANTILE))
    assert found == [0, 0]


def test_a_resumed_run_plans_its_own_rounds(tiny, planned, tmp_path):
    simulate(tiny(), out=tmp_path / "run")
    found = planned(Planner)
    simulate(tiny("rounds=3"), out=tmp_path / "run")
    assert found == [0, 2]  # the check, and the round that was added
