"""Adaptive pruning by importance, put in front of the last phase of another method: Liu, eqs. (20)-(25)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fl.contracts import Grant, Payload, Phase, Stage, Tensor, Work
from fl.method_base.costs import total_work
from fl.method_base.method import Method, State, param

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Pruning(Method):
    """Mixed into a method (before it in the bases): its shared weights are pruned by the ratio that is granted.

    Before the last phase comes a warm-up of the unpruned shared weights; the largest changes name the weights that are
    kept; the last phase starts from the *received* weights where they are kept and from zero elsewhere.
    """

    warmup_steps: int = param(
        1, "SGD steps before the weights are ranked, tau_hat", source="our choice", ge=1
    )
    rho_max: float = param(
        1.0,
        "largest pruning ratio that may be allocated",
        source="Liu et al., eq. (47)",
        ge=0,
        le=1,
    )
    rho: float | None = param(
        None,
        "fixed pruning ratio; none: the allocator decides",
        source="Liu et al., Algorithm 1",
        ge=0,
        le=1,
    )
    count_warmup: bool = param(
        True,
        "plan with the warm-up's time; false: as Liu, eq. (46), which overruns by it",
        source="Liu et al., eq. (24)",
    )

    @classmethod
    def unread(cls, values: dict) -> dict[str, str]:
        return super().unread(values) | (
            {} if values["rho"] is None else {"rho_max": "rho is fixed"}
        )

    def prunable(self) -> Array:
        """All shared weights, biases included (liu.md, open choice 8)."""
        return self.shared

    def rho_bounds(self) -> tuple[float, float]:
        return (0.0, self.rho_max) if self.rho is None else (self.rho, self.rho)

    def stages(self, k: int, rho: float) -> tuple[Stage, ...]:
        """Liu, eq. (24): the warm-up is not pruned, the last stage is."""
        *before, last = super().stages(k, rho)
        return *before, Stage("warm-up", self.work(k, self.shared, self.warmup_steps)), last

    def payload(self, rho: float) -> Payload:
        """Liu, eq. (25), and the mask itself where it is counted."""
        plain = super().payload(rho)
        return replace(
            plain, bits_up=plain.bits_up + self.task.accounting.mask_bits(self.shared_count, rho)
        )

    def planned(self, k: int, rho: float) -> tuple[Work, float]:
        """With the most that the mask can take, and without the warm-up where it is not counted."""
        counted = [s for s in self.stages(k, rho) if self.count_warmup or s.name != "warm-up"]
        bits = super().payload(rho).bits_up + self.task.accounting.mask_bits_bound(
            self.shared_count
        )
        return total_work(counted), bits

    def local_update(self, state: State, k: int, w: Tensor, grant: Grant) -> tuple[Phase, ...]:
        *before, last = super().local_update(state, k, w, grant)
        warmup = replace(last, mask=self.shared_mask, steps=self.warmup_steps, batches="warm-up")
        return *before, warmup, self._pruned(last, len(before), grant.rho)

    def _pruned(self, last: Phase, before: int, rho: float) -> Phase:
        """The last phase on the weights that the warm-up, result number ``before``, names."""
        from fl.masks import unit_masks as masks

        shared = self.shared_mask
        keep = masks.kept_count(rho, self.shared_count)

        def start(done: list[Tensor]) -> Tensor:
            return value_of(last.start, done[:before])

        @once
        def kept(done: list[Tensor]) -> Tensor:
            score = masks.importance(start(done), done[before])
            return masks.largest(score, shared, keep) | ~shared

        return replace(
            last,
            start=lambda done: start(done).where(kept(done), 0.0),
            mask=lambda done: value_of(last.mask, done[:before]) & kept(done),
        )


def value_of(tensor: Any, done: list[Tensor]) -> Tensor:
    """A start or mask of a phase, given the results of the phases before."""
    return tensor(done) if callable(tensor) else tensor


def once(function: Callable[[list[Tensor]], Tensor]) -> Callable[[list[Tensor]], Tensor]:
    """Remembers the last value as long as the phases before are the same tensors: the ranking is the slow part."""
    memory: list[tuple[tuple[int, ...], Tensor]] = []

    def remembered(done: list[Tensor]) -> Tensor:
        key = tuple(id(one) for one in done)
        if not memory or memory[0][0] != key:
            memory[:] = [(key, function(done))]
        return memory[0][1]

    return remembered
