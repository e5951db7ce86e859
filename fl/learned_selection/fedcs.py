"""FedCS: as many devices as can upload one after the other before the threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fl.contracts import Array, View
from fl.learned_selection.learning_rule import Costs, LearningRule, Memory
from fl.method_base.hyperparameter_declaration import param


@dataclass(frozen=True)
class FedCS(LearningRule):
    """Device by device the one that adds least to the time of the round.

    It plans as if each upload had the whole band, one behind the other; the scenario's allocator
    divides it otherwise. It remembers nothing.
    """

    about = "as many as can send one after the other before the threshold, fast ones first"
    source = "Nishio and Yonetani, IEEE ICC 2019, Algorithm 3"
    needs_costs = True
    needs_threshold = True
    needs_rounds = True
    overhead_s: float = param(
        0.0,
        "time of a round that is spent on choosing, downloading and aggregating, s",
        source="our choice: the downlink is ideal unless a scenario says otherwise",
        ge=0.0,
    )

    def start(self, devices: int) -> Memory:
        return {}

    def choose(
        self, memory: Memory, view: View, costs: Costs, count: int, stream: np.random.Generator
    ) -> Array:
        left_s = view.budget_s - self.overhead_s
        return in_time(view.idle, costs.compute_s, costs.upload_s, left_s, count)


def in_time(devices: Array, compute_s: Array, upload_s: Array, left_s: float, count: int) -> Array:
    """Devices in the order in which they send, at most ``count``.

    Args:
        devices: to choose from, int [A].
        compute_s: [K], s.
        upload_s: [K], alone on the band, s.
        left_s: by which all have sent, s.
        count: largest number of devices.
    """
    chosen: list[int] = []
    rest, busy_s = list(devices.tolist()), 0.0
    while rest and len(chosen) < count:
        added_s = [upload_s[k] + max(0.0, compute_s[k] - busy_s) for k in rest]
        place = int(np.argmin(added_s))
        k, more_s = rest.pop(place), float(added_s[place])
        if busy_s + more_s < left_s:
            busy_s += more_s
            chosen.append(k)
    return np.array(chosen, dtype=int)
