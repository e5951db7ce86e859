"""What FedMAP's server believes of every keep-probability, a Beta posterior; what its messages and its sampling weigh.

Plain arithmetic on arrays [J], numpy or torch alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2
from typing import Any

import numpy as np

from fl.accounting import binary_entropy

Array = np.ndarray
Values = Any  # [J], a numpy array or a torch tensor


@dataclass(frozen=True)
class Beta:
    """p ~ Beta(alpha, beta) of every place [J], FedMAP, (5)."""

    alpha: Values
    beta: Values

    def mode(self) -> Values:
        """p = (alpha - 1) / (alpha + beta - 2): FedMAP, (9)."""
        return (self.alpha - 1.0) / (self.alpha + self.beta - 2.0)

    def counted(self, counts: Sequence[tuple[Values, Any]]) -> Beta:
        """With the survival counts that arrived, pairs of m [J] and of the number of draws n: FedMAP, (9).

        A place survived m draws, and failed one more unless it survived all n.
        """
        alpha, beta = self.alpha, self.beta
        for survived, draws in counts:
            alpha, beta = alpha + survived, beta + (survived < draws)
        return Beta(alpha, beta)


def unbiased_rate(holders: Array, devices: int, sampled: int) -> Array:
    """Server step size 1 / P(at least one of the N_j holders is sampled) [J]: FedMAP, (2); 0 where N_j = 0.

    Args:
        holders: N_j [J]; expected numbers need not be whole.     devices: N.     sampled: A, drawn uniformly.
    """
    missed = np.ones_like(holders, dtype=np.float64)
    for a in range(sampled):
        missed *= np.maximum(devices - holders - a, 0.0) / (devices - a)
    return np.divide(1.0, 1.0 - missed, out=np.zeros_like(missed), where=holders > 0)


def count_bits(survived: Array, draws: int, coding: str) -> float:
    """Bits of the survival counts m [J] of n draws: ceil(log2(n + 1)) each, or their empirical entropy."""
    if coding == "raw":
        return float(len(survived) * ceil(log2(draws + 1)))
    return len(survived) * entropy(
        np.bincount(survived.astype(np.int64), minlength=draws + 1) / len(survived)
    )


def entropy(shares: Array) -> float:
    """Of a distribution, in bit."""
    some = shares[shares > 0]
    return float((some * np.log2(1.0 / some)).sum())


def mask_bits(places: int, kept: int, coding: str) -> float:
    """Bits that tell a device which ``kept`` of so many places it has: FedMAP, Section 3 (fedmap.md, section 5)."""
    return {
        "none": 0.0,
        "bitmap": float(places),
        "entropy": places * binary_entropy(kept / places),
        "seed": 64.0,
    }[coding]
