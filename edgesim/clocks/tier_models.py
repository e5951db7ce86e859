"""FedAT's global model: the models of all tiers, the slow ones with the weight of the fast ones.

w = sum_m (T_(M+1-m) / T) w_m, where T_m is how often tier m has made its model w_m, and T their
sum: Chai et al., SC 2021, Section 4.2. A tier that has made none yet has the first model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fl.contracts import State, Tensor, Update, View
from fl.method_base.stale_updates import WeightedUpdate
from fl.method_base.state_answers import following

NOTE = "speed tiers"  # of a state: how often each tier has made a model
MODEL = "speed tier {}"  # of a state's memory: the last model of a tier


def tier_weights(counts: Sequence[int]) -> list[float]:
    """Weight of each tier's model, fast to slow; equal where none has made any.

    Example:
        >>> [round(13 * weight) for weight in tier_weights([9, 3, 1])]
        [1, 3, 9]
    """
    total = sum(counts)
    return [n / total if total else 1.0 / len(counts) for n in reversed(counts)]


@dataclass(frozen=True, eq=False)
class TierUpdate(WeightedUpdate):
    """An update as it came, and the model w [P] with which its tier's round began."""

    base: Tensor


class TierModels:
    """A method with all its own answers, whose aggregate is a tier's model among those of all.

    Args:
        method: the method's hooks (`fl.contracts.MethodHooks`).
        tier_of: tier of each device, 0 the fastest.
        shared: weights that travel, bool [P].
    """

    def __init__(self, method: Any, tier_of: Sequence[int], shared: Tensor) -> None:
        self._method, self._tier_of, self._shared = method, tier_of, shared

    def __getattr__(self, name: str) -> Any:
        return getattr(self._method, name)

    def damped(self, update: Update, now: State, base: State, weight: float) -> Update:
        """As it came: all of a tier have started from one and the same version, the base."""
        return TierUpdate(update, weight, base.w)

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """The method's own aggregate of one tier, and the mean of the tiers' models.

        A round of a tier moves the model with which it began; what else the method remembers is
        common to all tiers, and is that of now.
        """
        if not updates:
            return self._method.aggregate(state, view, updates)
        count = max(self._tier_of) + 1
        tier = self._tier_of[updates[0].job.device]
        models = [state.memo.get(MODEL.format(m), state.w) for m in range(count)]
        counts = list(state.notes.get(NOTE, [0] * count))
        mine = [each for each in updates if isinstance(each, TierUpdate)]  # by `damped`, all
        begun = replace(state, w=mine[0].base)
        after = self._method.aggregate(begun, view, [each.update for each in mine])
        after = following("aggregate", state, after)
        models[tier], counts[tier] = after.w, counts[tier] + 1
        weights = tier_weights(counts)
        mean = sum(weight * w.double() for weight, w in zip(weights, models, strict=True))
        w = mean.to(after.w.dtype).where(self._shared, after.w)
        memo = after.memo | {MODEL.format(m): model for m, model in enumerate(models)}
        return replace(after, w=w, memo=memo, notes=after.notes | {NOTE: counts})
