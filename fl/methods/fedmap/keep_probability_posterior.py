"""The keep-probabilities p of FedMAP: mode of a Beta posterior that survival counts update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, log2
from typing import Any

import numpy as np

from fl.contracts import Array
from fl.masks.posterior import Beta
from fl.method_base.state import State
from fl.methods.fedmap.fedmap_parameters import FedMapParameters


@dataclass(frozen=True, eq=False)
class KeepProbabilities:
    """p [J] of a state, whose memo holds alpha and beta [J]; a state of None is before round 0."""

    settings: FedMapParameters

    @cached_property
    def prior(self) -> Beta:
        """What a new posterior is, p = 1/2."""
        strength = np.full(
            self.settings.places.count, self.settings.prior_strength, dtype=np.float32
        )
        return Beta(strength, strength)

    def posterior(self, state: State | None, g: int | None = None) -> Beta:
        """The posterior [J] of a state; a mask phase that begins in round g begins anew."""
        begins = g is not None and g % self.settings.cycle == 0 and not self.settings.warm_posterior
        if state is None or begins:
            return self.prior
        return Beta(state.memo["alpha"].cpu().numpy(), state.memo["beta"].cpu().numpy())

    def mode(self, state: State | None, g: int | None = None) -> Array:
        """p [J]: FedMAP, (9)."""
        return self.posterior(state, g).mode()

    def updated(
        self,
        state: State,
        counts: Sequence[tuple[Array, int]],
        weights: Sequence[float] | None = None,
    ) -> Beta:
        """The posterior with what arrived in a mask round: FedMAP, (9).

        Args:
            state: Before the round.
            counts: Survival counts m [J] and number of draws n of each device.
            weights: How much those of each device count; None: 1.
        """
        reset, at = self.settings.reset_rounds, state.g % self.settings.cycle
        drops = reset is not None and at > 0 and at % reset == 0
        before = self.prior if drops else self.posterior(state, state.g)
        return before.counted(counts, weights)

    def memo(self, posterior: Beta) -> dict[str, Any]:
        """What a state remembers of a posterior."""
        tensor = self.settings.task.tensor
        return {"alpha": tensor(posterior.alpha), "beta": tensor(posterior.beta)}


def count_bits(survived: Array, draws: int, coding: str) -> float:
    """Bits of the survival counts of a mask round.

    Headers are free: neither the table of the entropy code nor n is counted.

    Args:
        survived: m [J].
        draws: n.
        coding: raw, ceil(log2(n + 1)) each; entropy, their empirical entropy.
    """
    if coding == "raw":
        return float(len(survived) * ceil(log2(draws + 1)))
    return len(survived) * entropy(
        np.bincount(survived.astype(np.int64), minlength=draws + 1) / len(survived)
    )


def entropy(shares: Array) -> float:
    """Of a distribution, in bit."""
    some = shares[shares > 0]
    return float((some * np.log2(1.0 / some)).sum())
