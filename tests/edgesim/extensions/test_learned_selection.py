"""`learning.selection` with a memory: under every clock, resumed, refused in a sentence."""

from __future__ import annotations

from collections import Counter

import pytest

from edgesim import load, simulate
from edgesim.errors import EdgesimError
from fl.learned_selection.catalogue import LEARNING_RULES
from tests.edgesim.resumed_runs import assert_resumed

CELL = """
name: choosing
rounds: 7
network:
  bandwidth: 4 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 95 dB}}
devices:
  - count: 6
    tx_power: {choice: [23 dBm, 17 dBm]}
    availability: 0.8
    cpu: {frequency: [2 GHz, 1 GHz, 700 MHz, 100 MHz, 300 MHz, 500 MHz], flops_per_cycle: 4}
allocation: {solver: equal}
budget: {latency_threshold: 30 ms}
learning: {dataset: none, model: mlp, batch_size: 10, method: {name: fedavg, participants: 2}}
"""
TRAINED = (
    "learning={dataset: digits, partition: {kind: iid}, samples_per_device: 10, model: mlp, "
    "batch_size: 10, method: {name: fedavg, participants: 2, lr: 0.05, local_epochs: 1}}"
)
CLOCKS = {
    "synchronous": "clock={mode: synchronous}",
    "deadline": "clock={mode: deadline}",
    "overcommit": "clock={mode: overcommit, over_commit: 1.5}",
    "buffered": "clock={mode: buffered, buffer: 2}",
    "asynchronous": "clock={mode: asynchronous}",
    "window": "clock={mode: window, window: 20 ms}",
}


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "six.yaml"
    path.write_text(CELL)
    return lambda *changes: load(path, list(changes))


def changes_for(name, clock):
    trained = (
        [TRAINED.replace(", local_epochs: 1", "")] if LEARNING_RULES[name].needs_training else []
    )
    return [*trained, CLOCKS[clock], f"learning.selection={name}"]


def fits(name, clock):
    return not LEARNING_RULES[name].needs_rounds or clock in (
        "synchronous",
        "deadline",
        "overcommit",
    )


@pytest.mark.parametrize("name", LEARNING_RULES)
def test_every_rule_under_every_clock_that_it_goes_with(scenario, name):
    for clock in CLOCKS:
        given = scenario(*changes_for(name, clock), "rounds=3")
        if fits(name, clock):
            run = simulate(given)
            assert (run.rounds.arrived > 0).any()
            assert clock != "synchronous" or run.rounds.selected.max() <= 2
        else:
            with pytest.raises(EdgesimError, match="plans rounds that do not overlap"):
                simulate(given)


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNING_RULES)
def test_a_killed_run_goes_on_with_the_same_bytes(scenario, tmp_path, name):
    clock = "buffered" if fits(name, "buffered") else "synchronous"
    given = scenario(*changes_for(name, clock))
    names = "rounds.csv", "device_rounds.parquet", "scenario.yaml", "summary.json"
    whole = assert_resumed(given, tmp_path, [3], names)
    assert whole.device_rounds.device.nunique() > 2


TDD = (
    "network.carrier={frequency: 3.5 GHz, bandwidth: 20 MHz, noise_figure: 5 dB, tdd: DDDSU}",
    "network.bandwidth=18.36 MHz",
    "network.noise=-169 dBm/Hz",
)
UNICAST = "network.downlink={mode: unicast, tx_power: 46 dBm}"
IDLE = "devices.0.idle_power=50 mW"
MODEM = "devices.0.radio={circuit_power: 0.1 W, efficiency: 0.35, tail: 10 ms, tail_power: 50 mW}"


@pytest.mark.parametrize(
    ("changes", "ends"),
    [
        ((), {"arrived"}),
        (TDD, {"arrived"}),
        ((*TDD, UNICAST, "devices.0.receive_power=300 mW"), {"arrived"}),
        (("devices.0.cpu.static_power=200 mW", MODEM), {"arrived"}),
        (("clock={mode: deadline}", "budget.latency_threshold=6.3 ms"), {"arrived", "late"}),
        (("devices.0.failure_rate=200 Hz",), {"failed"}),
        (
            ("clock={mode: buffered, buffer: 2}", "network.uplink.share=edf"),
            {"arrived", "unfinished"},
        ),
    ],
    ids=["plain", "tdd", "unicast", "modem", "late", "failed", "edf"],
)
def test_a_rule_is_told_the_joules_of_the_ledger(scenario, monkeypatch, changes, ends):
    rule, told = LEARNING_RULES["energy-queues"], Counter()
    learn = rule.learn

    def noted(self, memory, view, costs, ended):
        for each in ended:
            told[each.device] += each.energy_j
        return learn(self, memory, view, costs, ended)

    monkeypatch.setattr(rule, "learn", noted)
    given = "learning.selection=energy-queues", "budget.latency_threshold=9 s", IDLE
    run = simulate(scenario(*given, *changes, "rounds=1"))
    used = run.spans[~run.spans.phase.isin(["idle", "off"])].groupby("device").energy_j.sum()
    assert told == pytest.approx(used.to_dict(), rel=1e-9)
    assert set(run.device_rounds.status) == ends


WEAK = "devices.0.battery={capacity: 1.1 J, start: [0.0001, 0.0001, 1, 1, 1, 1]}"
CHOOSERS = {
    "ucb": ("learning.selection=ucb", "rounds=3"),
    "refl": (
        TRAINED.replace("fedavg", "refl").replace("2,", "2, rest_rounds: 2,"),
        "rounds=3",
    ),
    "oort": (TRAINED.replace("fedavg", "oort"), "rounds=3"),
}


@pytest.mark.parametrize("name", CHOOSERS)
def test_who_cannot_begin_was_asked_all_the_same(scenario, name):
    """2 of 6 are asked a round: in three rounds each once, and a weak battery not in every one."""
    run = simulate(scenario(*CHOOSERS[name], WEAK, "devices.0.availability=1"))
    weak = run.device_rounds[run.device_rounds.status == "infeasible"]
    assert sorted(weak.device) == [0, 1]
    assert sorted(run.device_rounds.device) == list(range(6))


@pytest.mark.slow
def test_a_resolved_scenario_has_the_parameters_and_reads_back(scenario, tmp_path):
    given = scenario("learning.selection={name: energy-queues, energy_per_round_j: 0.001}")
    run = simulate(given, out=tmp_path / "run")
    again = load(tmp_path / "run" / "scenario.yaml")
    expected = {"energy_per_round_j": 0.001, "utility_weight": 1.0}
    assert again.learning.selection.params == expected
    assert simulate(again).device_rounds.equals(run.device_rounds)
    assert load(tmp_path / "six.yaml").learning.selection.name == "uniform"


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        (["learning.selection=tifl"], "reads what training gives; name a data set"),
        (["learning.selection=ucb", "budget={latency_threshold: none}"], "needs budget.latency"),
        (["learning.selection={name: age, window: 3}"], "window is no parameter of age"),
        (["learning.selection={name: uniform, window: 3}"], "no parameter of uniform, which has"),
        (
            ["learning.selection={name: ucb, discount: 2}"],
            "discount is 2.0; allowed is a number > 0",
        ),
        (["learning.selection=fedsc"], 'did you mean "fedcs"'),
        (["learning.selection={window: 3}"], "write a mapping with the selection rule's name"),
        (
            [TRAINED.replace("fedavg", "oort"), "learning.selection=age"],
            "is age, which oort does not read: it selects by a rule of its own",
        ),
    ],
)
def test_a_mistake_is_one_sentence(scenario, changes, part):
    if "oort" in changes[0]:
        changes = [changes[0].replace(", lr: 0.05, local_epochs: 1", ""), *changes[1:]]
    with pytest.raises(EdgesimError) as error:
        simulate(scenario(*changes))
    assert part in str(error.value) and "\n" not in str(error.value)
