"""DepthFL: submodels by depth, with classifiers that learn from each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import or_
from typing import Any, ClassVar

import numpy as np

from fl.accounting import submodel_cost
from fl.contracts import Array, Grant, Job, Phase, Tensor, Update, View
from fl.method_base.method import MAX_RATE, State, param
from fl.method_base.stale_updates import undamped
from fl.methods._dynamic_regularizer import feddyn_drift, feddyn_penalty
from fl.methods._submodel_method import SubmodelMethod
from fl.methods.depthfl.exits import Branched, mutual_loss, ramp, with_exits
from fl.models.architectures import Architecture
from fl.models.layout import Slot

AUTHORS = "Kim et al., released program"


@dataclass(frozen=True, eq=False)
class DepthFL(SubmodelMethod):
    """A device trains the first d blocks, each with a classifier; these learn from each other too.

    Kim, Yu, Kim, Moon, "DepthFL: Depthwise Federated Learning for Heterogeneous Clients", ICLR
    2023. Depth d is the largest whose FLOPs and weights the device's capability z and its model
    budget allow, at least 1. The regulariser is that of FedDyn (Acar et al., ICLR 2021): a device
    adds -<lam, w> + alpha / 2 |w - w^r|^2 to its loss, and afterwards lam <- lam - alpha (w - w^r);
    the server takes h <- h - alpha / K sum (w - w^r) over the holders, and the mean - h / alpha.
    The model is [w, lam_k]: the linear term lam_k of a device stays there.
    What travels: d blocks and d heads, down and up; of each weight the server takes the mean over
    its holders.

    Departs from the paper:
        Depth follows from the FLOPs of a step; the authors assign it. Heads are a mean and a dense
        layer (`fl.methods.depthfl.exits`); theirs have a convolution and attention in front.
        A device that was late keeps its new lam_k, though the server's correction never saw it.
        Of an update that is used late the model takes the damped change, and h the whole one.
        Devices are tested with the server's whole model, the mean of all logits, as the authors do
        it; the measures have every depth by itself.
        Summaries count lam_k as as many personal weights as the model has.
        The terms' own operations are not charged. ``alpha: 0`` is without FedDyn, at the server
        too.
    """

    source: ClassVar[str] = "Kim et al., ICLR 2023, and released program"
    stale: ClassVar[str] = "damp"
    alpha: float = param(
        0.1, "weight of FedDyn's regulariser; 0: none", source=AUTHORS, ge=0, le=MAX_RATE
    )
    ramp_rounds: int | None = param(
        None,
        "rounds until distillation has its full weight; none: three tenths of the run's",
        source=f"{AUTHORS}: 300 of 1000",
        ge=1,
    )
    lr: float = param(0.1, "step size of SGD", source=AUTHORS, gt=0, le=MAX_RATE)
    lr_decay: float = param(
        0.998, "factor of the step size from round to round", source=AUTHORS, gt=0, le=1
    )
    weight_decay: float = param(1e-3, "weight decay of SGD", source=AUTHORS, ge=0, le=MAX_RATE)

    @classmethod
    def by_length(cls, rounds: int, asked: int) -> dict[str, Any]:
        ramp_rounds = max(1, round(0.3 * rounds))
        return super().by_length(rounds, asked) | {"ramp_rounds": ramp_rounds}

    # --- the model -------------------------------------------------------------------------------

    def own_loss(self) -> str | None:
        return "trains its classifiers by cross entropy"

    @classmethod
    def architecture(cls, given: Architecture) -> Branched:
        return with_exits(given)

    def extra(self) -> tuple[Slot, ...]:
        return (Slot("linear.term", (self.task.layout.size,), 0, "copy", "personal", -1),)

    # --- how deep --------------------------------------------------------------------------------

    @property
    def branched(self) -> Branched:
        """The model with its exits, which `architecture` made."""
        assert isinstance(self.task.architecture, Branched)
        return self.task.architecture

    @cached_property
    def nested(self) -> tuple[Array, ...]:
        """The weights of the first d blocks and heads, bool [P], for d = 1, 2, ..., D."""
        masks = np.zeros((self.branched.depths, self.layout.size), dtype=bool)
        for slot in self.branched.layout.slots:
            masks[self.branched.depth_of(slot) - 1 :, slot.slice] = True
        return tuple(masks)

    @cached_property
    def shares(self) -> Array:
        """Share of each depth in the whole model's FLOPs of a step, and in its weights [D, 2]."""
        costs = [
            (submodel_cost(self.branched, kept, self.task.accounting).flops, float(kept.sum()))
            for kept in self.nested
        ]
        return np.array(costs) / costs[-1]

    def depth(self, view: View, k: int) -> int:
        """d of device k in round view.g."""
        allowed = float(view.capability[k]), float(view.model_budget[k])
        return max(1, int((self.shares <= allowed).all(axis=1).sum()))

    def kept(self, state: State | None, view: View, k: int) -> Array:
        return self.nested[self.depth(view, k) - 1]

    # --- how a device trains ---------------------------------------------------------------------

    def phases(self, state: State, view: View, k: int, w: Tensor, kept: Array) -> tuple[Phase, ...]:
        # Here, since it imports torch, which pricing a scenario does without.
        from fl.models.memory_format import pool_before_relu

        model: Any = pool_before_relu(self.branched)
        mask, size = self.task.tensor(kept), self.task.layout.size
        assert self.ramp_rounds is not None  # with_length
        depth, weight = self.depth(view, k), ramp(view.g, self.ramp_rounds)
        received, linear = w[:size], w[size:] * mask[:size]

        def loss(v: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            logits = model.exits(model.split(v), x, depth)
            of_samples = sum(self.task.objective.mean(each, y) for each in logits) / depth
            return mutual_loss(logits, y, weight), of_samples

        def penalty(v: Tensor) -> Tensor:
            return feddyn_penalty(v[:size], received, linear, self.alpha)

        plain = model.depths == 1 and self.alpha == 0  # FedAvg
        more = {"loss": None if plain else loss, "penalty": penalty if self.alpha else None}
        return (self.training(w, mask, view.g, k, **more),)

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        job, size = super().configure(state, view, grant), self.task.layout.size
        start: Tensor = job.phases[0].start

        def finish(done: list[Tensor]) -> Tensor:
            """[w, lam - alpha (w - w^r)]."""
            w = done[-1].clone()
            w[size:] -= self.alpha * (w[:size] - start[:size])
            return w

        return replace(job, finish=finish)

    # --- what becomes of it, and what is used ----------------------------------------------------

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """The mean of each weight over its holders, corrected as FedDyn does."""
        after = super().aggregate(state, view, updates)
        if self.alpha == 0 or not updates:
            return after
        heard = self.discard(state, view, updates).memo
        somebody = reduce(or_, (one.travels for one in self.arrived(view, updates)[0]))
        w = (after.w - heard["drift"]).where(somebody, state.w)
        return replace(after, w=w, memo=heard)

    def discard(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """The drift takes the whole changes, also of those whose weights the model does not."""
        if self.alpha == 0:
            return state
        whole = [undamped(one, state.w, self.shared_mask) for one in updates]
        drift = state.memo.get("drift", state.w.new_zeros(len(state.w)))
        drift = feddyn_drift(drift, state.w, self.arrived(view, whole)[0], self.task.devices)
        return replace(state, memo=state.memo | {"drift": drift})

    def received(self, state: State, k: int) -> Tensor:
        """[w, lam_k]."""
        return self.with_local_part(state, k)

    def personalise(self, state: State, k: int) -> Tensor:
        return state.w

    def probes(self, state: State) -> dict[str, Tensor]:
        """The first d blocks with their heads; the classifiers that are left out give 0."""
        return {
            f"depth {d}": state.w * self.task.tensor(kept)
            for d, kept in enumerate(self.nested, start=1)
        }
