"""Power-of-choice: of some drawn candidates those with the largest losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fl.contracts import Array, View
from fl.learned_selection.learning_rule import Costs, Ended, LearningRule, Memory, largest
from fl.method_base.hyperparameter_declaration import param

SOURCE = "Cho et al., arXiv 2010.01243, Section 4 (rpow-d)"


@dataclass(frozen=True)
class PowerOfChoice(LearningRule):
    """Candidates are drawn in proportion to their samples; their last known losses decide.

    A device that was never heard counts as infinitely bad, so that all are heard first. Nothing
    more travels than without the rule: the variants that ask all candidates for the loss of the
    present model are not modelled.
    """

    about = "of drawn candidates those whose last training loss was the largest"
    source = SOURCE
    needs_training = True
    candidates: int | None = param(
        None,
        "d, devices drawn in proportion to their samples; none: twice as many as are asked",
        source="our choice: Cho et al. vary it",
        ge=1,
    )

    def start(self, devices: int) -> Memory:
        return {"loss": [None] * devices}

    def choose(
        self, memory: Memory, view: View, costs: Costs, count: int, stream: np.random.Generator
    ) -> Array:
        drawn = max(self.candidates or 2 * count, count)
        candidates = in_proportion(view.samples, view.idle, drawn, stream)
        return largest(losses(memory), candidates, count)

    def learn(self, memory: Memory, view: View, costs: Costs, ended: Sequence[Ended]) -> Memory:
        loss: list[Any] = list(memory["loss"])
        for each in ended:
            if each.received and math.isfinite(each.loss):
                loss[each.device] = each.loss
        return {"loss": loss}


def losses(memory: Memory) -> Array:
    """Last known losses [K]; inf: unknown."""
    return np.array([math.inf if loss is None else loss for loss in memory["loss"]])


def in_proportion(weights: Array, devices: Array, count: int, stream: np.random.Generator) -> Array:
    """Devices drawn without replacement in proportion to weights [K], in rising order.

    Efraimidis and Spirakis, 2006: the largest u^(1 / w), here the smallest -ln(u) / w.
    """
    # One number for every device of the cell, so that no draw depends on who else is there.
    waits = stream.standard_exponential(len(weights)) / np.asarray(weights, dtype=float)
    order = np.argsort(waits[devices], kind="stable")
    return np.sort(devices[order[:count]])
