"""Proportional fairness: the best channel beside what a device usually has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fl.contracts import Array, View
from fl.learned_selection.learning_rule import Costs, Ended, LearningRule, Memory, largest
from fl.method_base.hyperparameter_declaration import param


@dataclass(frozen=True)
class ProportionalFair(LearningRule):
    """The largest r_k / R_k, where R_k is the mean rate at which device k was served.

    R <- (1 - 1 / W) R + (1 / W) r served; a device that was never served comes first.
    """

    about = "the largest rate beside the mean rate at which the device was served"
    source = "Kelly et al., Journal of the Operational Research Society, 1998"
    window: float = param(
        10.0, "W, rounds over which rates are averaged", source="our choice", ge=1.0
    )

    def start(self, devices: int) -> Memory:
        return {"mean_bps": [0.0] * devices}

    def choose(
        self, memory: Memory, view: View, costs: Costs, count: int, stream: np.random.Generator
    ) -> Array:
        return largest(ratio(view.rate_bps, np.array(memory["mean_bps"])), view.idle, count)

    def learn(self, memory: Memory, view: View, costs: Costs, ended: Sequence[Ended]) -> Memory:
        served = np.zeros(len(view.rate_bps))
        served[[each.device for each in ended if each.received]] = 1.0
        before = np.array(memory["mean_bps"])
        mean_bps = (1.0 - 1.0 / self.window) * before + view.rate_bps * served / self.window
        return {"mean_bps": mean_bps.tolist()}


def ratio(rate_bps: Array, mean_bps: Array) -> Array:
    """r / R [K]; inf where R is 0."""
    return np.divide(rate_bps, mean_bps, out=np.full(len(rate_bps), np.inf), where=mean_bps > 0.0)
