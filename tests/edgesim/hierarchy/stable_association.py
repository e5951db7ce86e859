"""What the local search of associations promises, checked by the total cost of every neighbour."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np


def total_cost(cost, at, edges):
    """The sum over edges of their costs with the devices that ``at`` [K] gives them."""
    return math.fsum(cost(e, tuple(np.flatnonzero(at == e).tolist())) for e in range(edges))


def is_stable(cost, at, edges):
    """No move of one device and no swap of two lowers the total cost."""
    known, neighbours = cache(cost), []
    for k, e in itertools.product(range(len(at)), range(edges)):
        neighbours.append(np.where(np.arange(len(at)) == k, e, at))
    for pair in itertools.combinations(range(len(at)), 2):
        swapped = at.copy()
        swapped[list(pair)] = at[list(pair[::-1])]
        neighbours.append(swapped)
    least = total_cost(known, at, edges) * (1.0 - 1e-9)
    return all(total_cost(known, near, edges) >= least for near in neighbours)
