"""FedSpa. Huang et al., "Achieving Personalized Federated Learning with Sparse Local Models", 2022."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fl.contracts import Grant, Job, Payload, Phase, Sent, Sgd, Stage, Tensor, Trained, Update, View
from fl.method_base.method import PRUNING, State, param
from fl.method_base.submodel_method import Submodels
from fl.methods.fedspa.regrowth import cosine, erk, random_mask, regrown
from fl.models.layout import Slot

Array = np.ndarray
RECIPE = "Huang et al., arXiv 2201.11380 (spafl.md, 10)"


@dataclass(frozen=True, eq=False)
class FedSpa(Submodels):
    """Every device has a mask of its own and of constant density, with which it trains, and which it uses.

    After its local steps a device drops the smallest weights of every layer and grows as many where the gradient of one
    batch by all weights is largest; the server moves by the mean difference, zero where masked. State.w is [w, mask].
    What travels: the masked weights down, their differences up, and with ``accounting.mask_overhead`` the new mask.

    Departs from the paper:
        Biases and norms are dense, and no place of the mask is sent for them. All devices start with the same mask.
        Summaries count the mask, which stays at its device, as as many personal weights as the model has.
        The new mask decides what computes from the device's next round on; what it uses at once is w under it. The
        server is taken to know it also where the upload that told it was late.
    """

    source: ClassVar[str] = "Huang et al., arXiv 2201.11380; no released program"
    reads: ClassVar[tuple[str, ...]] = PRUNING
    density: float = param(
        0.5, "share of the weights that every device keeps", source=RECIPE, gt=0, le=1
    )
    densities: str = param(
        "erk", "per layer: ERK, or the same", source=RECIPE, choices=("erk", "uniform")
    )
    moving_share: float = param(
        0.5, "share of a mask that moves in round 0, a_0", source=RECIPE, ge=0, le=1
    )
    moving_rounds: int = param(
        500, "rounds until masks stand still, T", source="Kim et al. (SpaFL): 500 rounds", ge=1
    )
    averaging: str = param(
        "differences",
        "the mean difference over all, or the mean of each weight over its holders",
        source=RECIPE,
        choices=("differences", "holders"),
    )

    @classmethod
    def unread(cls, values: dict[str, Any]) -> dict[str, str]:
        return super().unread(values) | {"width": "density decides"}

    # --- masks -----------------------------------------------------------------------------------------------------

    def extra(self) -> tuple[Slot, ...]:
        return (Slot("mask", (self.task.layout.size,), 0, "mask", "personal", -1),)

    def personal(self) -> Array:
        return self._mask_places

    @cached_property
    def _mask_places(self) -> Array:
        return self.layout.role("personal")

    @cached_property
    def sparse(self) -> tuple[Slot, ...]:
        """The tensors that have a mask."""
        return tuple(
            slot for slot in self.task.layout.slots if slot.kind in ("weight", "embedding")
        )

    @cached_property
    def first_mask(self) -> Array:
        """With what every device starts, 0 or 1 [P]."""
        shapes = [slot.shape for slot in self.sparse]
        shares = (
            erk(shapes, self.density) if self.densities == "erk" else [self.density] * len(shapes)
        )
        return random_mask(
            self.sparse, shares, self.task.layout.size, self.task.streams.stream("mask")
        )

    def start(self) -> State:
        state, size = super().start(), self.task.layout.size
        state.w[size:] = self.task.tensor(self.first_mask)
        return state

    def kept(self, state: State | None, view: View, k: int) -> Array:
        size = self.task.layout.size
        mask = np.zeros(self.layout.size, dtype=bool)
        mask[:size] = (
            self.received(state, k)[size:].cpu().numpy() if state else self.first_mask
        ) > 0
        return mask

    # --- what it costs, and how a device trains --------------------------------------------------------------------

    def travel(self, kept: Array) -> Payload:
        both, places = super().travel(kept), sum(slot.size for slot in self.sparse)
        pruned = sum(int((~kept[slot.slice]).sum()) for slot in self.sparse)
        return replace(
            both, bits_up=both.bits_up + self.task.accounting.mask_bits(places, pruned / places)
        )

    def ordered(self, view: View, k: int, kept: Array) -> tuple[Stage, ...]:
        return *super().ordered(view, k, kept), Stage("gradient", self.work(k, self.everything, 1))

    def phases(self, state: State, view: View, k: int, w: Tensor, kept: Array) -> tuple[Phase, ...]:
        """The masked steps; and a step of size 1 from their end on all weights, whose way is minus the gradient."""
        mask = self.task.tensor(kept)
        whole = kept[: self.task.layout.size].all()
        train = self.training(w, mask, view.g, k, submodel=None if whole else mask)
        gradient = Phase(
            lambda done: done[-1] * mask, self.shared_mask, 1, 1.0, "gradient", optimiser=Sgd()
        )
        return train, gradient

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        job = super().configure(state, view, grant)
        mask, size = job.phases[0].mask, self.task.layout.size
        share = cosine(view.g, self.moving_rounds, self.moving_share)

        def finish(done: list[Tensor]) -> Tensor:
            """[the masked weights, the new mask]."""
            w = done[0] * mask
            w[size:] = regrown(self.sparse, mask[:size], w, w - done[1], share)
            return w

        return replace(job, finish=finish)

    # --- what returns, and what is used ----------------------------------------------------------------------------

    def encode(self, job: Job, trained: Trained) -> Sent:
        return Sent(trained.w, job.phases[0].mask)

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        from fl.method_base.aggregation import mean_of_differences

        if self.averaging == "holders" or not updates:
            return super().aggregate(state, view, updates)
        sent = [self.encode(update.job, update.result()) for update in updates]
        weights = [self._weight(view, update.job.device) for update in updates]
        return replace(state, g=state.g + 1, w=mean_of_differences(state.w, sent, weights))

    def received(self, state: State, k: int) -> Tensor:
        """[w, m_k]."""
        return super().personalise(state, k)

    def personalise(self, state: State, k: int) -> Tensor:
        size = self.task.layout.size
        return state.w[:size] * state.local.get(k, state.w[size:])

    def probes(self, state: State) -> dict[str, Tensor]:
        return {"dense": state.w}
