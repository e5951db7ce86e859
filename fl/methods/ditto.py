"""Ditto: a personal model beside the global one, held near it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fl.contracts import Grant, Phase, Stage, Tensor
from fl.method_base.method import MAX_RATE, State, param
from fl.methods._personal_copy import PersonalCopyMethod


@dataclass(frozen=True, eq=False)
class Ditto(PersonalCopyMethod):
    """FedAvg, beside which a device trains a model of its own, held near the received one.

    Li, Hu, Beirami, Smith, "Ditto: Fair and Robust Federated Learning Through Personalization",
    ICML 2021. The personal model v minimises F_k(v) + lam / 2 |v - w^r|^2; both models take as many
    steps, of the same size. The model is [w, v_k].
    What travels: w, down and up. v_k stays, also when the upload was late.

    Departs from the paper:
        v_k starts at the initial model; a device that was never asked uses the global one.
        The term's own operations are not charged.
    """

    source: ClassVar[str] = "Li et al., ICML 2021, Algorithm 1"
    stale: ClassVar[str] = "damp"
    cost_by_samples: ClassVar[bool] = True
    lam: float = param(
        0.1,
        "weight of the distance to the received model",
        source="Li et al.: 0.1, 1 or 2",
        ge=0,
        le=MAX_RATE,
    )

    # --- what it costs, and how a device trains --------------------------------------------------

    def stages(self, k: int, rho: float) -> tuple[Stage, ...]:
        (train,) = super().stages(k, rho)
        return Stage("personal", train.work), train

    def local_update(self, state: State, k: int, w: Tensor, grant: Grant) -> tuple[Phase, ...]:
        size = self.task.layout.size
        anchor = w[:size]
        personal = self.training(
            w,
            ~self.shared_mask,
            state.g,
            k,
            batches="personal",
            effective=lambda v, rng: v[size:],
            penalty=lambda v: 0.5 * self.lam * (v[size:] - anchor).square().sum(),
        )
        return personal, self.training(lambda done: done[-1], self.shared_mask, state.g, k)

    # --- what is used ----------------------------------------------------------------------------

    def received(self, state: State, k: int) -> Tensor:
        """[w, v_k]."""
        return self.with_local_part(state, k)
