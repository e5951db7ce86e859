"""LotteryFL: every device searches a sparse model of its own by pruning and rewinding."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fl.contracts import Array, Phase, Tensor, Trained, View
from fl.method_base.method import State, param
from fl.methods._accuracy_triggered_pruning import AccuracyTriggeredPruning

LI = "Li et al., SEC 2021"


@dataclass(frozen=True, eq=False)
class LotteryFL(AccuracyTriggeredPruning):
    """Devices prune their smallest weights when they are accurate, and begin anew from the start.

    Li, Sun, Wang, Duan, Li, Chen, Li, "LotteryFL: Empower Edge Intelligence with Personalized and
    Communication-Efficient Federated Learning", SEC 2021. A device that is accurate enough drops in
    every layer the weights below a percentile of those that are left, and rewinds: what it keeps
    gets the initial values. State.local is device -> mask [P].
    What travels: the masked weights, down and up; a new mask once. Of each weight the server takes
    the mean over its holders; a device uses it under its mask, which stays, also when the upload
    was late.

    Departs from the paper:
        Without learning.validation the accuracy is that on a device's training samples; the
        released program takes test samples.
        The rate that ends pruning is the true share of weights that are left; the released program
        counts prunings.
        With batch norm the test uses the statistics of the samples that are tested.
    """

    source: ClassVar[str] = f"{LI}, Algorithm 1"
    stale: ClassVar[str] = "damp"
    accuracy_to_prune: float = param(
        0.2,
        "accuracy from which on a device prunes; 2: never",
        source="released program",
        ge=0,
        le=2,
    )
    prune_share: float = param(
        0.1, "share of a layer's weights that is pruned at a time", source=LI, gt=0, le=0.9
    )

    def tightened(self, mask: Array, w: Array) -> Array:
        """Drops what is below the percentile; of equal weights none, as the released program."""
        mask, size = mask.copy(), np.abs(w)
        for slot in self.layout.slots:
            if not self.weight_places[slot.offset]:
                continue
            left, own = mask[slot.slice], size[slot.slice]
            # not >=, which is false for all weights of a model that diverged
            mask[slot.slice] = left & ~(own < np.percentile(own[left], 100 * self.prune_share))
        return mask

    def own_mask(self, state: State, k: int) -> Tensor | None:
        return state.local.get(k)

    def mask_bits(self, kept: Array) -> float:
        places = int(self.weight_places.sum())
        return self.task.accounting.mask_bits(places, 1.0 - self.kept_share(kept))

    # --- how a device trains, and what it uses ---------------------------------------------------

    def phases(self, state: State, view: View, k: int, w: Tensor, kept: Array) -> tuple[Phase, ...]:
        mask = self.task.tensor(kept)
        if not np.array_equal(kept, self.held(state, k)):
            w = self._initial.where(mask, 0.0)
        return (self.training(w, mask, view.g, k, submodel=mask),)

    @cached_property
    def _initial(self) -> Tensor:
        return self.task.initial()

    def local_part(self, trained: Trained) -> Tensor:
        return trained.mask

    def personalise(self, state: State, k: int) -> Tensor:
        mask = self.own_mask(state, k)
        return state.w if mask is None or bool(mask.all()) else state.w.where(mask, 0.0)

    def probes(self, state: State) -> dict[str, Tensor]:
        return {"global": state.w}
