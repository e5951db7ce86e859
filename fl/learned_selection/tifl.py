"""TiFL: tiers of similar speed, one of them in each round, the inaccurate ones more often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fl.contracts import Array, View
from fl.learned_selection.learning_rule import Costs, Ended, LearningRule, Memory
from fl.method_base.hyperparameter_declaration import param


@dataclass(frozen=True)
class TiFL(LearningRule):
    """Adaptive tier selection, Algorithm 2.

    Departs from the paper: the accuracy of a tier is that of its devices while they train, since
    the server has no test data of theirs; a tier from which nothing arrived yet counts as 0. The
    chances stay as they are while a tier has sent updates of unknown accuracy: with real targets,
    and where the method has a loss of its own.
    """

    about = "devices of one tier of similar speed, more often of tiers with low accuracy"
    source = "Chai et al., HPDC 2020, Algorithm 2"
    needs_costs = True
    needs_training = True
    needs_rounds = True
    tiers: int = param(5, "groups of devices by their time", source="Chai et al., Section 5", ge=1)
    interval: int = param(
        10, "rounds between two changes of the probabilities", source="FLGo's default", ge=1
    )
    credits: int | None = param(
        None,
        "rounds in which a tier may be asked at most; none: any number",
        source="our choice: Chai et al. give no number",
        ge=1,
    )

    def start(self, devices: int) -> Memory:
        count = min(self.tiers, devices)
        return {
            "tier": None,  # of each device, once it is known
            "chance": [1.0 / count] * count,
            "used": [0] * count,
            "accuracy": [0.0] * count,
            "before": [0.0] * count,  # when the chances were looked at last
            "rounds": 0,
        }

    def choose(
        self, memory: Memory, view: View, costs: Costs, count: int, stream: np.random.Generator
    ) -> Array:
        tier, chance = tiers_of(memory, costs), np.array(memory["chance"])
        for number, used in enumerate(memory["used"]):
            spent = self.credits is not None and used >= self.credits
            if spent or not (tier[view.idle] == number).any():
                chance[number] = 0.0
        first = stream.random()
        lots = stream.random(len(view.samples))[view.idle]
        if not chance.any():  # whoever is there has used up the credits of its tier
            return view.idle[np.argsort(lots, kind="stable")[:count]]
        chosen = int(np.searchsorted(np.cumsum(chance) / chance.sum(), first, side="right"))
        order = np.argsort(np.where(tier[view.idle] == chosen, lots, 2.0), kind="stable")
        members = int((tier[view.idle] == chosen).sum())
        return view.idle[order[: min(count, members)]]

    def learn(self, memory: Memory, view: View, costs: Costs, ended: Sequence[Ended]) -> Memory:
        tier = tiers_of(memory, costs)
        new: dict[str, Any] = dict(memory)
        new |= {"tier": tier.tolist(), "rounds": memory["rounds"] + 1}
        asked = sorted({int(tier[each.device]) for each in ended})
        used, accuracy = list(memory["used"]), list(memory["accuracy"])
        for number in asked:
            used[number] += 1
            found = [each.accuracy for each in ended if tier[each.device] == number]
            if known := [value for value in found if value == value]:
                accuracy[number] = float(np.mean(known))
            elif any(each.received for each in ended if tier[each.device] == number):
                accuracy[number] = None
        new |= {"used": used, "accuracy": accuracy}
        if new["rounds"] % self.interval == 0 and None not in accuracy:
            current = asked[-1] if asked else 0
            if accuracy[current] <= memory["before"][current]:
                new["chance"] = by_low_accuracy(accuracy)
            new["before"] = accuracy
        return new


def tiers_of(memory: Memory, costs: Costs) -> Array:
    """Tier of every device [K], 0 the fastest: as at first, by the expected time of a round."""
    if memory["tier"] is not None:
        return np.array(memory["tier"])
    order = np.argsort(costs.compute_s + costs.upload_s, kind="stable")
    tier = np.empty(len(order), dtype=int)
    tier[order] = np.arange(len(order)) * len(memory["chance"]) // len(order)
    return tier


def by_low_accuracy(accuracy: Sequence[float]) -> list[float]:
    """Chances (n - i) / (n (n + 1) / 2) of the tier with the i-th lowest accuracy, i from 0."""
    n = len(accuracy)
    chance = np.empty(n)
    chance[np.argsort(accuracy, kind="stable")] = (n - np.arange(n)) / (n * (n + 1) / 2.0)
    return chance.tolist()
