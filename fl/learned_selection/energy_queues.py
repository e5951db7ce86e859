"""Energy in the long run: Lyapunov optimisation with one virtual queue per device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fl.contracts import Array, View
from fl.learned_selection.learning_rule import Costs, Ended, LearningRule, Memory, largest
from fl.method_base.hyperparameter_declaration import param


@dataclass(frozen=True)
class EnergyQueues(LearningRule):
    """The largest V U_k - Q_k E_k; Q <- max(0, Q + E used - E allowed).

    U_k is the device's share of the samples, 1 in the mean; E_k what taking part is expected to
    cost it. Of devices with a negative value none is asked, but for the best where all have one.
    """

    about = "the best use within an energy budget per device and round, in the long run"
    source = "Neely, Stochastic Network Optimization, 2010: drift plus penalty"
    needs_costs = True
    energy_per_round_j: float = param(
        1.0, "energy that a device may use in a round, in the mean, J", source="our choice", gt=0.0
    )
    utility_weight: float = param(
        1.0, "V, weight of the use beside the queues", source="our choice", gt=0.0
    )

    def start(self, devices: int) -> Memory:
        return {"queue_j": [0.0] * devices}

    def choose(
        self, memory: Memory, view: View, costs: Costs, count: int, stream: np.random.Generator
    ) -> Array:
        use = view.samples / view.samples.mean()
        value = self.utility_weight * use - np.array(memory["queue_j"]) * costs.energy_j
        best = largest(value, view.idle, count)
        good = best[value[best] >= 0.0]
        return good if len(good) else best[:1]

    def learn(self, memory: Memory, view: View, costs: Costs, ended: Sequence[Ended]) -> Memory:
        queue_j = np.array(memory["queue_j"]) - self.energy_per_round_j
        for each in ended:
            queue_j[each.device] += each.energy_j
        return {"queue_j": np.maximum(queue_j, 0.0).tolist()}
