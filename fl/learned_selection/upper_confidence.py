"""Upper confidence bounds: devices that were fast, and those that were seldom tried."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fl.contracts import Array, View
from fl.learned_selection.learning_rule import Costs, Ended, LearningRule, Memory, largest
from fl.method_base.hyperparameter_declaration import param


@dataclass(frozen=True)
class UpperConfidence(LearningRule):
    """The largest mean reward + sqrt(2 ln n / n_k); a device that was never tried comes first.

    The reward is 1 - T_k / T_th, at least 0, and 0 for a job that was lost or could not begin.
    """

    about = "devices that were fast beside the threshold, and those that were seldom tried"
    source = "Xia et al., IEEE TWC 2020 (CS-UCB); Auer et al., 2002, UCB1"
    needs_threshold = True
    discount: float = param(
        1.0,
        "gamma, weight of a reward one round later; 1: none is forgotten",
        source="Garivier and Moulines, 2011; 1 is UCB1",
        gt=0.0,
        le=1.0,
    )

    def start(self, devices: int) -> Memory:
        return {"plays": [0.0] * devices, "reward": [0.0] * devices}

    def choose(
        self, memory: Memory, view: View, costs: Costs, count: int, stream: np.random.Generator
    ) -> Array:
        plays, reward = np.array(memory["plays"]), np.array(memory["reward"])
        return largest(bounds(plays, reward), view.idle, count)

    def learn(self, memory: Memory, view: View, costs: Costs, ended: Sequence[Ended]) -> Memory:
        plays = np.array(memory["plays"]) * self.discount
        reward = np.array(memory["reward"]) * self.discount
        for each in ended:
            plays[each.device] += 1.0
            if each.received and not math.isnan(each.finish_s):
                reward[each.device] += min(max(1.0 - each.finish_s / view.budget_s, 0.0), 1.0)
        return {"plays": plays.tolist(), "reward": reward.tolist()}


def bounds(plays: Array, reward: Array) -> Array:
    """Upper bounds of the mean rewards [K].

    Args:
        plays: n_k, how often each device was tried [K].
        reward: sum of its rewards [K].
    """
    total = float(plays.sum())
    tried = plays > 0.0
    found = np.full(len(plays), np.inf)
    width = np.sqrt(2.0 * max(math.log(total), 0.0) / plays[tried]) if tried.any() else 0.0
    found[tried] = reward[tried] / plays[tried] + width
    return found
