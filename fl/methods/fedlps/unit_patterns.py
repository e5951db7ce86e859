"""Which units a device keeps: by scores that it learns, or by a rule; FedLPS, Section IV-A and Fig. 9."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fl.accounting import submodel_cost
from fl.contracts import Stage, Tensor, View
from fl.masks import unit_masks as masks
from fl.method_base.method import State, param
from fl.method_base.submodel_method import Submodels
from fl.models.layout import Slot

if TYPE_CHECKING:
    from fl.methods.fedlps.unit_scores import Units

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Patterns(Submodels):
    """Submodels of whole units whose choice is personal: behind the weights w has scores and a pattern (`fl.methods.fedlps.unit_scores`).

    A subclass says which `share` of the units a device keeps. What is charged follows from that share alone, since any
    pattern keeps equally many units of each layer.
    """

    pattern: str = param(
        "learned",
        "units that are kept: learned; for a round any, the first, or those with the largest weights",
        source="FedLPS, Fig. 9",
        choices=("learned", "random", "ordered", "magnitude"),
    )
    prune_mode: str = param(
        "row",
        "what a dropped unit takes along: the weights into it, or also its bias, norm and the weights out of it",
        source="FedLPS, released code; structural: fedlps.md, 4.1",
        choices=("row", "structural"),
    )
    q_grad: str = param(
        "kept",
        "whose scores the task's loss moves: kept units', or all, whose gradients are then charged",
        source="fedlps.md, 4.4",
        choices=("kept", "all"),
    )
    q_init: str = param(
        "normal",
        "first scores: N(0, 1), the same in falling order, or the standardised sums |w|_J of the received weights",
        source="fedlps.md, 4.2; sorted in the released code",
        choices=("normal", "sorted", "magnitude"),
    )
    q_persist: bool = param(
        True,
        "scores stay from round to round",
        source="FedLPS, Algorithm 1, lines 17, 23; false in the released code",
    )

    @classmethod
    def unread(cls, values: dict[str, Any]) -> dict[str, str]:
        idle = () if values["pattern"] == "learned" else ("q_grad", "q_init", "q_persist")
        return super().unread(values) | dict.fromkeys(idle, f"pattern is {values['pattern']}")

    # --- which weights ---------------------------------------------------------------------------------------------

    def extra(self) -> tuple[Slot, ...]:
        """The scores q and the pattern beta of the hidden units."""
        groups = masks.hidden(self.task.layout).values()
        return tuple(
            Slot(f"{u.name}.{kind}", (u.units,), 0, kind, "none", -1)
            for kind in ("q", "beta")
            for u in groups
        )

    def personal(self) -> Array:
        return self.layout.where(lambda slot: slot.kind in ("q", "beta"))

    def prunable(self) -> Array:
        return np.pad(
            masks.owners(self.task.layout) >= 0, (0, self.layout.size - self.task.layout.size)
        )

    def kept(self, state: State | None, view: View, k: int) -> Array:
        """As many weights as the pattern keeps: the first units stand for those that only the training tells."""
        units = masks.prefix(self.task.layout, self.share(state, view, k))
        return self.layout.expand(units, rows=self.prune_mode == "row")

    def share_within(self, budget: float) -> float:
        """A row of s J units has the share s of its weights; without their inputs it is about s^2."""
        return budget if self.prune_mode == "row" else super().share_within(budget)

    @cached_property
    def unit_count(self) -> int:
        """J, all hidden units."""
        return sum(group.units for group in masks.hidden(self.task.layout).values())

    @cached_property
    def units(self) -> Units:
        from fl.methods.fedlps.unit_scores import Units

        return Units(self.task.layout, self.prune_mode == "row", self.task.device)

    def held(self, w: Tensor) -> Tensor:
        """What the pattern in w keeps, bool [P + 2 J]."""
        held = w.new_ones(len(w), dtype=bool)
        self.units.weights(held).copy_(self.units.spread(self.units.pattern(w)) > 0)
        return held

    # --- what it costs ---------------------------------------------------------------------------------------------

    def ordered(self, view: View, k: int, kept: Array) -> tuple[Stage, ...]:
        """Where all scores learn, the gradients by the weights are dense: half of a dense backward pass."""
        (stage,) = super().ordered(view, k, kept)
        if self.q_grad == "kept" or self.pattern != "learned":
            return (stage,)
        accounting, everything = self.task.accounting, self.everything
        dense = submodel_cost(self.task.architecture, kept, accounting, backward=everything)
        flops = accounting.work(dense, self.steps(k), self.samples_per_step(k)).flops
        return (replace(stage, work=replace(stage.work, flops=(stage.work.flops + flops) / 2)),)

    # --- scores and patterns ---------------------------------------------------------------------------------------

    def with_scores(self, w: Tensor, known: Tensor | None, g: int, k: int) -> Tensor:
        """A copy of w with the scores of device k: those that it has kept in ``known``, else its first ones."""
        w = w.clone()
        if self.pattern == "learned":
            mine = known is not None and self.q_persist
            self.units.scores(w).copy_(
                self.units.scores(known) if mine else self._first_scores(w, g, k)
            )
        return w

    def _first_scores(self, w: Tensor, g: int, k: int) -> Tensor:
        if self.q_init == "magnitude":
            return self.units.standardised(self.units.sums(w))
        rng = self.task.streams.stream("scores", device=k, round=None if self.q_persist else g)
        scores = rng.standard_normal(self.units.total, dtype=np.float32)
        if self.q_init == "sorted":
            parts = np.split(scores, np.cumsum(self.units.counts)[:-1])
            scores = np.concatenate([np.sort(part)[::-1] for part in parts])
        return self.task.tensor(scores)

    def with_pattern(self, w: Tensor, share: float, g: int, k: int) -> Tensor:
        """w with the pattern of the round, in place, where it is not learned."""
        layout, rng = self.task.layout, self.task.streams.stream("pattern", device=k, round=g)
        if self.pattern == "learned":
            return w
        if self.pattern == "random":
            units = masks.random(layout, share, rng)
        elif self.pattern == "ordered":
            units = masks.prefix(layout, share)
        else:
            units = masks.magnitude(layout, self.units.weights(w).cpu().numpy(), share)
        self.units.pattern(w).copy_(self.task.tensor(np.concatenate(list(units.values()))))
        return w
