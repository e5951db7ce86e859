"""APFL: every device uses a mixture of the global model and one of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from fl.contracts import Grant, Phase, Stage, Tensor
from fl.method_base.method import State, param
from fl.methods.fedavg import FedAvg
from fl.models.layout import Slot


@dataclass(frozen=True, eq=False)
class APFL(FedAvg):
    """FedAvg, beside which a device trains a model v_k for the mixture alpha v_k + (1 - alpha) w.

    Deng, Kamani, Mahdavi, "Adaptive Personalized Federated Learning", 2020. A step moves w along
    the gradient of F_k(w), and v_k along that of F_k(alpha v_k + (1 - alpha) w) by v_k, both on the
    same mini-batch and with the w from before the step. The model is [w, v_k, alpha_k].
    What travels: w, down and up. v_k and alpha_k stay, also when the upload was late.

    Departs from the paper:
        v_k starts at the initial model; a device that was never asked uses the global one.
        With ``adaptive`` alpha_k moves at every step; the paper moves it once a round.
        Parameters are mixed as in the paper; public programs mix the outputs of two models.
        w, v_k and alpha_k are one vector to the optimiser: ``clip`` bounds the norm of all their
        gradients together, and with ``adaptive`` ``weight_decay`` shrinks alpha_k too.
    """

    source: ClassVar[str] = "Deng et al., arXiv 2003.13461, Algorithm 1"
    stale: ClassVar[str] = "damp"
    cost_by_samples: ClassVar[bool] = True
    alpha: float = param(
        0.5, "share of the device's own model, at first", source="Deng et al.", ge=0, le=1
    )
    adaptive: bool = param(
        False, "alpha_k follows its gradient, within [0, 1]", source="Deng et al., eq. (12)"
    )

    def extra(self) -> tuple[Slot, ...]:
        size = self.task.layout.size
        return (
            Slot("personal.model", (size,), 0, "copy", "personal", -1),
            Slot("personal.share", (1,), 0, "share", "personal", -1),
        )

    def start(self) -> State:
        """[w, w, alpha]."""
        state, size = super().start(), self.task.layout.size
        w = state.w.clone()
        w[size : 2 * size] = w[:size]
        w[-1] = self.alpha
        return replace(state, w=w)

    # --- what it costs, and how a device trains --------------------------------------------------

    def stages(self, k: int, rho: float) -> tuple[Stage, ...]:
        (train,) = super().stages(k, rho)
        return Stage("personal", train.work), train

    def local_update(self, state: State, k: int, w: Tensor, grant: Grant) -> tuple[Phase, ...]:
        size, logits = self.task.layout.size, self.task.architecture.logits
        mean = self.task.objective.mean
        trained = self._all.clone()
        trained[-1] = self.adaptive

        def loss(v: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            shared = v[:size]
            mixed = v[-1] * v[size:-1] + (1.0 - v[-1]) * shared.detach()
            of_shared = mean(logits(shared, x), y)
            return of_shared + mean(logits(mixed, x), y), of_shared

        def project(v: Tensor, velocity: Tensor | None) -> None:
            v[-1].clamp_(0.0, 1.0)

        return (self.training(w, trained, state.g, k, loss=loss, project=project),)

    # --- what is used ----------------------------------------------------------------------------

    def received(self, state: State, k: int) -> Tensor:
        """[w, v_k, alpha_k]."""
        return self.with_local_part(state, k)

    def personalise(self, state: State, k: int) -> Tensor:
        """The mixture."""
        size, own = self.task.layout.size, state.local.get(k)
        if own is None:
            return state.w[:size]
        return own[-1] * own[:size] + (1.0 - own[-1]) * state.w[:size]

    def probes(self, state: State) -> dict[str, Tensor]:
        return {"global": state.w}
