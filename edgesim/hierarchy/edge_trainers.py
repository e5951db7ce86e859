"""The trainers of all edges, as one to what writes checkpoints and summaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fl.training.fallback_counts import Fallbacks


class EdgeTrainers:
    """One trainer per edge, since each has its own devices and data.

    Args:
        of_edges: the trainers (`fl.executors.deferred_training.Trainer`).
    """

    def __init__(self, of_edges: Sequence[Any]) -> None:
        self.of_edges = of_edges

    @property
    def seconds(self) -> float:
        """Wall time spent in training, s."""
        return sum(each.seconds for each in self.of_edges)

    @property
    def executor_name(self) -> str:
        return ", ".join(dict.fromkeys(each.executor_name for each in self.of_edges))

    @property
    def fallbacks(self) -> Fallbacks:
        """What was computed otherwise than chosen, and for how many jobs."""
        together = Fallbacks()
        for each in self.of_edges:
            together.merge(each.fallbacks.counts())
        return together

    def restore_fallbacks(self, counts: Sequence[tuple[str, int]]) -> None:
        """Add what the same run had reported before it was interrupted."""
        self.of_edges[0].restore_fallbacks(counts)
