"""DepthFL. Kim, Yu, Kim, Moon, "DepthFL: Depthwise Federated Learning for Heterogeneous Clients", ICLR 2023."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fl.accounting import submodel_cost
from fl.contracts import Grant, Job, Phase, Tensor, Update, View
from fl.method_base.method import MAX_RATE, State, param
from fl.method_base.submodel_method import Submodels
from fl.methods.depthfl.exits import Branched, mutual_loss, ramp, with_exits
from fl.models.architectures import Architecture
from fl.models.layout import Slot

Array = np.ndarray
AUTHORS = "Kim et al., released program (fedlps.md, 10.12)"


@dataclass(frozen=True, eq=False)
class DepthFL(Submodels):
    """A device trains the first d blocks of the model, each with a classifier, which learn from each other too.

    Its depth d is the largest whose FLOPs and weights its capability z and its model budget allow, at least 1. The
    regulariser is that of FedDyn (`fl.methods.depthfl.feddyn`). The model is [w, lam_k]: the linear term lam_k of a device stays there.
    What travels: d blocks and d heads, down and up; of each weight the server takes the mean over its holders.

    Departs from the paper:
        Depth follows from the FLOPs of a step; the authors assign it. Heads are a mean and a dense layer (`fl.methods.depthfl.exits`);
        theirs have a convolution and attention in front.
        A device that was late keeps its new lam_k, though the server's correction never heard of it.
        Devices are tested with the server's whole model, the mean of all logits, as the authors do it; the measures
        have every depth by itself.
        Summaries count lam_k as as many personal weights as the model has.
        The terms' own operations are not charged. ``alpha: 0`` is without FedDyn, at the server too.
    """

    source: ClassVar[str] = "Kim et al., ICLR 2023; fedlps.md, 10.12"
    alpha: float = param(
        0.1, "weight of FedDyn's regulariser; 0: none", source=AUTHORS, ge=0, le=MAX_RATE
    )
    ramp_rounds: int = param(
        300, "rounds until distillation has its full weight", source=AUTHORS, ge=1
    )
    lr: float = param(0.1, "step size of SGD", source=AUTHORS, gt=0, le=MAX_RATE)
    lr_decay: float = param(
        0.998, "factor of the step size from round to round", source=AUTHORS, gt=0, le=1
    )
    weight_decay: float = param(1e-3, "weight decay of SGD", source=AUTHORS, ge=0, le=MAX_RATE)

    @classmethod
    def unread(cls, values: dict[str, Any]) -> dict[str, str]:
        return super().unread(values) | {"width": "the depth decides"}

    # --- the model -------------------------------------------------------------------------------------------------

    @classmethod
    def architecture(cls, given: Architecture) -> Branched:
        return with_exits(given)

    def extra(self) -> tuple[Slot, ...]:
        return (Slot("linear.term", (self.task.layout.size,), 0, "copy", "personal", -1),)

    def personal(self) -> Array:
        return self.layout.role("personal")

    # --- how deep --------------------------------------------------------------------------------------------------

    @cached_property
    def nested(self) -> tuple[Array, ...]:
        """The weights of the first d blocks and heads, bool [P], for d = 1, 2, ..., D."""
        model = self.task.architecture
        masks = np.zeros((model.depths, self.layout.size), dtype=bool)
        for slot in model.layout.slots:
            masks[model.depth_of(slot) - 1 :, slot.slice] = True
        return tuple(masks)

    @cached_property
    def shares(self) -> Array:
        """Of each depth the share of the whole model's FLOPs in a step, and of its weights [D, 2]."""
        model, accounting = self.task.architecture, self.task.accounting
        costs = [
            (submodel_cost(model, kept, accounting).flops, float(kept.sum()))
            for kept in self.nested
        ]
        return np.array(costs) / costs[-1]

    def depth(self, view: View, k: int) -> int:
        """d of device k in round view.g."""
        allowed = float(view.capability[k]), float(view.model_budget[k])
        return max(1, int((self.shares <= allowed).all(axis=1).sum()))

    def kept(self, state: State | None, view: View, k: int) -> Array:
        return self.nested[self.depth(view, k) - 1]

    # --- how a device trains ---------------------------------------------------------------------------------------

    def phases(self, state: State, view: View, k: int, w: Tensor, kept: Array) -> tuple[Phase, ...]:
        from fl.methods.depthfl.feddyn import penalty
        from fl.models.memory_format import pool_before_relu

        model, mask, size = (
            pool_before_relu(self.task.architecture),
            self.task.tensor(kept),
            self.task.layout.size,
        )
        depth, weight = self.depth(view, k), ramp(view.g, self.ramp_rounds)
        received, linear = w[:size], w[size:] * mask[:size]

        def loss(v: Tensor, x: Tensor, y: Tensor) -> Tensor:
            loss = mutual_loss(model.exits(model.split(v), x, depth), y, weight)
            return loss + penalty(v[:size], received, linear, self.alpha) if self.alpha else loss

        plain = model.depths == 1 and self.alpha == 0  # FedAvg
        return (self.training(w, mask, view.g, k, loss=None if plain else loss),)

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        job, size = super().configure(state, view, grant), self.task.layout.size
        start = job.phases[0].start

        def finish(done: list[Tensor]) -> Tensor:
            """[w, lam - alpha (w - w^r)]."""
            w = done[-1].clone()
            w[size:] -= self.alpha * (w[:size] - start[:size])
            return w

        return replace(job, finish=finish)

    # --- what becomes of it, and what is used ----------------------------------------------------------------------

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        from fl.methods.depthfl.feddyn import corrected

        after = super().aggregate(state, view, updates)
        if self.alpha == 0 or not updates:
            return after
        senders = sum(
            self.encode(update.job, update.result()).travels.to(state.w.dtype) for update in updates
        )
        drift = state.memo.get("drift", state.w.new_zeros(len(state.w)))
        w, drift = corrected(after.w, state.w, drift, senders, self.task.devices)
        return replace(after, w=w, memo=state.memo | {"drift": drift})

    def received(self, state: State, k: int) -> Tensor:
        """[w, lam_k]."""
        return super().personalise(state, k)

    def personalise(self, state: State, k: int) -> Tensor:
        return state.w

    def probes(self, state: State) -> dict[str, Tensor]:
        """The first d blocks with their heads; the classifiers that are left out give 0."""
        return {
            f"depth {d}": state.w * self.task.tensor(kept)
            for d, kept in enumerate(self.nested, start=1)
        }
