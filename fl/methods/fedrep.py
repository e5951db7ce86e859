"""FedRep: head and body are trained in turns, and the head stays at its device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from fl.contracts import Grant, Phase, Stage, Tensor
from fl.errors import MethodError
from fl.method_base.method import State, param
from fl.methods.fedper import FedPer


@dataclass(frozen=True, eq=False)
class FedRep(FedPer):
    """FedPer in turns: the first local steps train the head alone, the others the body under it.

    Collins et al., "Exploiting Shared Representations for Personalized Federated Learning", ICML
    2021. What travels: all weights but the head, down and up. The head stays, also when the upload
    was late.

    Departs from the paper:
        2 of 5 steps (with ``local_epochs``, passes) on the head, so that a device computes as long
        as with FedAvg; the authors' program: all but one.
        Charged is what is computed: a step on the head needs no gradient below it. As `FedPer`, the
        output layer.
    """

    source: ClassVar[str] = "Collins et al., ICML 2021, Algorithm 1"
    stale: ClassVar[str] = "damp"
    cost_by_samples: ClassVar[bool] = True
    head_steps: int = param(
        2,
        "how many of the local_steps (or local_epochs) train the head alone, tau_h",
        source="our choice: the authors' program all but one",
        ge=1,
    )

    @classmethod
    def conflict(cls, values: dict[str, Any]) -> MethodError | None:
        key = "local_steps" if values.get("local_epochs") is None else "local_epochs"
        if values["head_steps"] >= values[key]:
            return MethodError(
                "head_steps",
                f"is {values['head_steps']}; allowed is less than {key} ({values[key]})",
            )
        return super().conflict(values)

    def turns(self, k: int) -> tuple[int, int]:
        """Steps of device k on the head, and on the body."""
        every = self.steps(k)
        parts = self.local_steps if self.local_epochs is None else self.local_epochs
        head = every * self.head_steps // parts
        return head, every - head

    def stages(self, k: int, rho: float) -> tuple[Stage, ...]:
        (head, body), batch = self.turns(k), self.samples_per_step(k)
        return (
            Stage("personal", self.work(k, self.personal_step, head, batch=batch)),
            Stage("global", self.work(k, self.shared_step, body, batch=batch)),
        )

    def local_update(self, state: State, k: int, w: Tensor, grant: Grant) -> tuple[Phase, ...]:
        head, body = self.turns(k)
        return (
            self.training(w, ~self.shared_mask, state.g, k, steps=head),
            self.training(
                lambda done: done[-1], self.shared_mask, state.g, k, steps=body, first=head
            ),
        )
