"""Pruning by trainable thresholds without a server: "Local" in SpaFL's comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp
from typing import Any, ClassVar

import numpy as np

from fl.contracts import (
    Array,
    Demand,
    Grant,
    Job,
    Phase,
    Stage,
    Tensor,
    Trained,
    Update,
    View,
    Work,
)
from fl.errors import MethodError
from fl.masks.thresholds import ThresholdRows, carriers, threshold_slots
from fl.method_base.affine_demand import total_work
from fl.method_base.method import State, param
from fl.methods.fedavg import FedAvg
from fl.models.layout import Slot

PAPER = "Kim et al., NeurIPS 2024"


@dataclass(frozen=True, eq=False)
class Local(FedAvg):
    """Every device prunes and trains a model of its own by trainable thresholds; nothing is sent.

    Kim, Saad, Debbah, Hong, "SpaFL: Communication-Efficient Federated Learning with Sparse Models
    and Low Computational Overhead", NeurIPS 2024. A filter or neuron computes where the mean |w| of
    its weights is above its threshold, eq. (1); both take the same SGD steps, and a penalty pushes
    thresholds up, eqs. (5), (6).
    What travels: nothing.

    Departs from the paper (see docs/papers/spafl.md):
        Weights get the gradient of the masked weights where their row lives; ``mask_path`` adds
        that through (1).
        Thresholds of a layer of which at most 1 % would live begin anew, momentum too, before it
        computes, not after.
        Ranges are kept by clamping after every step. Biases and norms have no thresholds and no
        range.
        Charged are the rows that lived, on average over the steps; the plan counts those that live
        at the start.
        A device that was never asked uses the model as it was initialised.
    """

    source: ClassVar[str] = f"{PAPER}, Section 4 (Local)"
    stale: ClassVar[str] = "damp"
    cost_by_samples: ClassVar[bool] = True
    momentum: float = param(
        0.9, "momentum of SGD, fresh in every round", source=f"{PAPER}: 0.9", ge=0, le=0.9999
    )
    threshold_penalty: float = param(
        0.002,
        "weight alpha of the penalty sum exp(-tau)",
        source=f"{PAPER}, Fashion-MNIST",
        ge=0,
        le=1,
    )
    penalty_warmup: bool = param(
        False, "penalty times sigmoid(10 t - 5) in round t", source=f"{PAPER}"
    )
    surrogate: str = param(
        "identity",
        "derivative of the unit step: 1; 1 where |mu - tau| > 1 (released code for CIFAR); "
        "long-tailed",
        source=f"{PAPER}, eq. (9)",
        choices=("identity", "inverted-clip", "piecewise"),
    )
    mask_path: bool = param(
        False, "weights also get the gradient through the mean |w|", source=f"{PAPER}, eq. (3)"
    )
    prune_output: bool = param(
        True, "the output layer has thresholds too", source=f"{PAPER}: 580 thresholds"
    )
    frozen_weights: bool = param(False, "only thresholds are trained", source=f"{PAPER}, Table 1")

    @classmethod
    def unread(cls, values: dict[str, Any]) -> dict[str, str]:
        frozen = {"mask_path": "frozen_weights is true"} if values["frozen_weights"] else {}
        return super().unread(values) | {"weighting": "nothing is sent"} | frozen

    def __post_init__(self) -> None:
        if not self.rows.weights:
            raise MethodError(
                "name",
                "needs convolutions or linear layers (with prune_output, the last one) to prune",
            )

    @cached_property
    def rows(self) -> ThresholdRows:
        """The filters and neurons that have thresholds."""
        return ThresholdRows(carriers(self.task.layout, self.prune_output), self.task.layout.size)

    def extra(self) -> tuple[Slot, ...]:
        return threshold_slots(self.rows.weights)

    def personal(self) -> Array:
        return self.everything

    # --- what it costs ---------------------------------------------------------------------------

    def threshold_stages(self, k: int, alive: Array) -> tuple[Stage, ...]:
        """The computation of a round of device k of whose rows ``alive`` [T] live, from 0 to 1."""
        accounting, steps, batch = self.task.accounting, self.steps(k), self.samples_per_step(k)
        cost = self.rows.cost(self.task.architecture, self.rows.shares(alive), accounting)
        work = accounting.work(cost, steps, batch)
        passes = steps * batch / int(self.task.samples[k])
        return (Stage("train", replace(work, flops=work.flops + self.rows.upkeep(passes))),)

    def stages(self, k: int, rho: float) -> tuple[Stage, ...]:
        return self.threshold_stages(k, np.ones(sum(self.rows.counts)))

    def demand(self, state: State | None, view: View, chosen: Array) -> Demand:
        """With the work on the rows that live where each device starts."""
        demand = super().demand(state, view, chosen)
        if state is None:
            return demand
        works = [
            total_work(self.threshold_stages(k, self.rows.starting(self.received(state, k))))
            for k in map(int, chosen)
        ]
        columns = np.array([(work.weight_steps, work.flops) for work in works]).T
        return replace(demand, work_prunable=Work(*columns))

    def charged(self, job: Job, trained: Trained) -> tuple[Stage, ...]:
        assert trained.collected is not None  # the phase of local_update collects
        living: Tensor = trained.collected / job.phases[-1].steps
        return self.threshold_stages(job.device, living.cpu().numpy())

    # --- how a device trains ---------------------------------------------------------------------

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        return replace(super().configure(state, view, grant), stages=None)

    def local_update(self, state: State, k: int, w: Tensor, grant: Grant) -> tuple[Phase, ...]:
        # Here, since it imports torch, which pricing a scenario does without.
        from fl.masks.threshold_training import Pruner

        alpha = self.threshold_penalty / (1 + exp(5 - 10 * state.g) if self.penalty_warmup else 1)
        hooks = Pruner(self.rows, alpha, self.surrogate, self.mask_path)
        asked = {"effective": hooks.effective, "project": hooks.project, "collect": hooks.collect}
        return (self.training(w, self._trained, state.g, k, **asked),)

    @cached_property
    def _trained(self) -> Tensor:
        """What is trained, bool [P + T]."""
        return self.task.tensor(
            self.layout.where(lambda slot: slot.kind == "threshold" or not self.frozen_weights)
        )

    # --- what stays, and what is used ------------------------------------------------------------

    def own(self, state: State, k: int) -> Tensor:
        """W_k and tau_k [P + T], as device k left them; those of the start if it never trained."""
        return state.local.get(k, self._untouched)

    @cached_property
    def _untouched(self) -> Tensor:
        return self.start().w

    def received(self, state: State, k: int) -> Tensor:
        return self.own(state, k)

    def local_part(self, trained: Trained) -> Tensor:
        return trained.w

    def retain(self, state: State, updates: Sequence[Update]) -> State:
        """What stays; and how many rows came back to life, over all devices and rounds."""
        after, trained = super().retain(state, updates), [update.job.device for update in updates]
        back = sum(self.rows.recovered(self.own(state, k), after.local[k]) for k in trained)
        return replace(
            after, notes=state.notes | {"recovered": state.notes.get("recovered", 0) + back}
        )

    def personalise(self, state: State, k: int) -> Tensor:
        return self.rows.masked(state.local[k]) if k in state.local else self._untouched

    def measures(self, state: State) -> dict[str, float]:
        """Mean densities over all devices; rows that came back to life; devices never trained."""
        living = [self.rows.living(self.own(state, k)) for k in range(self.task.devices)]
        each = [self.rows.densities(self.task.architecture.macs, alive) for alive in living]
        found = {f"density_{name}": float(np.mean([one[name] for one in each])) for name in each[0]}
        found["filters_recovered"] = float(state.notes.get("recovered", 0))
        return found | {"never_sampled": float(self.task.devices - len(state.local))}
