"""FedProx: a local loss that holds on to the received model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fl.contracts import Grant, Phase, Tensor
from fl.method_base.method import MAX_RATE, State, param
from fl.methods.fedavg import FedAvg


@dataclass(frozen=True, eq=False)
class FedProx(FedAvg):
    """FedAvg whose local loss holds on to the received model: F_k(w) + mu / 2 |w - w^r|^2.

    Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020. What travels: all
    weights, down and up. The term's own operations are not charged.

    Departs from the paper:
        No partial work, unless clock.partial is planned or cut: a slow device takes as many
        steps as the others.
    """

    source: ClassVar[str] = "Li et al., MLSys 2020, Algorithm 2"
    stale: ClassVar[str] = "damp"
    partial_work: ClassVar[bool] = True
    mu: float = param(
        0.001, "weight of the proximal term", source="FedLPS, released code", ge=0, le=MAX_RATE
    )

    def local_update(self, state: State, k: int, w: Tensor, grant: Grant) -> tuple[Phase, ...]:
        if self.mu == 0:
            return super().local_update(state, k, w, grant)
        mask = self.task.tensor(self.trained_weights(state, grant))

        def penalty(v: Tensor) -> Tensor:
            return 0.5 * self.mu * (v - w).square().sum()

        return (self.training(w, mask, state.g, k, penalty=penalty),)
