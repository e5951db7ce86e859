"""CS: complement sparsification, where devices return what the server had pruned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from fl.contracts import Array, Demand, Grant, Job, Payload, Sent, Tensor, Trained, Update, View
from fl.masks.unit_masks import kept_count, largest, output_layer
from fl.method_base.affine_demand import upload_bits
from fl.method_base.method import MAX_RATE, State, param
from fl.methods.fedavg import FedAvg, weighting_by_samples
from fl.models.layout import Slot


@dataclass(frozen=True, eq=False)
class CS(FedAvg):
    """The server sends a model pruned by magnitude; devices return what the server had pruned.

    Jiang, Borcea, "Complement Sparsification: Low-Overhead Model Pruning for Federated Learning",
    AAAI 2023. Devices train all of the model; the server adds the mean of these complements,
    amplified, and prunes the sum again. Round 0 is FedAvg.
    What travels: the kept weights down, the others up; biases, norms and the output layer both
    ways.

    Departs from the paper:
        Devices use the pruned model; the sum before pruning is reported beside it.
        Computing is charged in full: after its first step a device's model is dense.
        The output layer is never pruned (1 to 11 % of the weights of the shipped models); the
        released program prunes every weight tensor.
    """

    source: ClassVar[str] = "Jiang and Borcea, AAAI 2023, and released program"
    stale: ClassVar[str] = "refuse"
    reads: ClassVar[tuple[str, ...]] = ("mask_overhead",)
    weighting: str = weighting_by_samples("Jiang and Borcea, released program")
    sparsity: float = param(
        0.5,
        "share of the weights of a layer that the server prunes",
        source="Jiang and Borcea, released program",
        gt=0,
        le=0.99,
    )
    server_lr: float = param(
        1.5,
        "factor of the complements in the sum, eta_s",
        source="Jiang and Borcea, released program",
        gt=0,
        le=MAX_RATE,
    )

    @cached_property
    def sparse(self) -> tuple[Slot, ...]:
        """The tensors that are pruned: the weights of all layers but the output layer."""
        last = output_layer(self.layout)
        slots = (slot for slot in self.layout.slots if slot.kind in ("weight", "embedding"))
        return tuple(slot for slot in slots if not last[slot.slice].any())

    @cached_property
    def _dense(self) -> Tensor:
        """All other weights, bool [P]."""
        return self.task.tensor(self.layout.where(lambda slot: slot not in self.sparse))

    def pruned(self, w: Tensor) -> Tensor:
        """w [P] without the smallest weights of every layer."""
        import torch

        w = w.clone()
        for slot in self.sparse:
            part = w[slot.slice]
            everything = torch.ones_like(part, dtype=torch.bool)
            part[~largest(part.abs(), everything, kept_count(self.sparsity, slot.size))] = 0.0
        return w

    # --- what it costs ---------------------------------------------------------------------------

    def payload(self, rho: float) -> Payload:
        """From round 1 on."""
        bits, places = self.task.accounting, sum(slot.size for slot in self.sparse)
        kept = sum(kept_count(self.sparsity, slot.size) for slot in self.sparse)
        rest = self.shared_count - places
        down = bits.weight_bits(rest + kept) + bits.mask_bits(places, self.sparsity)
        return Payload(bits_down=down, bits_up=bits.weight_bits(rest + places - kept))

    def demand(self, state: State | None, view: View, chosen: Array) -> Demand:
        demand = super().demand(state, view, chosen)
        if view.g:
            return demand
        whole, each = super().payload(0.0), np.ones(len(chosen))
        return replace(
            demand, bits_prunable=upload_bits(whole) * each, bits_down=whole.bits_down * each
        )

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        job = super().configure(state, view, grant)
        return job if view.g else replace(job, payload=super().payload(grant.rho))

    # --- what returns, and what is used ----------------------------------------------------------

    def encode(self, job: Job, trained: Trained) -> Sent:
        """All that is zero in the model that was sent."""
        complement = self._dense | (job.phases[0].start == 0)
        return Sent(trained.w, complement if job.g else trained.mask)

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """State.w is the sum; the memo holds what is sent next, pruned, whoever arrived."""
        if not updates:
            return replace(state, g=state.g + 1, memo={"sent": self.pruned(state.w)})
        base = self.personalise(state, 0)
        after = super().aggregate(replace(state, w=base), view, updates)
        w = after.w.where((base != 0) | self._dense, self.server_lr * after.w)
        return replace(after, w=w, memo={"sent": self.pruned(w)})

    def personalise(self, state: State, k: int) -> Tensor:
        return state.memo.get("sent", state.w)

    def probes(self, state: State) -> dict[str, Tensor]:
        return {"pruned": self.personalise(state, 0), "dense": state.w}
