"""SpaFL: sparse personal models, where only thresholds travel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from fl.contracts import Array, Grant, Job, Payload, Sent, Tensor, Trained, Update, View
from fl.method_base.method import State, param
from fl.methods.local import PAPER, Local


@dataclass(frozen=True, eq=False)
class SpaFL(Local):
    """Sparse personal models: every device keeps its weights, and only thresholds travel.

    Kim, Saad, Debbah, Hong, "SpaFL: Communication-Efficient Federated Learning with Sparse Models
    and Low Computational Overhead", NeurIPS 2024. Algorithm 1: the thresholds of filters and
    neurons are received; the last change of the global ones moves the device's own weights, eq.
    (13); weights and thresholds are trained together (`Local`); the server takes the plain mean of
    the thresholds, eq. (7).
    What travels: thresholds, up once, down twice (those of the round before give their change).

    Departs from the paper (see docs/papers/spafl.md):
        (13) with the sign of its derivation: rows of rising thresholds shrink. The printed one
        contradicts its text.
        The paper does not pay for the change in (13): ``delta: broadcast`` counts as it does, and
        means that everybody listens to every broadcast; ``since_last`` lets a device remember what
        it received when it last took part.
        The mean is over those that arrived; if nobody does, the thresholds stay and their change is
        0.
        The initial random weights of a device cost nothing: they follow from a seed.
        With less than 24 ``threshold_bits`` thresholds really are rounded, to equal steps of
        [0, 1].
    """

    source: ClassVar[str] = f"{PAPER}, Algorithm 1"
    stale: ClassVar[str] = "damp"
    importance_update: bool = param(
        True,
        "own weights follow the last change of the global thresholds",
        source=f"{PAPER}, eq. (13), Table 3",
    )
    importance_divisor: str = param(
        "n_in",
        "by what (13) divides a filter: all of its weights, or its kernel area",
        source=f"{PAPER}, eq. (13); released code: kernel_area",
        choices=("n_in", "kernel_area"),
    )
    delta: str = param(
        "sent",
        "how a device knows the change in (13): it is sent, it knows what it received last, it "
        "hears every round",
        source="our choice: the paper sends it free of charge",
        choices=("sent", "since_last", "broadcast"),
    )
    threshold_bits: int = param(
        32, "bits of a sent threshold", source=f"{PAPER}, eqs. (48), (49)", ge=1, le=32
    )

    @classmethod
    def unread(cls, values: dict[str, Any]) -> dict[str, str]:
        found = super().unread(values)
        found.pop("weighting")
        if values["frozen_weights"]:
            idle = ("importance_update", "importance_divisor", "delta")
            found |= dict.fromkeys(idle, "frozen_weights is true")
        elif not values["importance_update"]:
            found |= dict.fromkeys(("importance_divisor", "delta"), "importance_update is false")
        return found

    def personal(self) -> Array:
        return self.layout.where(lambda slot: slot.kind != "threshold")

    @property
    def moves(self) -> bool:
        """Do own weights follow the thresholds, eq. (13)?"""
        return self.importance_update and not self.frozen_weights

    def payload(self, rho: float) -> Payload:
        """(48), (49); and the change in (13), where it is sent."""
        once = float(self.shared_count * self.threshold_bits)
        return Payload(
            bits_down=2 * once if self.moves and self.delta == "sent" else once, bits_up=once
        )

    def no_tier_models(self) -> str | None:
        if not self.moves or self.delta == "since_last":
            return None
        return "whose (13) reads the last change of all thresholds; write delta: since_last"

    # --- what a device starts from ---------------------------------------------------------------

    def received(self, state: State, k: int) -> Tensor:
        """Own weights, moved by (13), and the server's thresholds."""
        own, change = self.own(state, k), self._change(state, k)
        if change is None:
            w = own.clone()
        else:
            w = self.rows.nudged(own, change, self.importance_divisor)
        self.rows.thresholds(w).copy_(self._handed_out(state))
        return w

    def _handed_out(self, state: State) -> Tensor:
        """The server's thresholds [T] as they travel: a mean over edges or tiers is not rounded."""
        return self._on_steps(self.rows.thresholds(state.w))

    def _change(self, state: State, k: int) -> Tensor | None:
        """The change of the global thresholds that device k knows of [T]; None: no change."""
        if self.moves and self.delta == "since_last" and "seen" in state.memo:
            return self._handed_out(state) - state.memo["seen"][k]
        return state.memo.get("change")

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        """The order for one device, which remembers the thresholds [T] that it received."""
        job = super().configure(state, view, grant)
        return replace(job, note=self._handed_out(state))

    # --- what the server makes of it -------------------------------------------------------------

    def encode(self, job: Job, trained: Trained) -> Sent:
        sent = super().encode(job, trained)
        return replace(sent, values=self._rounded(sent.values))

    def retain(self, state: State, updates: Sequence[Update]) -> State:
        """As ever; and which thresholds a device received when it last trained, [K, T]."""
        after = super().retain(state, updates)
        if not self.moves or self.delta != "since_last":
            return after
        tau = self.rows.thresholds(state.w)
        unseen = tau.new_zeros(self.task.devices, len(tau))
        seen = state.memo.get("seen", unseen).clone()
        for update in updates:
            seen[update.job.device] = update.job.note
        return replace(after, memo=after.memo | {"seen": seen})

    def recovered(self, saved: State, now: State) -> State:
        """A device knows which thresholds it received last, whatever the server has stored."""
        after = super().recovered(saved, now)
        known = {name: value for name, value in now.memo.items() if name == "seen"}
        return replace(after, memo=after.memo | known)

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """The mean of the thresholds (7), and how they changed."""
        after = super().aggregate(state, view, updates)
        after = replace(after, w=self._rounded(after.w))
        if not self.moves or self.delta == "since_last":
            return after
        change = self.rows.thresholds(after.w) - self.rows.thresholds(state.w)
        return replace(after, memo=after.memo | {"change": change})

    def _rounded(self, w: Tensor) -> Tensor:
        """w with thresholds of so many bits; 24 and more hold what a float32 in [0, 1] does."""
        if self.threshold_bits >= 24:
            return w
        w = w.clone()
        tau = self.rows.thresholds(w)
        tau.copy_(self._on_steps(tau))
        return w

    def _on_steps(self, tau: Tensor) -> Tensor:
        """Thresholds [T] rounded to so many bits, as `_rounded` has them."""
        if self.threshold_bits >= 24:
            return tau
        steps = 2**self.threshold_bits - 1
        return tau.mul(steps).round_().div_(steps)
