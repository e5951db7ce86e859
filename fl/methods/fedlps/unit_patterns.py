"""Which units a device keeps, by learned scores or a rule: FedLPS, Section IV-A, Fig. 9."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fl.contracts import Array, Tensor
from fl.masks import unit_masks as masks
from fl.methods.fedlps.fedlps_parameters import FedLPSParameters
from fl.models.layout import Slot

if TYPE_CHECKING:
    from fl.methods.fedlps.unit_scores import HiddenUnits


@dataclass(frozen=True, eq=False)
class UnitPatterns:
    """Scores and patterns of the J hidden units, which lie behind the weights: w [P + 2 J]."""

    settings: FedLPSParameters

    def slots(self) -> tuple[Slot, ...]:
        """The scores q and the pattern beta of the hidden units."""
        groups = masks.hidden(self.settings.task.layout).values()
        return tuple(
            Slot(f"{u.name}.{kind}", (u.units,), 0, kind, "personal", -1)
            for kind in ("q", "beta")
            for u in groups
        )

    @cached_property
    def unit_count(self) -> int:
        """J, all hidden units."""
        return sum(group.units for group in masks.hidden(self.settings.task.layout).values())

    @cached_property
    def units(self) -> HiddenUnits:
        # Here, since it imports torch, which pricing a scenario does without.
        from fl.methods.fedlps.unit_scores import HiddenUnits

        task = self.settings.task
        return HiddenUnits(task.layout, self.settings.rows, task.device)

    def first_units(self, share: float) -> Array:
        """The submodel of the first units, bool [P + 2 J].

        Any pattern of that share keeps as many weights, so that it stands for those that only the
        training knows.
        """
        units = masks.prefix(self.settings.task.layout, share)
        return self.settings.layout.expand(units, rows=self.settings.rows)

    def held(self, w: Tensor) -> Tensor:
        """What the pattern in w keeps, bool [P + 2 J]."""
        held = w.new_ones(len(w), dtype=bool)
        self.units.weights(held).copy_(self.units.spread(self.units.pattern(w)) > 0)
        return held

    def with_scores(self, w: Tensor, known: Tensor | None, g: int, k: int) -> Tensor:
        """A copy of w with the scores of device k: those in ``known``, else its first ones."""
        w = w.clone()
        if self.settings.pattern == "learned":
            if known is not None and self.settings.q_persist:
                scores = self.units.scores(known)
            else:
                scores = self._first_scores(w, g, k)
            self.units.scores(w).copy_(scores)
        return w

    def _first_scores(self, w: Tensor, g: int, k: int) -> Tensor:
        settings = self.settings
        if settings.q_init == "magnitude":
            return self.units.standardised(self.units.sums(w))
        at = None if settings.q_persist else g
        rng = settings.task.streams.stream("scores", device=k, round=at)
        scores = rng.standard_normal(self.units.total, dtype=np.float32)
        if settings.q_init == "sorted":
            parts: Sequence[Array] = np.split(scores, np.cumsum(self.units.counts)[:-1])
            scores = np.concatenate([np.sort(part)[::-1] for part in parts])
        return settings.task.tensor(scores)

    def with_pattern(self, w: Tensor, share: float, g: int, k: int) -> Tensor:
        """w with the pattern of the round, in place, where it is not learned."""
        task, pattern = self.settings.task, self.settings.pattern
        if pattern == "learned":
            return w
        if pattern == "random":
            rng = task.streams.stream("pattern", device=k, round=g)
            units = masks.random(task.layout, share, rng)
        elif pattern == "ordered":
            units = masks.prefix(task.layout, share)
        else:
            units = masks.magnitude(task.layout, self.units.weights(w).cpu().numpy(), share)
        self.units.pattern(w).copy_(task.tensor(np.concatenate(list(units.values()))))
        return w
