"""Adaptive pruning by importance before the last phase of a method: Liu, eqs. (19) to (25)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar

from fl.accounting import forward_flops
from fl.contracts import (
    Array,
    Grant,
    Payload,
    Phase,
    Sent,
    Sgd,
    Stage,
    Tensor,
    Update,
    View,
    Work,
    value_of,
)
from fl.errors import MethodError
from fl.method_base.affine_demand import total_work, upload_bits
from fl.method_base.aggregation import mean_of_differences, mean_over_holders
from fl.method_base.method import Method, State, padded, param

MOST_EXACT = 50_000  # prunable weights whose exact importance may be asked for


@dataclass(frozen=True, eq=False)
class ImportancePruning(Method):
    """Mixed into a method (before it in the bases): prunes its shared weights by the granted ratio.

    Before the last phase comes a warm-up of the unpruned shared weights; its largest changes name
    the weights that are kept; the last phase starts from the *received* weights where they are kept
    and from zero elsewhere. With ``importance: exact`` the batches of the warm-up rank the weights
    by the change of the loss without each of them instead.
    """

    cost_by_samples: ClassVar[bool] = True
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

    pruned_counts: str = param(
        "holders",
        "mean of a weight over the devices that kept it, or over all, where who pruned it counts "
        "as not having moved it, or with zeros as having it at 0",
        source="Liu et al., eq. (26)",
        choices=("holders", "all", "zeros"),
    )

    importance: str = param(
        "warm-up",
        "rank weights by their change in a warm-up (20), or by the change of the loss without each "
        "(19), a forward pass per weight",
        source="Liu et al., eqs. (19), (20)",
        choices=("warm-up", "exact"),
    )

    def __post_init__(self) -> None:
        if self.importance == "exact" and self.shared_count > MOST_EXACT:
            raise MethodError(
                "importance",
                f"is exact, which takes a forward pass for each of {self.shared_count:,} prunable "
                f"weights, and may be asked for {MOST_EXACT:,} at most; use warm-up, or a "
                "smaller model",
            )
        if self.importance == "exact" and not self.task.architecture.in_layers:
            raise MethodError(
                "importance",
                "is exact, which needs a model of this package; use warm-up with a module of "
                "your own",
            )

    @classmethod
    def unread(cls, values: dict[str, Any]) -> dict[str, str]:
        fixed = {} if values["rho"] is None else {"rho_max": "rho is fixed"}
        return super().unread(values) | fixed

    def prunable(self) -> Array:
        """All shared weights, biases included: the paper does not say (docs/papers/liu.md)."""
        return self.shared

    def rho_bounds(self) -> tuple[float, float]:
        return (0.0, self.rho_max) if self.rho is None else (self.rho, self.rho)

    def stages(self, k: int, rho: float) -> tuple[Stage, ...]:
        """Liu, eq. (24): the warm-up is not pruned, the last stage is."""
        # The method that this is mixed into has them.
        *before, last = super().stages(k, rho)  # type: ignore[safe-super]
        work = self.work(k, self.shared_step, self.warmup_steps * self.steps_per_ranking)
        return *before, Stage("warm-up", work), last

    @cached_property
    def steps_per_ranking(self) -> float:
        """Training steps on the shared weights that cost as much as ranking by one batch.

        By (19) it takes N_u + 1 forward passes, each as many steps as its share of their FLOPs.
        """
        if self.importance == "warm-up":
            return 1
        each = forward_flops(self.task.architecture, self.task.accounting) / self.shared_step.flops
        return (self.shared_count + 1) * each

    def payload(self, rho: float) -> Payload:
        """Liu, eq. (25), and the mask itself where it is counted."""
        plain, mask = super().payload(rho), self.task.accounting.mask_bits(self.shared_count, rho)
        return replace(plain, bits_up=upload_bits(plain) + mask)

    def planned(self, k: int, rho: float) -> tuple[Work, float]:
        """With the most that the mask can take, and without the warm-up where it is not counted."""
        counted = [s for s in self.stages(k, rho) if self.count_warmup or s.name != "warm-up"]
        most = self.task.accounting.mask_bits_bound(self.shared_count)
        return total_work(counted), upload_bits(super().payload(rho)) + most

    def local_update(self, state: State, k: int, w: Tensor, grant: Grant) -> tuple[Phase, ...]:
        # The method that this is mixed into has it.
        *before, last = super().local_update(state, k, w, grant)  # type: ignore[safe-super]
        warmup = replace(last, mask=self.shared_mask, steps=self.warmup_steps, batches="warm-up")
        if self.importance == "exact":
            warmup = self._measured(warmup)
        return *before, warmup, self._pruned(last, len(before), grant.rho)

    def _measured(self, warmup: Phase) -> Phase:
        """The phase whose result is [u, F(u | u_j = 0) - F(u)], the mean over its batches.

        The weights stay; N_u coordinates behind them start at 0 and have those differences, with
        the other sign, as the gradient of the phase's loss, and 1 / steps as step size.
        """
        from fl.masks.exact_importance import loss_changes

        size, shared, count = self.layout.size, self.shared_mask, self.shared_count

        def start(done: list[Tensor]) -> Tensor:
            return padded(value_of(warmup.start, done), count)

        def loss(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
            model, mean = self.task.architecture, self.task.objective.mean
            return -(w[size:] * loss_changes(model, w[:size].detach(), shared, x, y, mean)).sum()

        behind = padded(~shared & shared, count)
        behind[size:] = True
        step = 1.0 / self.warmup_steps
        return replace(warmup, start=start, mask=behind, lr=step, loss=loss, optimiser=Sgd())

    def _pruned(self, last: Phase, before: int, rho: float) -> Phase:
        """The last phase on the weights that the warm-up, result number ``before``, names."""
        from fl.masks import unit_masks as masks

        shared = self.shared_mask
        count = masks.kept_count(rho, self.shared_count)

        # Start and mask of the phase both ask for the ranking, which is the slow part.
        @lru_cache(maxsize=1)
        def kept(received: Tensor, warmed: Tensor) -> Tensor:
            if self.importance == "exact":
                scores = received.new_zeros(len(received))
                scores[shared] = warmed[len(received) :].abs()
            else:
                scores = masks.importance(received, warmed)
            return masks.largest(scores, shared, count) | ~shared

        def start(done: list[Tensor]) -> Tensor:
            received = value_of(last.start, done[:before])
            return received.where(kept(received, done[before]), 0.0)

        def mask(done: list[Tensor]) -> Tensor:
            received = value_of(last.start, done[:before])
            return value_of(last.mask, done[:before]) & kept(received, done[before])

        return replace(last, start=start, mask=mask)

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """The mean of each weight: ``pruned_counts``."""
        if self.pruned_counts == "holders":
            return super().aggregate(state, view, updates)
        sent, weights = self.arrived(view, updates)
        if self.pruned_counts == "all":
            w = mean_of_differences(state.w, sent, weights)
        else:
            # what a device pruned is 0 in its model already, or what damping made of that 0
            filled = [Sent(s.values, self.shared_mask) for s in sent]
            w = mean_over_holders(state.w, filled, weights)
        return replace(state, g=state.g + 1, w=w)
