"""With when_infeasible: stop a sentence names devices by their numbers in the scenario."""

import re

import pytest

from edgesim.errors import InfeasibleScenarioError
from edgesim.runs.run import feasibility, simulate
from edgesim.scenario.loader import load

WEAK = """\
name: weak
rounds: 40
network: {bandwidth: 350 kHz, noise: -110 dBm,
          channel: {path_loss: {model: constant, loss: [80 dB, 80 dB, 99 dB, 99 dB]}}}
devices: [{count: 4, tx_power: 20 dBm, cpu: {frequency: 1 GHz, cycles_per_weight: 1}}]
budget: {latency_threshold: 150 ms}
allocation: {solver: kkt, when_infeasible: stop}
learning: {dataset: none, model: mlp, batch_size: 10, method: {name: fedavg}}
"""
EDGES = "tiers={edges: [{}, {}], association: list, members: [1, 1, 0, 0]}"
FADING = "network.channel.fading={kind: rayleigh, coherence: 20 ms}"


@pytest.fixture
def weak(tmp_path):
    path = tmp_path / "weak.yaml"
    path.write_text(WEAK, encoding="utf-8")
    return lambda *options: load(path, list(options))


def test_they_are_those_that_the_round_asks(weak):
    some = "learning.method.participants=2", "network.bandwidth=100 kHz", "rounds=1"
    asked = simulate(weak(*some, "allocation.when_infeasible=stretch"), seed=1).device_rounds.device
    assert asked.tolist() != [0, 1]
    with pytest.raises(InfeasibleScenarioError) as refused:
        simulate(weak(*some), seed=1)
    assert f"Devices {asked[0]}, {asked[1]} need" in str(refused.value)


@pytest.mark.parametrize("solver", ["kkt", "equal", "energy"])
def test_they_have_their_numbers_in_the_whole_network_with_edges(weak, solver):
    far = "network.channel.path_loss.loss=[80 dB, 80 dB, 130 dB, 80 dB]"
    note = feasibility(weak(EDGES, f"allocation.solver={solver}", far)).note
    assert re.search(r"Device 2 needs|device 2 (is late|would be)", note)
    assert re.search(r"edge 1: all 2 devices can take part", note)


@pytest.mark.parametrize("solver", ["kkt", "equal"])
def test_an_edge_that_cannot_meet_the_threshold_later_stops_the_run_with_a_sentence(weak, solver):
    done = []
    scenario = weak(EDGES, FADING, f"allocation.solver={solver}")
    sentence = r"Devices? (2|3|2, 3) need|devices? (2|3|2, 3) would"
    with pytest.raises(InfeasibleScenarioError, match=sentence):
        simulate(scenario, seed=0, progress=done.append)
    assert done


@pytest.mark.parametrize(("solver", "advice"), [("kkt", "; or write "), ("equal", "s; write ")])
def test_a_longer_threshold_is_proposed_beside_other_advice_or_alone(weak, solver, advice):
    note = feasibility(weak("network.bandwidth=100 kHz", f"allocation.solver={solver}")).note
    assert note.count(" write ") == 1
    assert f"{advice}allocation.when_infeasible: stretch" in note


@pytest.mark.parametrize(
    ("solver", "advice"),
    [("kkt", "raise learning.method.rho_max"), ("energy", "set learning.method.rho")],
)
def test_the_sentence_on_pruning_names_the_key_of_the_method(weak, solver, advice):
    """It named a quantity of the solver, such as rho_min, that no scenario has."""
    pruned = "learning.method={name: liu, rho_max: 0.1}"
    scenario = weak(pruned, "network.bandwidth=1 kHz", f"allocation.solver={solver}")
    with pytest.raises(InfeasibleScenarioError) as told:
        simulate(scenario)
    for sentence in (feasibility(scenario).note, str(told.value)):
        assert f" s more time or {advice}; or write" in sentence
        even = "Even pruned to learning.method.rho_max, devices 0, 1, 2, 3 need"
        assert sentence.startswith(even) == (solver == "kkt")
        assert not re.search("(?<!method.)rho", sentence)
