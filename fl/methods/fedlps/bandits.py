"""Bandits that learn how large a device's submodel should be: rules over records fit for JSON.

Nothing here learns a model or knows a clock: an accuracy and a time come in, a ratio goes out.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import isfinite, log, sqrt, tanh
from typing import Any

import numpy as np

LEAST_TIME = 1e-6  # of the reference time: with anything faster rewards would not be finite
EXPLORE = ("none", "1/m")


@dataclass(frozen=True)
class Partition:
    """Ratios in [lo, hi), and the rewards that were earned with them.

    Args:
        lo: Least ratio.
        hi: End of the ratios.
        pulls: How many rewards.
        mean: Of the rewards.
        spread: Sum of their squared deviations from the mean.
    """

    lo: float
    hi: float
    pulls: int = 0
    mean: float = 0.0
    spread: float = 0.0

    @property
    def width(self) -> float:
        return self.hi - self.lo

    @property
    def variance(self) -> float:
        """Population variance of the rewards, 0 without any: FedLPS, eq. (16)."""
        return self.spread / self.pulls if self.pulls else 0.0

    def rewarded(self, reward: float) -> Partition:
        """With one reward more (Welford's update: no list of rewards is needed)."""
        pulls, away = self.pulls + 1, reward - self.mean
        mean = self.mean + away / pulls
        return replace(self, pulls=pulls, mean=mean, spread=self.spread + away * (reward - mean))

    def distance(self, ratio: float) -> float:
        """0 inside, else how far the ratio is away."""
        return max(self.lo - ratio, ratio - self.hi, 0.0)


@dataclass(frozen=True)
class Arms:
    """What the bandit of one device remembers.

    Args:
        parts: Sorted, without overlap.
        accuracy: The training accuracy of the participation before.
        scale: epsilon_r of FedLPS, eq. (17), halved at every participation.
        updates: Participations so far, h in sum.
    """

    parts: tuple[Partition, ...]
    accuracy: float
    scale: float = 1.0
    updates: int = 0

    def to_record(self) -> dict[str, Any]:
        """As plain numbers, for JSON."""
        return asdict(self) | {"parts": [list(asdict(part).values()) for part in self.parts]}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Arms:
        """What `to_record` wrote."""
        return cls(**(record | {"parts": tuple(Partition(*part) for part in record["parts"])}))


@dataclass(frozen=True)
class PUcbv:
    """P-UCBV of FedLPS: UCB with variance over partitions of the ratios, which split where tried.

    FedLPS, Algorithm 2, as docs/papers/fedlps.md completes it: one participation splits the
    partition of the executed ratio there, drops the lower half where the accuracy fell too far,
    halves epsilon, rewards what remains of the split with (15), and draws the next ratio from the
    partition with the largest (17). A logarithm below zero counts as zero, so that no bonus is ever
    undefined.

    Args:
        partitions: I_0, equal partitions of [low, high) at the start.
        low: Least ratio.
        high: End of the ratios.
        rho: Weight of the bonus in (17).
        drop: Delta < 0; an accuracy that changes by less drops the lower half.
        least_width: No part gets narrower.
        xi: xi of (17), rounds per selected device.
        explore: none; 1/m: after m participations a random partition with probability 1/m
            (released code).
        utility_scale: Factor on the accuracy inside U.
        floor: epsilon stays at its last value where halving would bring xi psi epsilon below this;
            None: never.
    """

    partitions: int = 5
    low: float = 0.0
    high: float = 1.0
    rho: float = 0.5
    drop: float = -0.05
    least_width: float = 0.01
    xi: float = 10.0
    explore: str = "none"
    utility_scale: float = 1.0
    floor: float | None = None

    def __post_init__(self) -> None:
        spaced = self.partitions >= 1 and 0 <= self.low < self.high <= 1
        if not spaced or self.explore not in EXPLORE:
            raise ValueError(
                f"{self} is no bandit: it needs at least one partition, 0 <= low < high <= 1, and "
                f"an explore out of {', '.join(EXPLORE)}"
            )

    def begin(self, accuracy: float, rng: np.random.Generator) -> tuple[Arms, float]:
        """The arms before the first participation, and its ratio, uniform in a random partition.

        ``accuracy``: of the initial model on the device's own data, a fraction.
        """
        ends = np.linspace(self.low, self.high, self.partitions + 1).tolist()
        arms = Arms(tuple(map(Partition, ends[:-1], ends[1:])), accuracy)
        return arms, draw(arms.parts[int(rng.integers(len(arms.parts)))], rng)

    def update(
        self, arms: Arms, ratio: float, accuracy: float, time: float, rng: np.random.Generator
    ) -> tuple[Arms, float]:
        """What one participation taught, and the next ratio: FedLPS, Algorithm 2.

        Args:
            arms: Before it.
            ratio: The one that was executed, in (0, 1].
            accuracy: The mean training accuracy, a fraction.
            time: How long it took, relative to a dense one of a whole device.
            rng: Source of the draws.
        """
        if not (isfinite(accuracy) and isfinite(time) and time > 0):
            raise ValueError(
                f"a bandit learned accuracy {accuracy} in time {time}; both must be finite, time "
                "positive"
            )
        before, tried, after = self.split(arms.parts, ratio)
        if len(tried) == 2 and accuracy - arms.accuracy < self.drop:
            tried = tried[1:]
        gain = self.reward(accuracy, arms.accuracy, time)
        parts = (*before, *(part.rewarded(gain) for part in tried), *after)
        learned = Arms(parts, accuracy, self.halved(arms.scale, len(parts)), arms.updates + 1)
        return learned, draw(parts[self.choose(learned, rng)], rng)

    def split(
        self, parts: tuple[Partition, ...], ratio: float
    ) -> tuple[tuple[Partition, ...], ...]:
        """The partitions before, those that the ratio makes of its own, those behind.

        A ratio in no partition (its own was dropped, or the device could not give more) belongs to
        the nearest one.
        """
        inside = (i for i, part in enumerate(parts) if part.lo <= ratio < part.hi)
        i = next(inside, None)
        if i is None:
            i = min(range(len(parts)), key=lambda j: parts[j].distance(ratio))
        own = parts[i]
        if min(ratio - own.lo, own.hi - ratio) < self.least_width:
            return parts[:i], (own,), parts[i + 1 :]
        return parts[:i], (replace(own, hi=ratio), replace(own, lo=ratio)), parts[i + 1 :]

    def reward(self, accuracy: float, before: float, time: float) -> float:
        """FedLPS, eq. (15): the gain in utility per time."""
        gain = utility(self.utility_scale * accuracy) - utility(self.utility_scale * before)
        return gain / max(time, LEAST_TIME)

    def halved(self, scale: float, partitions: int) -> float:
        """epsilon of the next participation."""
        frozen = self.floor is not None and self.argument(scale / 2, partitions) < self.floor
        return scale if frozen else scale / 2

    def argument(self, scale: float, partitions: int) -> float:
        """xi psi epsilon, whose logarithm (17) takes; psi = xi / I^2."""
        return self.xi**2 / partitions**2 * scale

    def value(self, part: Partition, scale: float, partitions: int) -> float:
        """FedLPS, eq. (17)."""
        argument = self.argument(scale, partitions)
        logarithm = max(0.0, log(argument)) if argument > 0 else 0.0
        return part.mean + sqrt(self.rho * (part.variance + 2) * logarithm / (4 * (part.pulls + 1)))

    def values(self, arms: Arms) -> list[float]:
        """(17) of every partition."""
        return [self.value(part, arms.scale, len(arms.parts)) for part in arms.parts]

    def choose(self, arms: Arms, rng: np.random.Generator) -> int:
        """Number of the next partition: the largest value, of equal ones any."""
        if self.explore == "1/m" and rng.random() < 1 / arms.updates:
            return int(rng.integers(len(arms.parts)))
        values = self.values(arms)
        best = np.flatnonzero(np.array(values) == max(values))
        return int(rng.choice(best))


def utility(x: float) -> float:
    """U(x) = 10 - 20 / (1 + e^(0.35 x)) of FedLPS, as 10 tanh(0.175 x), which never overflows."""
    return 10.0 * tanh(0.175 * x)


def draw(part: Partition, rng: np.random.Generator) -> float:
    """A ratio, uniform in the partition."""
    return float(rng.uniform(part.lo, part.hi))
