"""FedDyn: a dynamic regulariser that brings the devices' optima together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from fl.contracts import Grant, Phase, Tensor, Update, View
from fl.method_base.method import MAX_RATE, State, param
from fl.method_base.stale_updates import device_change, undamped
from fl.methods._dynamic_regularizer import feddyn_drift, feddyn_penalty
from fl.methods.fedavg import FedAvg


@dataclass(frozen=True, eq=False)
class FedDyn(FedAvg):
    """FedAvg with a regulariser for which the optima of the devices agree with that of all.

    Acar et al., "Federated Learning Based on Dynamic Regularization", ICLR 2021. A device minimises
    F_k(y) - <lam_k, y> + alpha / 2 |y - x|^2 from x and takes lam_k <- lam_k - alpha (y - x); the
    server takes h <- h - alpha / K sum (y - x) over those that arrived, and w = mean of y -
    h / alpha. State.local is device -> lam_k [P]; h / alpha stands in State.memo.
    What travels: all weights, down and up.

    Departs from the paper:
        alpha is the same for all devices; the authors' program divides it by a device's weight.
        Devices are tested with w; the authors report the mean of y too.
        With ``weighting: samples`` the mean of y is weighted, and h is not.
        A device that was late keeps its new lam_k, though h has not heard of it.
        Of an update that is used late the model takes the damped change, and h the whole one,
        measured from the model downloaded: lam_k takes the whole one too. One that is too stale
        for the model still changes h.
        The terms' own operations are not charged. ``alpha: 0`` is FedAvg.
    """

    source: ClassVar[str] = "Acar et al., ICLR 2021, Algorithm 1"
    stale: ClassVar[str] = "damp"
    alpha: float = param(
        0.01, "weight of the regulariser", source="Acar et al.: 0.1 to 0.01", ge=0, le=MAX_RATE
    )

    def local_update(self, state: State, k: int, w: Tensor, grant: Grant) -> tuple[Phase, ...]:
        if self.alpha == 0:
            return super().local_update(state, k, w, grant)
        linear = state.local.get(k, w.new_zeros(len(w)))

        def penalty(v: Tensor) -> Tensor:
            return feddyn_penalty(v, w, linear, self.alpha)

        return (self.training(w, self._all, state.g, k, penalty=penalty),)

    def retain(self, state: State, updates: Sequence[Update]) -> State:
        """The new lam_k of everybody who trained."""
        if self.alpha == 0:
            return state
        new = {
            one.job.device: state.local.get(one.job.device, 0.0) - self.alpha * device_change(one)
            for one in updates
        }
        return replace(state, local=state.local | new)

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        after = super().aggregate(state, view, updates)
        if self.alpha == 0 or not updates:
            return after
        heard = self.discard(state, view, updates).memo
        return replace(after, w=after.w - heard["drift"], memo=heard)

    def discard(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """h takes the changes of lam_k, also of those whose weights the model does not."""
        if self.alpha == 0:
            return state
        drift = state.memo.get("drift", state.w.new_zeros(len(state.w)))
        whole = [undamped(one, state.w, self.shared_mask) for one in updates]
        drift = feddyn_drift(drift, state.w, self.arrived(view, whole)[0], self.task.devices)
        return replace(state, memo=state.memo | {"drift": drift})

    def personalise(self, state: State, k: int) -> Tensor:
        return state.w
