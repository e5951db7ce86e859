"""FedProx. Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fl.contracts import Grant, Phase, Tensor
from fl.method_base.averaging import FedAvg
from fl.method_base.method import MAX_RATE, State, param


@dataclass(frozen=True, eq=False)
class FedProx(FedAvg):
    """FedAvg whose local loss holds on to the received model: F_k(w) + mu / 2 |w - w^r|^2.

    What travels: all weights, down and up. The term's own operations are not charged (fedlps.md, 10.2).

    Departs from the paper:
        No partial work: a slow device takes as many steps as the others (fedlps.md, 10.2).
    """

    source: ClassVar[str] = "Li et al., MLSys 2020, Algorithm 2"
    mu: float = param(
        0.001,
        "weight of the proximal term",
        source="FedLPS reference code (fedlps.md, 10.2)",
        ge=0,
        le=MAX_RATE,
    )

    def local_update(self, state: State, k: int, w: Tensor, grant: Grant) -> tuple[Phase, ...]:
        if self.mu == 0:
            return super().local_update(state, k, w, grant)
        mask = self.task.tensor(self.mask(state, grant))
        return (
            self.training(
                w, mask, state.g, k, penalty=lambda v: 0.5 * self.mu * (v - w).square().sum()
            ),
        )
