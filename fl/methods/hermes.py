"""Hermes: structured sparse models of the devices, of which only the overlap is shared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import and_
from typing import ClassVar

import numpy as np

from fl.contracts import Array, Phase, Tensor, Trained, Update, View
from fl.masks.unit_masks import owners, unit_sums
from fl.method_base.method import MAX_RATE, State, param
from fl.methods._accuracy_triggered_pruning import AccuracyTriggeredPruning

LI = "Li et al., MobiCom 2021"
ROUNDING = 1e-12  # under the root of the norm of a unit, whose gradient at 0 then is 0


@dataclass(frozen=True, eq=False)
class Hermes(AccuracyTriggeredPruning):
    """Devices prune units of their own models; the server averages what all of them kept.

    Li, Sun, Li, Pan, Li, Chen, "Hermes: An Efficient Federated Learning Framework for Heterogeneous
    Mobile Clients", MobiCom 2021. A device that is accurate enough drops in every hidden layer the
    units whose sum of absolute weights is below a percentile of those that are left; its loss has
    the group lasso ``lasso`` sum_u |w_u|. A weight is averaged where all devices of the round keep
    it, and each then goes on from its own model with that mean. State.local is device -> [w_k,
    m_k].
    What travels: the weights of the kept units, down and up.

    Departs from the paper:
        Without learning.validation the accuracy is that on a device's training samples.
        A device that was not among those of a round gets the latest means, where it keeps these
        weights, when it is asked the next time.
        The numbers of the kept units and the operations of the lasso are not charged.
        Devices that were never asked use the server's weights. What a late device trained stays
        there without a mean.
    """

    source: ClassVar[str] = LI
    stale: ClassVar[str] = "refuse"
    prune_share: float = param(
        0.1,
        "share of a layer's units that is pruned at a time",
        source="FedLPS program",
        gt=0,
        le=0.9,
    )
    lasso: float = param(
        0.001, "weight of the group lasso over units", source="FedLPS program", ge=0, le=MAX_RATE
    )

    def tightened(self, mask: Array, w: Array) -> Array:
        """Drops the units whose sum is below the percentile of those that are left."""
        left = unit_sums(self.layout, mask.astype(float))
        units = {}
        for name, sums in unit_sums(self.layout, np.abs(w) * mask).items():
            alive = left[name] > 0
            # not >=, which is false for all units of a model that diverged
            units[name] = alive & ~(sums < np.percentile(sums[alive], 100 * self.prune_share))
        return self.layout.expand(units)

    def own_mask(self, state: State, k: int) -> Tensor | None:
        own = state.local.get(k)
        return None if own is None else own[self.layout.size :] > 0

    # --- how a device trains ---------------------------------------------------------------------

    def phases(self, state: State, view: View, k: int, w: Tensor, kept: Array) -> tuple[Phase, ...]:
        mask = self.task.tensor(kept)
        penalty = self._group_lasso if self.lasso else None
        start = w if kept.all() else w.where(mask, 0.0)
        return (self.training(start, mask, view.g, k, submodel=mask, penalty=penalty),)

    def _group_lasso(self, v: Tensor) -> Tensor:
        """lasso times the sum of the Euclidean norms of all units."""
        places, unit, count = self._units
        squares = v.new_zeros(count).index_add(0, unit, v[places].square())
        return self.lasso * (squares + ROUNDING).sqrt().sum()

    @cached_property
    def _units(self) -> tuple[Tensor, Tensor, int]:
        """Which coordinates belong to hidden units, int; to which, int; how many units."""
        index = owners(self.layout)
        places = np.flatnonzero(index >= 0)
        return self.task.tensor(places), self.task.tensor(index[places]), int(index.max()) + 1

    # --- what becomes of it, and what is used ----------------------------------------------------

    def local_part(self, trained: Trained) -> Tensor:
        """[w_k, m_k]."""
        import torch

        return torch.cat([trained.w, trained.mask.to(trained.w.dtype)])

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """The mean where all keep a weight; State.w has it, and everybody who sent."""
        if not updates:
            return super().aggregate(state, view, updates)
        overlap = reduce(and_, (update.result().mask for update in updates))
        after = super().aggregate(state, view, updates)
        shared = after.w.where(overlap, state.w)
        senders = [update.job.device for update in updates]
        merged = replace(after, w=shared, memo=state.memo | {"overlap": overlap})
        local = {k: self._merged(merged, k) for k in senders}
        return replace(merged, local=after.local | local)

    def _merged(self, state: State, k: int) -> Tensor:
        """[w_k, m_k] of a device with the latest means where it keeps these weights."""
        own, size = state.local[k].clone(), self.layout.size
        common = state.memo["overlap"] & (own[size:] > 0)
        own[:size] = state.w.where(common, own[:size])
        return own

    def received(self, state: State, k: int) -> Tensor:
        if k not in state.local or "overlap" not in state.memo:
            return self.personalise(state, k)
        return self._merged(state, k)[: self.layout.size]

    def personalise(self, state: State, k: int) -> Tensor:
        return state.local[k][: self.layout.size] if k in state.local else state.w
