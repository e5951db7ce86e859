"""Beta posteriors of keep-probabilities.

Plain arithmetic on arrays [J], numpy or torch alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Values = Any  # [J], a numpy array or a torch tensor


@dataclass(frozen=True)
class Beta:
    """p ~ Beta(alpha, beta) of every place [J]: FedMAP, (5).

    Args:
        alpha: [J], above 1.
        beta: [J], above 1.
    """

    alpha: Values
    beta: Values

    def mode(self) -> Values:
        """p = (alpha - 1) / (alpha + beta - 2): FedMAP, (9)."""
        return (self.alpha - 1.0) / (self.alpha + self.beta - 2.0)

    def counted(
        self, counts: Sequence[tuple[Values, Any]], weights: Sequence[float] | None = None
    ) -> Beta:
        """The posterior with the survival counts that arrived: FedMAP, (9).

        A place survived m draws, and failed one more unless it survived all n.

        Args:
            counts: Pairs of m [J] and of the number of draws n.
            weights: How much each pair counts; None: 1.
        """
        alpha, beta = self.alpha, self.beta
        each = [1.0] * len(counts) if weights is None else weights
        for (survived, draws), weight in zip(counts, each, strict=True):
            # Python's number times a bool array would be in double precision, whatever beta is in.
            failed = 0.0 * beta + (survived < draws)
            alpha, beta = alpha + weight * survived, beta + weight * failed
        return Beta(alpha, beta)
