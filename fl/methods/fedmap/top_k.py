"""TopK of FedMAP: the places that come first, as bool masks."""

from __future__ import annotations

import numpy as np

from fl.contracts import Array


def top(p: Array, score: Array, room: int) -> Array:
    """The ``room`` largest p, of equal ones by score, then by index; bool [n]."""
    if room >= len(p):
        return np.ones(len(p), dtype=bool)
    if room <= 0:
        return np.zeros(len(p), dtype=bool)
    threshold = np.partition(p, len(p) - room)[len(p) - room]
    chosen, ties = p > threshold, np.flatnonzero(p == threshold)
    rank = np.argsort(-score[ties], kind="stable")
    chosen[ties[rank[: room - np.count_nonzero(chosen)]]] = True
    return chosen


def first(order: Array, count: int) -> Array:
    """The first ``count`` places of an order, bool [J]."""
    mask = np.zeros(len(order), dtype=bool)
    mask[order[:count]] = True
    return mask
