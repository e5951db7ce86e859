"""E-UCB: a bandit over an interval of ratios, which it divides where it has tried."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, log, sqrt

import numpy as np

Record = list[list[float]]  # the leaves for JSON: low, high, plays, rewards


@dataclass(frozen=True)
class Leaf:
    """Ratios in [low, high), with discounted counts.

    Args:
        low: Least ratio.
        high: End of the ratios.
        plays: How often it was played.
        rewards: Their sum.
    """

    low: float
    high: float
    plays: float = 0.0
    rewards: float = 0.0


@dataclass(frozen=True)
class EUcb:
    """Extended upper confidence bound (Jiang et al., ICDE 2022, Algorithm 1).

    Args:
        low: Least ratio.
        high: Largest ratio.
        discount: Factor of all counts and rewards per play, below one.
        least_width: Leaves are not divided below this width.
        exploration: Weight of the confidence bound.
    """

    low: float
    high: float
    discount: float
    least_width: float
    exploration: float

    def begin(self) -> Record:
        """The record of a device that was never asked: one leaf."""
        return [[self.low, self.high, 0.0, 0.0]]

    def draw(self, record: Record, rng: np.random.Generator) -> float:
        """A ratio, uniform in the leaf with the largest upper bound; never played ones first."""
        leaves = [Leaf(*each) for each in record]
        total = sum(leaf.plays for leaf in leaves)
        best = max(leaves, key=lambda leaf: self._bound(leaf, total))
        return float(rng.uniform(best.low, best.high))

    def _bound(self, leaf: Leaf, total: float) -> float:
        if leaf.plays == 0:
            return inf
        wide = sqrt(2.0 * max(log(total), 0.0) / leaf.plays) if total > 0 else 0.0
        return leaf.rewards / leaf.plays + self.exploration * wide

    def learn(self, record: Record, ratio: float, reward: float) -> Record:
        """The record after a ratio was played: its leaf is rewarded, and divided at the ratio.

        Both parts keep the mean of their leaf, and share its plays by width.
        """
        leaves: list[Leaf] = []
        for leaf in (Leaf(*each) for each in record):
            plays, rewards = self.discount * leaf.plays, self.discount * leaf.rewards
            after = replace(leaf, plays=plays, rewards=rewards)
            if not leaf.low <= ratio < leaf.high:
                leaves.append(after)
                continue
            after = replace(after, plays=plays + 1.0, rewards=rewards + reward)
            leaves += self._divided(after, ratio)
        return [[leaf.low, leaf.high, leaf.plays, leaf.rewards] for leaf in leaves]

    def _divided(self, leaf: Leaf, ratio: float) -> list[Leaf]:
        width = leaf.high - leaf.low
        if min(ratio - leaf.low, leaf.high - ratio) < self.least_width:
            return [leaf]
        parts = ((leaf.low, ratio), (ratio, leaf.high))
        shares = [((high - low) / width, low, high) for low, high in parts]
        return [Leaf(low, high, s * leaf.plays, s * leaf.rewards) for s, low, high in shares]
