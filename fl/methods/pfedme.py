"""pFedMe: personal models by Moreau envelopes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from fl.contracts import Grant, Job, Phase, Sent, Stage, Tensor, Trained, Update, View
from fl.method_base.method import MAX_RATE, State, param
from fl.methods._personal_copy import PersonalCopyMethod

DINH = "T. Dinh et al., NeurIPS 2020"


@dataclass(frozen=True, eq=False)
class PFedMe(PersonalCopyMethod):
    """A device works with theta_k, the minimiser of F_k(theta) + lam / 2 |theta - w|^2.

    T. Dinh, Tran, Nguyen, "Personalized Federated Learning with Moreau Envelopes", NeurIPS 2020.
    In each of ``local_steps`` local rounds a device takes ``inner_steps`` steps of theta on one
    mini-batch, and then w_k <- w_k - lr lam (w_k - theta). The server moves w by ``server_mix`` of
    the way to the mean of w_k. The model is [w, theta_k].
    What travels: w, down and up. theta_k stays, also when the upload was late.

    Departs from the paper:
        Only the devices that are asked train; in the authors' program all do, every round.
        theta begins a round at the received w and goes on from local round to local round, as in
        the authors' program. A device that was never asked uses w.
        With ``momentum`` the optimiser of theta starts anew in every local round.
        The operations of the terms in lam are not charged.
    """

    source: ClassVar[str] = f"{DINH}, Algorithm 1"
    stale: ClassVar[str] = "damp"
    cost_by_samples: ClassVar[bool] = True
    local_steps: int = param(20, "local rounds of a device per round, R", source=DINH, ge=1)
    lr: float = param(
        0.005, "step size of w_k in a local round, eta", source=DINH, gt=0, le=MAX_RATE
    )
    inner_steps: int = param(
        5, "SGD steps of theta on each mini-batch, K", source=DINH, ge=1, le=1000
    )
    personal_lr: float = param(
        0.09, "step size of theta", source="released program", gt=0, le=MAX_RATE
    )
    lam: float = param(15.0, "weight of the distance to w_k", source=DINH, gt=0, le=MAX_RATE)
    server_mix: float = param(
        1.0, "share of the way to the mean that the server goes, beta", source=DINH, gt=0, le=10
    )

    # --- what it costs, and how a device trains --------------------------------------------------

    def stages(self, k: int, rho: float) -> tuple[Stage, ...]:
        steps, batch = self.inner_steps * self.steps(k), self.samples_per_step(k)
        return (Stage("train", self.work(k, self.whole_step, steps, rho, batch)),)

    def local_update(self, state: State, k: int, w: Tensor, grant: Grant) -> tuple[Phase, ...]:
        size = self.task.layout.size

        def penalty(v: Tensor) -> Tensor:
            return 0.5 * self.lam * (v[size:] - v[:size].detach()).square().sum()

        phase = self.training(
            w,
            ~self.shared_mask,
            state.g,
            k,
            steps=self.inner_steps,
            hold=self.inner_steps,
            lr=self.personal_lr * self.lr_decay**state.g,
            effective=lambda v, rng: v[size:],
            penalty=penalty,
        )
        moved = self._moved(state.g)
        following = (
            replace(phase, start=lambda done: moved(done[-1]), first=r)
            for r in range(1, self.steps(k))
        )
        return phase, *following

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        moved = self._moved(state.g)
        return replace(super().configure(state, view, grant), finish=lambda done: moved(done[-1]))

    def _moved(self, g: int) -> Callable[[Tensor], Tensor]:
        """[w, theta] -> [w - lr lam (w - theta), theta], the end of a local round."""
        size, rate = self.task.layout.size, self.rate(g) * self.lam

        def moved(both: Tensor) -> Tensor:
            both = both.clone()
            both[:size] -= rate * (both[:size] - both[size:])
            return both

        return moved

    # --- what returns, and what is used ----------------------------------------------------------

    def encode(self, job: Job, trained: Trained) -> Sent:
        return Sent(trained.w, self.shared_mask)

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        after = super().aggregate(state, view, updates)
        if self.server_mix == 1:
            return after
        return replace(after, w=state.w + self.server_mix * (after.w - state.w))

    def received(self, state: State, k: int) -> Tensor:
        """[w, w]."""
        return state.w[: self.task.layout.size].repeat(2)
