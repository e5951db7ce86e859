"""PruneFL: one sparse model for all, whose mask follows the gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fl.accounting import slot_flops, submodel_cost
from fl.contracts import Array, Payload, Phase, Stage, Tensor, Update, View
from fl.errors import MethodError
from fl.method_base.affine_demand import upload_bits
from fl.method_base.aggregation import mean_over_holders
from fl.method_base.method import PRUNING, State, param
from fl.methods._submodel_method import SubmodelMethod
from fl.methods.fedavg import unless_plain_sgd

JIANG = "Jiang et al., TNNLS 2022"


@dataclass(frozen=True, eq=False)
class PruneFL(SubmodelMethod):
    """All devices train under one mask, which the server chooses anew from their gradients.

    Jiang, Wang, Valls, Ko, Lee, Leung, Tassiulas, "Model Pruning Enables Efficient Federated
    Learning on Edge Devices", TNNLS 2022. Every ``reconfigure_every`` rounds devices also send the
    square of the sum of their gradients, for pruned weights too. Candidates are the pruned weights
    and the smallest of the kept ones; of them those are kept that make Gamma = (sum of g^2) /
    (time of a round) largest. A weight that comes back has the value that the server kept for it.
    State.w has all weights, the memo the mask, the notes the round from which on it holds.
    What travels: the kept weights, down and up; after a change the mask; at a reconfiguration one
    number more for every weight, up.

    Departs from the paper:
        The first mask is full, and all devices train with it, unless ``rounds_alone`` lets one
        device prune alone first. The authors end that stage when the mask hardly shrinks any more,
        and sum the squares of its batches.
        The time of a weight follows from its FLOPs and bits, the mean processor and rate that the
        server sees, and ``flops_per_cycle``; the authors measured it on a Raspberry Pi.
        A reconfiguration charges the backward pass of the whole model.
        The places of a new mask are charged to the devices of the round after it alone; who is
        asked later is taken to know them.
        The mean is uniform as in Liu, eq. (11); ``weighting: samples`` is the authors'. Squares of
        the sums of gradients are weighted as the mean is.
    """

    source: ClassVar[str] = f"{JIANG}, Algorithm 1, and released program"
    stale: ClassVar[str] = "refuse"
    reads: ClassVar[tuple[str, ...]] = PRUNING
    reconfigure_every: int = param(50, "rounds from mask to mask", source=JIANG, ge=1)
    rounds_alone: int = param(
        0,
        "rounds at first in which one device trains alone, each with a new mask",
        source="our choice; FedLPS program: 10",
        ge=0,
    )
    candidate_share: float = param(
        0.3, "share of the kept weights that may be pruned at first", source=JIANG, gt=0, le=1
    )
    candidate_halving: int = param(
        10_000, "rounds in which that share halves", source="released program", ge=1
    )
    fixed_s: float = param(
        0.0, "time of a round that does not depend on the mask, c, s", source="our choice", ge=0
    )
    flops_per_cycle: float = param(
        1.0, "FLOP per cycle with which the server estimates times", source="our choice", gt=0
    )

    @classmethod
    def conflict(cls, values: dict[str, Any]) -> MethodError | None:
        return unless_plain_sgd(values, "sums of gradients") or super().conflict(values)

    def select(self, state: State, view: View) -> Array:
        """At first one device, the idle one with the lowest number."""
        return view.idle[:1] if view.g < self.rounds_alone else super().select(state, view)

    def leaves_choice_open(self) -> bool:
        return self.rounds_alone == 0 and type(self).select is PruneFL.select

    # --- the mask --------------------------------------------------------------------------------

    def kept(self, state: State | None, view: View, k: int) -> Array:
        return self.everything if state is None else self.mask_of(state)

    def mask_of(self, state: State) -> Array:
        """The mask of all devices, bool [P]."""
        mask = state.memo.get("mask")
        return self.everything if mask is None else mask.cpu().numpy()

    def due(self, g: int) -> bool:
        """Is the mask chosen anew at the end of round g?"""
        return g < self.rounds_alone or (g + 1) % self.reconfigure_every == 0

    def share_of_candidates(self, g: int) -> float:
        """0.3 x 0.5^(g / 10000)."""
        return self.candidate_share * 0.5 ** (g / self.candidate_halving)

    # --- what it costs ---------------------------------------------------------------------------

    def costs(
        self, state: State | None, view: View, k: int, kept: Array
    ) -> tuple[tuple[Stage, ...], Payload]:
        """In a round with a reconfiguration also the dense gradient, and its squares."""
        accounting, payload = self.task.accounting, self.submodel_payload(kept)
        bits_up, bits_down = upload_bits(payload), payload.bits_down
        if state is not None and state.notes.get("mask_since") == view.g:
            places = self.weight_places
            pruned = 1.0 - float(kept[places].mean())
            bits_down += accounting.mask_bits(int(places.sum()), pruned)
        if not self.due(view.g):
            return self.kept_stages(k, kept), Payload(bits_down, bits_up)
        cost = submodel_cost(self.task.architecture, kept, accounting, backward=self.everything)
        work = accounting.work(cost, self.steps(k), self.samples_per_step(k))
        bits_up += accounting.weight_bits(self.layout.size)
        return (Stage("train", work),), Payload(bits_down, bits_up)

    # --- how a device trains ---------------------------------------------------------------------

    def phases(self, state: State, view: View, k: int, w: Tensor, kept: Array) -> tuple[Phase, ...]:
        mask = self.task.tensor(kept)
        if kept.all() or not self.due(view.g):
            return super().phases(state, view, k, w, kept)
        # The weights compute under the mask, and all get the gradient: what one that is left out
        # moves by is minus lr times the sum of its gradients.
        masked = mask.to(w.dtype)

        def effective(v: Tensor, rng: np.random.Generator) -> Tensor:
            return v + (v * masked - v).detach()

        return (self.training(w, self._all, view.g, k, effective=effective),)

    # --- what becomes of it, and what is used ----------------------------------------------------

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """The mean of what is kept; at a reconfiguration the next mask."""
        if not updates:
            return super().aggregate(state, view, updates)
        before = self.mask_of(state)
        mask = self.task.tensor(before)
        sent, weights = self.arrived(view, updates)
        sent = [replace(one, travels=one.travels & mask) for one in sent]
        after = replace(state, g=state.g + 1, w=mean_over_holders(state.w, sent, weights))
        if not self.due(view.g):
            return after
        each = [
            w * self._summed_gradient(one) ** 2 for one, w in zip(updates, weights, strict=True)
        ]
        squares = np.sum(each, axis=0)
        times = self.times(view, [one.job.device for one in updates])
        chosen = self.reconfigured(before, after.w.cpu().numpy(), squares, times, view.g)
        if np.array_equal(chosen, before):
            return after
        notes = state.notes | {"mask_since": state.g + 1}
        memo = state.memo | {"mask": self.task.tensor(chosen)}
        return replace(after, memo=memo, notes=notes)

    @staticmethod
    def _summed_gradient(update: Update) -> Array:
        """Sum of the gradients of a device's steps [P]."""
        (phase,) = update.job.phases
        return ((phase.start - update.result().w).double() / phase.lr).cpu().numpy()

    def times(self, view: View, devices: Sequence[int]) -> Array:
        """Seconds that each weight adds to a round of these devices [P]: its FLOPs and bits."""
        task, each = self.task, np.asarray(devices)
        samples = np.mean([self.steps(k) * self.samples_per_step(k) for k in devices])
        flops_per_s = float(view.cpu_hz[each].mean()) * self.flops_per_cycle
        rate_bps = float(view.rate_bps[each].mean()) / len(each)
        seconds = np.full(self.layout.size, 2.0 * task.accounting.weight_bits(1) / rate_bps)
        for slot, forward, backward in slot_flops(
            task.architecture, self.everything, task.accounting
        ):
            seconds[slot.slice] += samples * (forward + backward) / flops_per_s
        return seconds

    def reconfigured(self, mask: Array, w: Array, squares: Array, times: Array, g: int) -> Array:
        """The next mask bool [P].

        Args:
            mask: The mask before, bool [P].
            w: The server's weights [P].
            squares: g^2, of every weight [P].
            times: t, what every weight adds to a round, s [P].
            g: Round.
        """
        places = np.flatnonzero(self.weight_places & mask)
        order = places[np.argsort(np.abs(w[places]), kind="stable")]
        small = order[: round(self.share_of_candidates(g) * len(order))]
        candidate = self.weight_places & ~mask
        candidate[small] = True
        stays = ~candidate
        numbers = np.flatnonzero(candidate)
        added = largest_ratio(
            squares[numbers],
            times[numbers],
            float(squares[stays].sum()),
            self.fixed_s + float(times[stays].sum()),
        )
        stays[numbers[added]] = True
        return stays

    def recovered(self, saved: State, now: State) -> State:
        """The mask that the server has stored is sent again where devices know a later one."""
        after = super().recovered(saved, now)
        if np.array_equal(self.mask_of(saved), self.mask_of(now)):
            return after
        return replace(after, notes=after.notes | {"mask_since": now.g})

    def personalise(self, state: State, k: int) -> Tensor:
        mask = state.memo.get("mask")
        return state.w if mask is None else state.w.where(mask, 0.0)

    def probes(self, state: State) -> dict[str, Tensor]:
        return {"dense": state.w}

    def measures(self, state: State) -> dict[str, float]:
        """Share of the weights that the mask keeps."""
        mask = state.memo.get("mask")
        share = 1.0 if mask is None else float(mask.cpu().numpy()[self.weight_places].mean())
        return {"kept_weights": share}


def largest_ratio(gains: Array, times: Array, gain: float, time: float) -> Array:
    """The candidates that make (gain + their gains) / (time + their times) largest.

    In falling order of gain per time each is taken while that exceeds the ratio so far, which is
    the exact maximum over all subsets (Jiang et al., Section IV).

    Args:
        gains: Of the candidates, not negative [N].
        times: Of the candidates, positive [N].
        gain: Of what stays in any case.
        time: Of what stays in any case.

    Returns:
        Numbers of those taken, int, in the order in which they are.
    """
    each = gains / times
    order = np.argsort(-each, kind="stable")
    sums = gain + np.concatenate([[0.0], np.cumsum(gains[order])[:-1]])
    spans = time + np.concatenate([[0.0], np.cumsum(times[order])[:-1]])
    # Without anything that stays the ratio so far is 0 / 0: it counts as 0.
    so_far = np.divide(sums, spans, out=np.zeros_like(sums), where=spans > 0)
    worse = each[order] <= so_far
    return order[: int(worse.argmax()) if worse.any() else len(order)]
