"""Base of methods that decide, before a device trains, which submodel it gets.

Demand, bits and FLOPs follow from the mask.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fl.accounting import submodel_cost
from fl.contracts import Array, Demand, Grant, Job, Payload, Phase, Stage, Tensor, View
from fl.method_base.affine_demand import decided_demand, total_work
from fl.method_base.method import State
from fl.methods.fedavg import FedAvg


@dataclass(frozen=True, eq=False)
class SubmodelMethod(FedAvg):
    """Every device trains a submodel of its own size; a subclass names it (`kept`).

    The submodel's weights travel, down and up. A structured one is trained as a smaller dense model
    (`fl.models.dense_submodel`).
    """

    @abstractmethod
    def kept(self, state: State | None, view: View, k: int) -> Array:
        """The weights of device k's submodel in round view.g, bool [P].

        ``state`` is None before the first round: a check asks what a round would cost.
        """

    @cached_property
    def weight_places(self) -> Array:
        """The weights of all layers, without biases and norms, bool [P]."""
        return self.layout.where(lambda slot: slot.kind in ("weight", "embedding"))

    # --- what it costs ---------------------------------------------------------------------------

    def demand(self, state: State | None, view: View, chosen: Array) -> Demand:
        """What the submodels of the chosen devices need."""
        masks = [self.kept(state, view, int(k)) for k in chosen]
        costs = [self.costs(state, view, int(k), m) for k, m in zip(chosen, masks, strict=True)]
        works = [total_work(stages) for stages, _ in costs]
        payloads = [payload for _, payload in costs]
        return decided_demand(
            chosen, works, payloads, np.array(list(map(self.pruned_share, masks)))
        )

    def forecast(self, view: View, k: int, rho: float) -> tuple[Stage, ...]:
        """The computation of device k before round 0."""
        return self.costs(None, view, k, self.kept(None, view, k))[0]

    def costs(
        self, state: State | None, view: View, k: int, kept: Array
    ) -> tuple[tuple[Stage, ...], Payload]:
        """What device k computes and what travels where its submodel is ``kept`` bool [P]."""
        return self.submodel_stages(view, k, kept), self.submodel_payload(kept)

    def pruned_share(self, kept: Array) -> float:
        """rho: the share of the shared weights that a submodel bool [P] leaves out."""
        return 1.0 - float((kept & self.shared).sum()) / self.shared_count

    def submodel_stages(self, view: View, k: int, kept: Array) -> tuple[Stage, ...]:
        """The computation of device k in a round on the submodel ``kept`` bool [P]."""
        return self.kept_stages(k, kept)

    def kept_stages(self, k: int, kept: Array) -> tuple[Stage, ...]:
        """The local steps of device k on the weights ``kept`` bool [P]."""
        task = self.task
        cost = submodel_cost(task.architecture, kept, task.accounting)
        work = task.accounting.work(cost, self.steps(k), self.samples_per_step(k))
        return (Stage("train", work),)

    def submodel_payload(self, kept: Array) -> Payload:
        """The submodel's shared weights, down and up; both sides know which they are."""
        bits = self.task.accounting.weight_bits(int((kept & self.shared).sum()))
        return Payload(bits_down=bits, bits_up=bits)

    # --- how a device trains ---------------------------------------------------------------------

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        """The order for one device: training its submodel."""
        k = grant.device
        kept = self.kept(state, view, k)
        stages, payload = self.costs(state, view, k, kept)
        return Job(
            device=k,
            g=view.g,
            phases=self.phases(state, view, k, self.received(state, k), kept),
            stages=stages,
            payload=payload,
            rho=grant.rho,
            note=self.noted(state, view, k),
        )

    def noted(self, state: State, view: View, k: int) -> Any:
        """What the server wants to know of the dispatch when the update is used: `Job.note`."""
        return None

    def phases(self, state: State, view: View, k: int, w: Tensor, kept: Array) -> tuple[Phase, ...]:
        """How device k trains its submodel ``kept`` bool [P] of w [P]."""
        mask = self.task.tensor(kept)
        return (self.training(w, mask, view.g, k, submodel=mask),)
