"""Age of update: whose last update is the oldest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fl.contracts import Array, View
from fl.learned_selection.learning_rule import Costs, Ended, LearningRule, Memory, largest
from fl.method_base.hyperparameter_declaration import param


@dataclass(frozen=True)
class AgeOfUpdate(LearningRule):
    """The largest age A_k, or (A_k + 1) r_k; A <- (A + 1) (1 - received), from 0 on."""

    about = "whose last update is the oldest, if asked also by its rate"
    source = "Yang et al., IEEE ICASSP 2020"
    by_rate: bool = param(
        False, "the age counts times the uplink rate", source="our choice: the age alone"
    )

    def start(self, devices: int) -> Memory:
        return {"age": [0] * devices}

    def choose(
        self, memory: Memory, view: View, costs: Costs, count: int, stream: np.random.Generator
    ) -> Array:
        age = np.array(memory["age"], dtype=float)
        # From 1 on, so that among devices of age 0 the rate decides.
        return largest((age + 1.0) * view.rate_bps if self.by_rate else age, view.idle, count)

    def learn(self, memory: Memory, view: View, costs: Costs, ended: Sequence[Ended]) -> Memory:
        age = np.array(memory["age"]) + 1
        age[[each.device for each in ended if each.received]] = 0
        return {"age": age.tolist()}
