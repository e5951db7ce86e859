"""FedNova: a mean that does not favour the devices which make more steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from fl.contracts import Payload, Tensor, Update, View
from fl.errors import MethodError
from fl.method_base.affine_demand import upload_bits
from fl.method_base.method import MAX_RATE, State, param
from fl.method_base.stale_updates import MovedUpdate, as_it_came
from fl.methods.fedavg import weighting_by_samples
from fl.methods.fedprox import FedProx


@dataclass(frozen=True, eq=False)
class FedNova(FedProx):
    """FedAvg whose server divides each device's change by how far its steps could carry it.

    Wang et al., "Tackling the Objective Inconsistency Problem in Heterogeneous Federated
    Optimization", NeurIPS 2020. With y_k after tau_k steps from x and p_k the weights of the mean,
    w <- x + tau_eff sum_k p_k (y_k - x) / |a_k|, tau_eff = sum_k p_k |a_k|. Here |a_k| is tau_k for
    plain SGD, the sum of c <- momentum c + 1 with momentum, and (1 - (1 - lr mu)^tau_k) / (lr mu)
    with the proximal term mu / 2 |y - x|^2, where tau_eff is sum_k p_k tau_k.
    What travels: all weights, down and up, and up one number |a_k|.

    Departs from the paper:
        Devices differ in their steps through ``local_epochs`` and their numbers of samples.
        mu and momentum exclude each other; the authors' program adds their recursions.
        Of an update that is used late the device's own change is normalised; the distance of its
        model from that of now, where changes are measured from there, is not.
        Weight decay does not enter |a_k|, nor does clipping. The proximal term's own operations are
        not charged.
    """

    source: ClassVar[str] = "Wang et al., NeurIPS 2020, eqs. (9)-(11)"
    stale: ClassVar[str] = "damp"
    partial_work: ClassVar[bool] = True
    weighting: str = weighting_by_samples("Wang et al.")
    mu: float = param(
        0.0, "weight of the proximal term", source="Wang et al.: 0", ge=0, le=MAX_RATE
    )

    @classmethod
    def conflict(cls, values: dict[str, Any]) -> MethodError | None:
        if values["mu"] and values["momentum"]:
            return MethodError("mu", f"is {values['mu']}, but with momentum it is not defined")
        if values["lr"] * values["mu"] > 1:
            problem = f"is {values['mu']}, but |a_k| is defined for lr mu up to 1; lr is "
            return MethodError("mu", f"{problem}{values['lr']}")
        return super().conflict(values)

    def payload(self, rho: float) -> Payload:
        model = super().payload(rho)
        return replace(model, bits_up=upload_bits(model) + self.task.accounting.weight_bits(1))

    def reach(self, steps: int, lr: float) -> float:
        """|a_k|: how far so many steps carry under a constant gradient, in units of lr times it."""
        counter = total = 0.0
        for _ in range(steps):
            counter = self.momentum * counter + 1.0
            total = (1.0 - lr * self.mu) * total + counter
        return total

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        if not updates:
            return replace(state, g=state.g + 1)
        phases = [one.job.phases[-1] for one in updates]
        reach = [self.reach(phase.steps, phase.lr) for phase in phases]
        weight = [self.weight_of(view, one.job.device) for one in updates]
        far = [phase.steps for phase in phases] if self.mu else reach
        scale = sum(p * a for p, a in zip(weight, far, strict=True)) / sum(weight) ** 2
        old = state.w.double()
        moved = old.new_zeros(len(old))
        for one, p, a in zip(updates, weight, reach, strict=True):
            base, left = (one.base, one.weight) if isinstance(one, MovedUpdate) else (state.w, 1.0)
            start: Tensor = one.job.phases[0].start
            own = as_it_came(one).result().w.double() - start  # its steps, no offset
            moved += own * (left * scale * p / a)
            if start is not base:
                moved += (start.double() - base) * (left * p / sum(weight))
        return replace(state, g=state.g + 1, w=(old + moved).to(state.w.dtype))
