"""FedSpa: every device has a sparse model of its own, whose mask moves while it trains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, cos, pi, prod
from typing import Any, ClassVar

import numpy as np

from fl.contracts import (
    Array,
    Grant,
    Job,
    Payload,
    Phase,
    Sent,
    Sgd,
    Stage,
    Tensor,
    Trained,
    Update,
    View,
)
from fl.masks.unit_masks import ROUNDING, largest
from fl.method_base.aggregation import mean_of_differences
from fl.method_base.method import PRUNING, State, param
from fl.methods._submodel_method import SubmodelMethod
from fl.models.layout import Slot

RECIPE = "Huang et al., arXiv 2201.11380"


@dataclass(frozen=True, eq=False)
class FedSpa(SubmodelMethod):
    """Every device has a mask of its own, of constant density, with which it trains and works.

    Huang et al., "Achieving Personalized Federated Learning with Sparse Local Models", 2022. After
    its local steps a device drops the smallest weights of every layer and grows as many where the
    gradient of one batch by all weights is largest; the server moves by the mean difference, zero
    where masked. State.w is [w, mask].
    What travels: the masked weights down, their differences up, and with
    ``accounting.mask_overhead`` the new mask.

    Departs from the paper:
        Biases and norms are dense, and no place of the mask is sent for them. All devices start
        with the same mask.
        Summaries count the mask, which stays at its device, as as many personal weights as the
        model has.
        The new mask decides what computes from the device's next round on; what it uses at once is
        w under it. The server is taken to know it also where the upload with it was late.
    """

    source: ClassVar[str] = "Huang et al., arXiv 2201.11380; no released program"
    stale: ClassVar[str] = "damp"
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
    moving_rounds: int | None = param(
        None,
        "rounds until masks stand still, T; none: the run's",
        source="our choice; SpaFL compares over 500 rounds",
        ge=1,
    )
    averaging: str = param(
        "differences",
        "the mean difference over all, or the mean of each weight over its holders",
        source=RECIPE,
        choices=("differences", "holders"),
    )

    @classmethod
    def by_length(cls, rounds: int, asked: int) -> dict[str, Any]:
        return super().by_length(rounds, asked) | {"moving_rounds": rounds}

    # --- masks -----------------------------------------------------------------------------------

    def extra(self) -> tuple[Slot, ...]:
        return (Slot("mask", (self.task.layout.size,), 0, "mask", "personal", -1),)

    @cached_property
    def sparse(self) -> tuple[Slot, ...]:
        """The tensors that have a mask."""
        slots = self.task.layout.slots
        return tuple(slot for slot in slots if slot.kind in ("weight", "embedding"))

    @cached_property
    def first_mask(self) -> Array:
        """With what every device starts, 0 or 1 [P]."""
        shapes, rng = [slot.shape for slot in self.sparse], self.task.streams.stream("mask")
        erk_shares = self.densities == "erk"
        shares = erk(shapes, self.density) if erk_shares else [self.density] * len(shapes)
        return random_mask(self.sparse, shares, self.task.layout.size, rng)

    def start(self) -> State:
        state, size = super().start(), self.task.layout.size
        state.w[size:] = self.task.tensor(self.first_mask)
        return state

    def kept(self, state: State | None, view: View, k: int) -> Array:
        size = self.task.layout.size
        own = self.received(state, k)[size:].cpu().numpy() if state else self.first_mask
        mask = np.zeros(self.layout.size, dtype=bool)
        mask[:size] = own > 0
        return mask

    # --- what it costs, and how a device trains --------------------------------------------------

    def submodel_payload(self, kept: Array) -> Payload:
        """The masked weights, down and up, and up the new mask."""
        bits, places = self.task.accounting, sum(slot.size for slot in self.sparse)
        weights = bits.weight_bits(int((kept & self.shared).sum()))
        pruned = sum(int((~kept[slot.slice]).sum()) for slot in self.sparse)
        return Payload(weights, weights + bits.mask_bits(places, pruned / places))

    def submodel_stages(self, view: View, k: int, kept: Array) -> tuple[Stage, ...]:
        """The masked steps, and one dense gradient."""
        gradient = Stage("gradient", self.work(k, self.whole_step, 1))
        return *super().submodel_stages(view, k, kept), gradient

    def phases(self, state: State, view: View, k: int, w: Tensor, kept: Array) -> tuple[Phase, ...]:
        """The masked steps, then one of size 1 on all weights: it moves by minus the gradient."""
        mask = self.task.tensor(kept)
        whole = kept[: self.task.layout.size].all()
        train = self.training(w, mask, view.g, k, submodel=None if whole else mask)
        gradient = Phase(
            lambda done: done[-1] * mask, self.shared_mask, 1, 1.0, "gradient", optimiser=Sgd()
        )
        return train, gradient

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        job = super().configure(state, view, grant)
        mask: Tensor = job.phases[0].mask
        size = self.task.layout.size
        assert self.moving_rounds is not None  # with_length
        share = cosine(view.g, self.moving_rounds, self.moving_share)

        def finish(done: list[Tensor]) -> Tensor:
            """[the masked weights, the new mask]."""
            w = done[0] * mask
            w[size:] = regrown(self.sparse, mask[:size], w, w - done[1], share)
            return w

        return replace(job, finish=finish)

    # --- what returns, and what is used ----------------------------------------------------------

    def encode(self, job: Job, trained: Trained) -> Sent:
        return Sent(trained.w, job.phases[0].mask)

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """The mean difference over all devices, or the mean of each weight over its holders."""
        if self.averaging == "holders":
            return super().aggregate(state, view, updates)
        w = mean_of_differences(state.w, *self.arrived(view, updates))
        return replace(state, g=state.g + 1, w=w)

    def received(self, state: State, k: int) -> Tensor:
        """[w, m_k]."""
        return self.with_local_part(state, k)

    def personalise(self, state: State, k: int) -> Tensor:
        size = self.task.layout.size
        return state.w[:size] * state.local.get(k, state.w[size:])

    def probes(self, state: State) -> dict[str, Tensor]:
        return {"dense": state.w}


def erk(shapes: Sequence[tuple[int, ...]], density: float) -> list[float]:
    """Densities of layers in proportion to sum(shape) / prod(shape), at most 1.

    Erdos-Renyi-Kernel, Evci et al., ICML 2020 (RigL). A layer that would need more than 1 is dense,
    and the others share what is left.

    Args:
        shapes: Of the layers' weights.
        density: Share of all weights that is kept.
    """
    sizes = np.array([prod(shape) for shape in shapes], dtype=float)
    raw = np.array([sum(shape) for shape in shapes]) / sizes
    dense = np.zeros(len(sizes), dtype=bool)
    while not dense.all():
        left = density * sizes.sum() - sizes[dense].sum()
        found = np.where(dense, 1.0, raw * left / (raw * sizes)[~dense].sum())
        if (found <= 1.0).all():
            return found.tolist()
        dense |= found == found.max()
    return [1.0] * len(sizes)


def random_mask(
    slots: Sequence[Slot], densities: Sequence[float], size: int, rng: np.random.Generator
) -> Array:
    """Random weights of each slot by its density, at least one, and all outside; bool [size]."""
    mask = np.ones(size, dtype=bool)
    for slot, density in zip(slots, densities, strict=True):
        kept = np.zeros(slot.size, dtype=bool)
        kept[rng.permutation(slot.size)[: max(1, round(density * slot.size))]] = True
        mask[slot.slice] = kept
    return mask


def cosine(g: int, rounds: int, first: float) -> float:
    """a_t, the share of a mask that moves in round g: first / 2 (1 + cos(pi g / rounds))."""
    return 0.5 * first * (1.0 + cos(pi * min(g, rounds) / rounds))


def regrown(
    slots: Sequence[Slot], mask: Tensor, w: Tensor, gradient: Tensor, share: float
) -> Tensor:
    """The mask [P] after every slot drops ``share`` of its weights and grows as many.

    Dropped are the smallest |w|; grown are, of all that are then left out, the largest |gradient|.
    """
    after = mask.clone()
    for slot in slots:
        held, at = mask[slot.slice], slot.slice
        count = int(held.sum())
        moved = ceil(share * count - ROUNDING)
        kept = largest(w[at].abs(), held, count - moved)
        after[at] = kept | largest(gradient[at].abs(), ~kept, moved)
    return after
