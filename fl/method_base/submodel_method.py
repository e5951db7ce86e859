"""Methods that decide, before a device trains, which submodel it gets: demand, bits and FLOPs follow from the mask."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import sqrt

import numpy as np

from fl.accounting import submodel_cost
from fl.contracts import Demand, Grant, Job, Payload, Phase, Stage, Tensor, View, Work
from fl.method_base.averaging import FedAvg
from fl.method_base.costs import total_work
from fl.method_base.method import State, param

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Submodels(FedAvg):
    """Every device trains a submodel of its own size; a subclass says which one (`kept`).

    The submodel's weights travel, down and up. A structured one is trained as a smaller dense model (`fl.models.dense_submodel`).
    """

    width: float | None = param(
        None,
        "share of the units that every device keeps; none: its capability, or the root of its model budget if smaller",
        source="Diao et al., ICLR 2021 (HeteroFL)",
        gt=0,
        le=1,
    )

    @abstractmethod
    def kept(self, state: State | None, view: View, k: int) -> Array:
        """The weights of device k's submodel in round view.g, bool [P].

        ``state`` is None before the first round (a check asks what a round would cost).
        """

    def width_of(self, view: View, k: int) -> float:
        """Share of the units of a layer that device k keeps: a width s has about s^2 of the weights."""
        if self.width is not None:
            return self.width
        return min(float(view.capability[k]), sqrt(float(view.model_budget[k])))

    # --- what it costs ---------------------------------------------------------------------------------------------

    def demand(self, state: State | None, view: View, chosen: Array) -> Demand:
        """All of it counts as prunable at a ratio that the method has decided: late, never infeasible."""
        masks = [self.kept(state, view, int(k)) for k in chosen]
        works = [
            total_work(self.ordered(view, int(k), mask))
            for k, mask in zip(chosen, masks, strict=True)
        ]
        rho = np.array([self.pruned_share(mask) for mask in masks])
        payloads = [self.travel(mask) for mask in masks]
        ones, nothing = np.ones(len(chosen)), np.zeros(len(chosen))
        return Demand(
            devices=np.asarray(chosen),
            bits_fixed=nothing,
            bits_prunable=np.array([p.bits_up for p in payloads]) / (1.0 - rho),
            work_fixed=Work(nothing, nothing),
            work_prunable=Work(
                np.array([w.weight_steps for w in works]) / (1.0 - rho),
                np.array([w.flops for w in works]) / (1.0 - rho),
            ),
            rho_min=rho,
            rho_max=rho,
            weight=ones,
            bits_down=np.array([p.bits_down for p in payloads]),
        )

    def forecast(self, view: View, k: int, rho: float) -> tuple[Stage, ...]:
        return self.ordered(view, k, self.kept(None, view, k))

    def pruned_share(self, kept: Array) -> float:
        """rho: the share of the shared weights that a submodel leaves out."""
        return 1.0 - float((kept & self.shared).sum()) / self.shared_count

    def ordered(self, view: View, k: int, kept: Array) -> tuple[Stage, ...]:
        """The computation of a round on the submodel ``kept`` bool [P]."""
        cost = submodel_cost(self.task.architecture, kept, self.task.accounting)
        return (
            Stage(
                "train", self.task.accounting.work(cost, self.steps(k), self.samples_per_step(k))
            ),
        )

    def travel(self, kept: Array) -> Payload:
        """The submodel's shared weights, down and up; both sides know which they are."""
        bits = self.task.accounting.weight_bits(int((kept & self.shared).sum()))
        return Payload(bits_down=bits, bits_up=bits)

    # --- how a device trains ---------------------------------------------------------------------------------------

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        k = grant.device
        kept = self.kept(state, view, k)
        return Job(
            device=k,
            g=view.g,
            phases=self.phases(state, view, k, self.received(state, k), kept),
            stages=self.ordered(view, k, kept),
            payload=self.travel(kept),
            rho=grant.rho,
        )

    def phases(self, state: State, view: View, k: int, w: Tensor, kept: Array) -> tuple[Phase, ...]:
        """How device k trains its submodel ``kept`` bool [P] of w [P]."""
        mask = self.task.tensor(kept)
        return (self.training(w, mask, view.g, k, submodel=mask),)
