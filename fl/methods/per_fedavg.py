"""Per-FedAvg: a global model that is good after a device took a step of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from fl.contracts import Grant, Job, Payload, Phase, Stage, Tensor, Work
from fl.method_base.method import MAX_RATE, State, param
from fl.methods.fedavg import FedAvg

Loss = Callable[[Tensor], Tensor]  # w [P] -> scalar


@dataclass(frozen=True, eq=False)
class PerFedAvg(FedAvg):
    """A global model to start from: w <- w - lr grad F_k(w - alpha grad F_k(w)).

    Fallah, Mokhtari, Ozdaglar, "Personalized Federated Learning with Theoretical Guarantees: A
    Model-Agnostic Meta-Learning Approach", NeurIPS 2020. What travels: all weights, down and up. A
    device uses the global model after ``tuning_epochs`` passes over its data.

    Departs from the paper:
        A mini-batch is divided: its first half D makes the inner step, its second half D' the outer
        one, so that FO costs as much as FedAvg; full batches for both would cost twice that. The
        Hessian of ``exact`` is that of D, and is charged as two more gradients. With ``inner_lr:
        0`` the whole batch is D', and it is FedAvg.
        Passes before use instead of one step; they happen at the device's own time and are not
        charged.
    """

    source: ClassVar[str] = "Fallah et al., NeurIPS 2020, Algorithm 1"
    stale: ClassVar[str] = "damp"
    cost_by_samples: ClassVar[bool] = True
    inner_lr: float = param(
        0.01,
        "size of the inner step and of those before use, alpha",
        source="our choice: a value of public programs",
        ge=0,
        le=MAX_RATE,
    )
    variant: str = param(
        "fo",
        "leave the Hessian out of the gradient, or not",
        source="Fallah et al., Section 5",
        choices=("fo", "exact"),
    )
    tuning_epochs: int = param(
        1,
        "passes over its own data by which a device makes the global model its own",
        source="our choice: the paper takes one step",
        ge=0,
    )

    @classmethod
    def unread(cls, values: dict[str, Any]) -> dict[str, str]:
        idle = () if values["inner_lr"] else ("variant", "tuning_epochs")
        return super().unread(values) | dict.fromkeys(idle, "inner_lr is 0")

    def stages(self, k: int, rho: float) -> tuple[Stage, ...]:
        """Of every batch one gradient; exact: of D two more."""
        (train,) = super().stages(k, rho)
        if self.variant == "fo" or self.inner_lr == 0:
            return (train,)
        return (replace(train, work=Work(train.work.weight_steps, 2 * train.work.flops)),)

    def local_update(self, state: State, k: int, w: Tensor, grant: Grant) -> tuple[Phase, ...]:
        (phase,) = super().local_update(state, k, w, grant)
        return (phase if self.inner_lr == 0 else replace(phase, loss=self.loss),)

    def loss(self, w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """F(w - alpha grad F(w; D); D') of a batch."""
        logits, (first, second) = self.task.architecture.logits, halves(x, y)
        mean = self.task.objective.mean
        return after_a_step(
            w,
            lambda v: mean(logits(v, first[0]), first[1]),
            lambda v: mean(logits(v, second[0]), second[1]),
            self.inner_lr,
            self.variant == "exact",
        )

    # --- what is used ----------------------------------------------------------------------------

    def received(self, state: State, k: int) -> Tensor:
        return state.w

    def personalise(self, state: State, k: int) -> Tensor:
        if self.inner_lr == 0 or self.tuning_epochs == 0:
            return state.w
        from fl.training.local_sgd import run

        steps = self.tuning_epochs * -(-int(self.task.samples[k]) // self.task.batch(k))
        everything = self.task.tensor(self.everything)
        phase = Phase(state.w, everything, steps, self.inner_lr, "tuning", ragged=True)
        return run(self.task, Job(k, state.g, (phase,), (), Payload(0.0, 0.0), 0.0)).w

    def probes(self, state: State) -> dict[str, Tensor]:
        return {"global": state.w}


def after_a_step(w: Tensor, inner: Loss, outer: Loss, alpha: float, exact: bool = False) -> Tensor:
    """outer(w - alpha grad inner(w)), to be differentiated by w: Fallah et al., eqs. (4)-(6).

    Args:
        w: The model [P].
        inner: The loss of the inner step.
        outer: The loss after it.
        alpha: Size of the inner step.
        exact: The derivative is (I - alpha Hessian of inner) times the gradient of outer; otherwise
            the Hessian is left out and it is the gradient of outer at the new place (FO).
    """
    import torch

    (gradient,) = torch.autograd.grad(inner(w), [w], create_graph=exact)
    return outer(w - alpha * gradient)


def halves(x: Tensor, y: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """The samples D of the inner step and D' of the outer one; a single sample is both."""
    half = len(y) // 2
    return (x[: max(1, half)], y[: max(1, half)]), (x[half:], y[half:])
