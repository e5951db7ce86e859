"""The rules with a memory against numbers computed by hand; devices that are no ranks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edgesim.seeds import Seeds
from fl.contracts import View
from fl.learned_selection.age_of_update import AgeOfUpdate
from fl.learned_selection.catalogue import LEARNING_RULES
from fl.learned_selection.energy_queues import EnergyQueues
from fl.learned_selection.fedcs import FedCS, in_time
from fl.learned_selection.learning_rule import Costs, Ended, largest
from fl.learned_selection.power_of_choice import PowerOfChoice, in_proportion
from fl.learned_selection.proportional_fair import ProportionalFair
from fl.learned_selection.tifl import TiFL, by_low_accuracy
from fl.learned_selection.upper_confidence import UpperConfidence, bounds


def view(idle, devices=None, rate_bps=None, samples=None, budget_s=1.0, g=0):
    count = devices or len(idle)
    ones = np.ones(count)
    rates = ones if rate_bps is None else np.array(rate_bps, dtype=float)
    held = np.full(count, 10) if samples is None else np.array(samples)
    return View(g, 0.0, np.array(idle, dtype=int), rates, ones, held, budget_s, ones, ones)


def costs(compute_s, upload_s=0.0, energy_j=0.0):
    compute_s = np.array(compute_s, dtype=float)
    return Costs(compute_s, compute_s * 0 + np.array(upload_s), compute_s * 0 + np.array(energy_j))


def stream(g=0):
    return Seeds(0).stream("select", round=g)


def arrived(*devices, **known):
    return [Ended(k, True, known.get("finish_s", 0.5), known.get("energy_j", 0.0)) for k in devices]


def test_power_of_choice_takes_the_candidates_with_the_largest_losses():
    """losses .2, .9, .5, .7: of {0, 1, 3} the two {1, 3}, of {0, 2, 3} the two {2, 3}."""
    losses = np.array([0.2, 0.9, 0.5, 0.7])
    assert sorted(largest(losses, np.array([0, 1, 3]), 2)) == [1, 3]
    assert sorted(largest(losses, np.array([0, 2, 3]), 2)) == [2, 3]


def test_power_of_choice_remembers_losses_and_hears_everybody_first():
    rule = PowerOfChoice(candidates=4)
    memory = rule.learn(
        rule.start(5),
        view(range(5)),
        costs([0] * 5),
        [
            Ended(2, True, 1.0, loss=0.9),
            Ended(4, True, 1.0, loss=0.1),
            Ended(1, False, math.nan, loss=7.0),
        ],
    )
    assert memory["loss"] == [None, None, 0.9, None, 0.1]
    idle = np.array([1, 2, 4])
    chosen = rule.choose(memory, view(idle, 5), costs([0] * 5), 2, stream())
    assert chosen.tolist() == [1, 2]  # unheard, then the larger loss


def test_candidates_are_drawn_in_proportion_to_samples_and_once_each():
    samples, first = np.array([10, 30, 60]), np.zeros(3)
    for g in range(3000):
        drawn = in_proportion(samples, np.arange(3), 1, stream(g))
        first[drawn] += 1
    sigma = np.sqrt(3000 * np.array([0.1, 0.3, 0.6]) * np.array([0.9, 0.7, 0.4]))
    assert (np.abs(first - 30.0 * samples) < 3.0 * sigma).all()
    assert in_proportion(samples, np.array([0, 2]), 5, stream()).tolist() == [0, 2]


def test_fedcs_adds_the_device_that_adds_least_and_skips_who_is_too_late():
    """t_cmp 5, 1, 3, 4; t_up 1, 2, 1, 2; T 6.5: order 1 (3 s), 2 (4 s), 0 (6 s); 3 needs 8 s."""
    times = np.array([5.0, 1.0, 3.0, 4.0]), np.array([1.0, 2.0, 1.0, 2.0])
    assert in_time(np.arange(4), *times, 6.5, 9).tolist() == [1, 2, 0]
    assert in_time(np.arange(4), *times, 6.5, 2).tolist() == [1, 2]
    assert in_time(np.array([0, 3]), *times, 6.5, 9).tolist() == [0]
    rule = FedCS(overhead_s=1.0)
    chosen = rule.choose({}, view(range(4), budget_s=7.5), costs(times[0], times[1]), 9, stream())
    assert chosen.tolist() == [1, 2, 0]


def test_fedcs_tries_the_others_where_one_is_rejected():
    compute_s, upload_s = np.array([0.0, 0.0, 0.0]), np.array([2.0, 5.0, 2.5])
    assert in_time(np.arange(3), compute_s, upload_s, 5.0, 3).tolist() == [0, 2]


def test_tifl_asks_inaccurate_tiers_more_often():
    assert by_low_accuracy([0.9, 0.5, 0.7]) == pytest.approx([1 / 6, 1 / 2, 1 / 3])
    assert by_low_accuracy([1, 2, 3, 4, 5]) == pytest.approx(
        [5 / 15, 4 / 15, 3 / 15, 2 / 15, 1 / 15]
    )


def test_tifl_takes_devices_of_one_tier_without_repetition_and_keeps_its_credits():
    rule, times = TiFL(tiers=3, interval=1, credits=2), costs([6.0, 1.0, 5.0, 2.0, 4.0, 3.0, 9.0])
    tier = [2, 0, 1, 0, 1, 0, 2]  # 1, 3, 5 fast; 4, 2; 0, 6 slow: 7 devices in 3 tiers
    memory, seen = rule.start(7), []
    for g in range(6):
        chosen = rule.choose(memory, view(range(7), g=g), times, 2, stream(g))
        assert len(set(chosen.tolist())) == 2
        (number,) = {tier[k] for k in chosen}
        seen.append(number)
        ended = [Ended(int(k), True, 1.0, accuracy=0.9 - 0.1 * number) for k in chosen]
        memory = rule.learn(memory, view(range(7)), times, ended)
    assert sorted(seen) == [0, 0, 1, 1, 2, 2]  # two credits each
    assert memory["tier"] == tier
    assert rule.choose(memory, view(range(7)), times, 2, stream()).size == 2  # all are used up


def test_tifl_changes_its_chances_where_the_tier_did_not_rise():
    rule, times = TiFL(tiers=3, interval=1), costs([1.0, 2.0, 3.0])
    memory = rule.start(3)
    known = {"accuracy": [0.9, 0.5, 0.7], "before": [0.9, 0.5, 0.7]}
    rose = rule.learn(memory | known, view(range(3)), times, [Ended(1, True, 1.0, accuracy=0.6)])
    assert rose["chance"] == pytest.approx([1 / 3] * 3)
    fell = rule.learn(memory | known, view(range(3)), times, [Ended(1, True, 1.0, accuracy=0.5)])
    assert fell["chance"] == pytest.approx([1 / 6, 1 / 2, 1 / 3])


def test_tifl_keeps_its_chances_while_an_accuracy_is_unknown():
    rule, times = TiFL(tiers=3, interval=1), costs([1.0, 2.0, 3.0])
    memory = rule.start(3)
    for k in (0, 1, 2, 0, 1, 2):
        memory = rule.learn(memory, view(range(3)), times, [Ended(k, True, 1.0)])
        assert memory["chance"] == pytest.approx([1 / 3] * 3)
    for k, accuracy in enumerate((0.9, 0.0, 0.7)):  # known at last, and that of tier 1 is not > 0
        heard = [Ended(k, True, 1.0, accuracy=accuracy)]
        memory = rule.learn(memory, view(range(3)), times, heard)
    again = rule.learn(memory, view(range(3)), times, [Ended(1, True, 1.0, accuracy=0.0)])
    assert again["chance"] == pytest.approx([1 / 6, 1 / 2, 1 / 3])


def test_proportional_fair_beside_the_mean_rate():
    """r 2, 3, 5 and R 1, 2, 4: 2, 1.5, 1.25, so device 0; W 10: R 1.1, 1.8, 3.6."""
    rule, now = ProportionalFair(window=10.0), view(range(3), rate_bps=[2, 3, 5])
    memory = {"mean_bps": [1.0, 2.0, 4.0]}
    assert rule.choose(memory, now, costs([0] * 3), 1, stream()).tolist() == [0]
    after = rule.learn(memory, now, costs([0] * 3), arrived(0))
    assert after["mean_bps"] == pytest.approx([1.1, 1.8, 3.6])
    assert memory["mean_bps"] == [1.0, 2.0, 4.0]  # pure
    new = rule.choose(rule.start(3), now, costs([0] * 3), 3, stream())
    assert new.tolist() == [0, 1, 2]  # nobody was served


def test_the_age_of_one_in_three_is_round_robin_with_mean_age_one():
    rule, memory, order, ages = AgeOfUpdate(), AgeOfUpdate().start(3), [], []
    for _ in range(30):
        (k,) = rule.choose(memory, view(range(3)), costs([0] * 3), 1, stream()).tolist()
        memory = rule.learn(memory, view(range(3)), costs([0] * 3), arrived(k))
        order.append(k)
        ages.append(np.mean(memory["age"]))
    assert order == [0, 1, 2] * 10
    assert ages[-1] == 1.0
    by_rate = AgeOfUpdate(by_rate=True).choose(
        {"age": [1, 0, 3]}, view(range(3), rate_bps=[4, 9, 1]), costs([0] * 3), 1, stream()
    )
    assert by_rate.tolist() == [1]  # 2 x 4, 1 x 9, 4 x 1


def test_confidence_bounds():
    """means .5 (3 plays), .7 (7), n 10: 1.738974, 1.511099."""
    found = bounds(np.array([3.0, 7.0]), np.array([1.5, 4.9]))
    assert found == pytest.approx([1.738974, 1.511099], abs=1e-6)
    assert bounds(np.array([0.0, 1.0]), np.array([0.0, 1.0])).tolist() == [math.inf, 1.0]


def test_a_reward_is_the_time_left_of_the_threshold_and_old_ones_fade():
    rule, now = UpperConfidence(discount=0.5), view(range(3), budget_s=2.0)
    memory = rule.learn(rule.start(3), now, costs([0] * 3), arrived(1, finish_s=0.5))
    assert memory == {"plays": [0.0, 1.0, 0.0], "reward": [0.0, 0.75, 0.0]}
    late = [*arrived(0, finish_s=3.0), Ended(1, False, math.nan)]
    memory = rule.learn(memory, now, costs([0] * 3), late)
    assert memory == {"plays": [1.0, 1.5, 0.0], "reward": [0.0, 0.375, 0.0]}


def test_energy_queues_take_turns():
    """U 1, 1; E 2, 1; allowed 1; V 2; S 1: a tie, so 0; Q0 = 1 and Q1 = 0, then 1."""
    rule = EnergyQueues(energy_per_round_j=1.0, utility_weight=2.0)
    spend, now = costs([0.0, 0.0], energy_j=[2.0, 1.0]), view(range(2))
    memory = rule.start(2)
    assert rule.choose(memory, now, spend, 1, stream()).tolist() == [0]
    memory = rule.learn(memory, now, spend, arrived(0, energy_j=2.0))
    assert memory == {"queue_j": [1.0, 0.0]}
    assert rule.choose(memory, now, spend, 1, stream()).tolist() == [1]
    assert rule.choose({"queue_j": [9.0, 0.0]}, now, spend, 2, stream()).tolist() == [1]
    assert rule.choose({"queue_j": [9.0, 9.0]}, now, spend, 2, stream()).tolist() == [1]


@pytest.mark.slow
def test_energy_queues_keep_the_mean_within_the_budget():
    rule = EnergyQueues(energy_per_round_j=0.4, utility_weight=5.0)
    energy_j, memory, used = np.array([1.0, 2.0, 0.3]), rule.start(3), np.zeros(3)
    rounds = 4000
    for _ in range(rounds):
        chosen = rule.choose(memory, view(range(3)), costs([0] * 3, energy_j=energy_j), 2, stream())
        ended = [Ended(int(k), True, 1.0, float(energy_j[k])) for k in chosen]
        memory = rule.learn(memory, view(range(3)), costs([0] * 3), ended)
        used[chosen] += energy_j[chosen]
    assert (used / rounds < 0.4 + 0.02).all()


@pytest.mark.parametrize("name", LEARNING_RULES)
def test_every_rule_is_pure_and_chooses_idle_devices_once_each(name):
    rule, memory = LEARNING_RULES[name](), LEARNING_RULES[name]().start(9)
    given = costs(np.arange(9.0) / 20.0, 0.01, 0.5)
    for g, idle in enumerate(([0, 2, 5, 6, 8], [3], [1, 2, 3, 4, 5, 6, 7, 8], [])):
        now = view(idle, 9, rate_bps=np.arange(1.0, 10.0), g=g)
        if not idle:
            break
        before = repr(memory)
        first, second = (rule.choose(memory, now, given, 3, stream(g)) for _ in range(2))
        assert first.tolist() == second.tolist()
        assert set(first.tolist()) <= set(idle) and len(set(first.tolist())) == len(first) <= 3
        ended = [Ended(int(k), True, 0.3, 0.2, loss=0.1 * k, accuracy=0.5) for k in first]
        after = rule.learn(memory, now, given, ended)
        assert repr(memory) == before
        memory = after
