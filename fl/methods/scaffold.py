"""SCAFFOLD: control variates against the drift of the devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from fl.contracts import Grant, Job, Payload, Phase, Tensor, Update, View
from fl.errors import MethodError
from fl.method_base.affine_demand import upload_bits
from fl.method_base.method import MAX_RATE, State, param
from fl.method_base.stale_updates import device_change
from fl.methods.fedavg import FedAvg, unless_plain_sgd


@dataclass(frozen=True, eq=False)
class Scaffold(FedAvg):
    """FedAvg whose devices correct their steps by control variates: y <- y - lr (grad - c_k + c).

    Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning", ICML
    2020, option II: after K steps from x to y, c_k <- c_k - c + (x - y) / (K lr); the server moves
    by server_lr times the mean of y - x, and c by the sum of the changes of c_k over all devices,
    asked or not. State.local is device -> c_k [P]; c stands in State.memo.
    What travels: the model and the control variate, down and up: twice the bits of FedAvg.

    Departs from the paper:
        A device that was late keeps its new c_k, though c has not heard of the change.
        Of an update that is used late the model takes the damped change of the weights, and c the
        whole change of c_k, measured from the model downloaded: the device keeps the whole one too.
        One that is too stale for the model still changes c.
        The operations of the correction are not charged.
        Devices weigh alike in c whatever ``weighting`` says, as in the paper.
    """

    source: ClassVar[str] = "Karimireddy et al., ICML 2020, Algorithm 1"
    stale: ClassVar[str] = "damp"
    server_lr: float = param(
        1.0, "step size of the server", source="Karimireddy et al.: 1", gt=0, le=MAX_RATE
    )

    @classmethod
    def conflict(cls, values: dict[str, Any]) -> MethodError | None:
        return unless_plain_sgd(values, "control variates") or super().conflict(values)

    def payload(self, rho: float) -> Payload:
        model = super().payload(rho)
        return Payload(2 * model.bits_down, 2 * upload_bits(model))

    # --- how a device trains ---------------------------------------------------------------------

    def local_update(self, state: State, k: int, w: Tensor, grant: Grant) -> tuple[Phase, ...]:
        if k not in state.local and "control" not in state.memo:
            return super().local_update(state, k, w, grant)
        correction = self._control(state) - state.local.get(k, 0.0)

        def penalty(v: Tensor) -> Tensor:
            return correction @ v

        return (self.training(w, self._all, state.g, k, penalty=penalty),)

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        """The order for one device, which remembers the c that it received."""
        return replace(super().configure(state, view, grant), note=self._control(state))

    def retain(self, state: State, updates: Sequence[Update]) -> State:
        """The new c_k of everybody who trained."""
        changes = {one.job.device: control_change(one) for one in updates}
        new = {k: state.local.get(k, 0.0) + change for k, change in changes.items()}
        return replace(state, local=state.local | new)

    # --- what becomes of it, and what is used ----------------------------------------------------

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        after = super().aggregate(state, view, updates)
        if not updates:
            return after
        w = after.w
        if self.server_lr != 1:
            w = state.w + self.server_lr * (w - state.w)
        return self.discard(replace(after, w=w), view, updates)

    def discard(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """The server's c takes the changes of c_k, also of those whose weights it does not."""
        control = self._control(state)
        for one in updates:
            control = control + control_change(one) / self.task.devices
        return replace(state, memo=state.memo | {"control": control})

    def personalise(self, state: State, k: int) -> Tensor:
        return state.w

    def _control(self, state: State) -> Tensor:
        """The server's c [P]."""
        return state.memo.get("control", state.w.new_zeros(len(state.w)))


def control_change(update: Update) -> Tensor:
    """c_k's change [P]: -c + (x - y) / (K lr), in which c_k itself does not appear.

    Args:
        update: From a job with the server's c [P] as its note.
    """
    (phase,) = update.job.phases
    return -device_change(update) / (phase.steps * phase.lr) - update.job.note
