"""What the edges of a hierarchy and their devices remember, and what the cloud makes of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fl.contracts import METRIC, VALIDATION_MEASURES, Array, Scores, Sent, State, Tensor
from fl.method_base.aggregation import mean_over_holders

MEMORY = "memo/"  # begins the names of what a server remembers beside its model
LOCAL = "local/"  # begins the names of what stays at devices


@dataclass(frozen=True)
class TieredState:
    """The state after ``g`` rounds of the cloud.

    Args:
        g: rounds done.
        edges: the method's state at each edge; after a round of the cloud all have its model.
    """

    g: int
    edges: tuple[State, ...]
    members: tuple[tuple[int, ...], ...]  # devices of each edge, by their numbers in the scenario

    def to_arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Arrays by name, and the record that `from_arrays` needs beside them.

        The model is ``w``, what stays at device k ``local/k``, with its number in the scenario, and
        what the server of edge e remembers ``edge e/memo/name``.
        """
        arrays: dict[str, Array] = {}
        records = []
        for e, (state, members) in enumerate(zip(self.edges, self.members, strict=True)):
            own, record = state.to_arrays()
            for name, value in own.items():
                arrays.setdefault(_outer(name, e, members), value)
            records.append(record)
        return arrays, {"g": self.g, "edges": records}

    @classmethod
    def from_arrays(
        cls,
        arrays: dict[str, Array],
        record: dict[str, Any],
        members: Sequence[Array],
        restore: Sequence[Callable[[dict[str, Array], dict[str, Any]], State]],
    ) -> TieredState:
        """The state that `to_arrays` wrote.

        Args:
            arrays: by name.
            record: beside them.
            members: devices of each edge.
            restore: of each edge, (arrays, record) -> its state.
        """
        states = []
        listed = tuple(tuple(each.tolist()) for each in members)
        for e, (own, make) in enumerate(zip(record["edges"], restore, strict=True)):
            names = {_inner(name, e, listed[e]): name for name in arrays}
            states.append(make({new: arrays[old] for new, old in names.items() if new}, own))
        model = getattr(states[0], "w", None)
        if model is not None:  # one tensor for all, as the cloud hands it out
            states = [replace(state, w=model) for state in states]
        return cls(int(record["g"]), tuple(states), listed)


def _outer(name: str, e: int, members: Sequence[int]) -> str:
    """The name of an edge's array in the arrays of all."""
    if name.startswith(LOCAL):
        return f"{LOCAL}{members[int(name.removeprefix(LOCAL))]}"
    return f"edge {e}/{name}" if name.startswith(MEMORY) else name


def _inner(name: str, e: int, members: Sequence[int]) -> str:
    """The other way; "" where the array is not the edge's."""
    if name.startswith(LOCAL):
        k = int(name.removeprefix(LOCAL))
        return f"{LOCAL}{members.index(k)}" if k in members else ""
    if name.startswith("edge "):
        own = f"edge {e}/"
        return name.removeprefix(own) if name.startswith(own) else ""
    return name


def with_mean_model(
    states: Sequence[State], shared: Tensor, weights: Sequence[float]
) -> tuple[State, ...]:
    """The edges' states, each with the mean of all their models: HierFAVG's cloud.

    An edge is to the cloud what a device is to FedAvg: what is shared is averaged with its weight,
    what belongs to devices, and what an edge's server remembers, stays where it is.

    Args:
        states: of the edges.
        shared: weights that travel, bool [P].
        weights: of each edge, the sum over its devices.
    """
    sent = [Sent(state.w, shared) for state in states]
    w = mean_over_holders(states[0].w, sent, weights)
    return tuple(replace(state, w=w) for state in states)


def joined_scores(
    scores: Sequence[Scores], members: Sequence[Sequence[int]], held_out: Sequence[int]
) -> Scores:
    """The scores of the devices of all edges.

    A measure is the mean over the edges that have it: a metric by their numbers of devices with
    test data, those of validation by those with samples held out, one of the method by all.

    Args:
        scores: of the edges.
        members: devices of each edge.
        held_out: of each edge, how many of its devices hold samples out.
    """
    if len(scores) == 1:
        return scores[0]
    devices = np.concatenate([np.array(each) for each in members])
    loss, accuracy = np.empty(len(devices)), np.empty(len(devices))
    loss[devices] = np.concatenate([each.loss for each in scores])
    accuracy[devices] = np.concatenate([each.accuracy for each in scores])
    measures: dict[str, float] = {}
    for name in dict.fromkeys(name for each in scores for name in each.measures):
        counts = [len(each) for each in members]
        if name.startswith(METRIC):
            counts = [int(np.count_nonzero(~np.isnan(each.loss))) for each in scores]
        elif name in VALIDATION_MEASURES:
            counts = list(held_out)
        having = [
            (n, each.measures[name])
            for n, each in zip(counts, scores, strict=True)
            if n and name in each.measures
        ]
        total = sum(n for n, _ in having)
        measures[name] = sum(n * value for n, value in having) / total if total else math.nan
    return Scores(loss, accuracy, measures)
