"""FedAlt: partial personalisation, the personal and the shared part in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from fl.contracts import Array, Grant, Phase, Stage, Tensor
from fl.errors import MethodError
from fl.method_base.method import MAX_RATE, RATE_SOURCE, STEPS_SOURCE, Method, State, param


@dataclass(frozen=True, eq=False)
class FedAlt(Method):
    """Partial personalisation: first the personal part with the shared one fixed, then the other.

    Pillutla et al., "Federated Learning with Partial Model Personalization", ICML 2022. Liu, eqs.
    (6), (7), "LocalAlt"; also "personalization only" of their comparison (rho = 0).
    What travels: the shared weights u, down and up. The personal weights v_k stay, also when the
    upload was late.

    Departs from the paper:
        Pillutla et al. count epochs, here as in Liu et al. steps.
        The split is that of Liu's example, convolutions personal; ``personal_part`` turns it round
        or off.
        A device's initial personal weights cost nothing: they follow from a seed.
    """

    source: ClassVar[str] = "Pillutla et al., ICML 2022, Algorithm 2 (FedAlt)"
    stale: ClassVar[str] = "damp"
    cost_by_samples: ClassVar[bool] = True
    update: ClassVar[str] = "alternating"
    personal_part: str = param(
        "features",
        "which weights stay at the device: the convolutions or hidden layer, the fully connected "
        "part, or none",
        source="Liu et al., Section V",
        choices=("features", "classifier", "none"),
    )
    personal_steps: int = param(
        5, "SGD steps on the personal part per round, tau_v", source=STEPS_SOURCE, ge=0
    )
    global_steps: int = param(
        5, "SGD steps on the shared part per round, tau_u", source=STEPS_SOURCE, ge=1
    )
    personal_lr: float = param(
        0.001, "step size on the personal part, eta_v", source=RATE_SOURCE, gt=0, le=MAX_RATE
    )
    global_lr: float = param(
        0.001, "step size on the shared part, eta_u", source=RATE_SOURCE, gt=0, le=MAX_RATE
    )

    @classmethod
    def conflict(cls, values: dict[str, Any]) -> MethodError | None:
        simultaneous = values.get("update", cls.update) == "simultaneous"
        personal, shared = values["personal_steps"], values["global_steps"]
        if simultaneous and values["personal_part"] != "none" and personal != shared:
            return MethodError(
                "personal_steps",
                f"is {personal}, but a simultaneous update makes as many personal steps as "
                f"global_steps ({shared})",
            )
        return super().conflict(values)

    @classmethod
    def unread(cls, values: dict[str, Any]) -> dict[str, str]:
        idle = ("personal_steps", "personal_lr") if values["personal_part"] == "none" else ()
        return super().unread(values) | dict.fromkeys(idle, "personal_part is none")

    def personal(self) -> Array:
        return self.layout.role(self.personal_part)

    def stages(self, k: int, rho: float) -> tuple[Stage, ...]:
        if self.update == "simultaneous":
            return (Stage("train", self.work(k, self.whole_step, self.global_steps, rho)),)
        return (
            Stage("personal", self.work(k, self.personal_step, self.personal_steps)),
            Stage("global", self.work(k, self.shared_step, self.global_steps, rho)),
        )

    def local_update(self, state: State, k: int, w: Tensor, grant: Grant) -> tuple[Phase, ...]:
        u = self.shared_mask
        if self.update == "simultaneous":
            rate = u * self.global_lr + ~u * self.personal_lr
            return (Phase(start=w, mask=u | ~u, steps=self.global_steps, lr=rate),)
        steps, lr = self.personal_steps, self.personal_lr
        return (
            Phase(start=w, mask=~u, steps=steps, lr=lr, batches="personal"),
            Phase(start=lambda done: done[-1], mask=u, steps=self.global_steps, lr=self.global_lr),
        )
