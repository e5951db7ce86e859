"""Submodels of any size cut out of one model by keep-probabilities: FedMAP, TopK and Sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from fl.contracts import Array, Tensor, View
from fl.method_base.state import State
from fl.methods.fedmap.fedmap_parameters import FedMapParameters
from fl.methods.fedmap.granularity import PerWeight
from fl.methods.fedmap.keep_probability_posterior import KeepProbabilities
from fl.methods.fedmap.thinning import empty_layers, refilled, scale, thin


@dataclass(frozen=True, eq=False)
class Extraction:
    """Which submodel a device trains and uses: x cut down to its budget by p, as it stands."""

    settings: FedMapParameters
    p: KeepProbabilities

    # --- choices bool [J] ------------------------------------------------------------------------

    def drawn(self, state: State, gamma: float) -> Array:
        """Sampling: one draw per round and size."""
        settings, name = self.settings, f"{gamma:g}"
        rng = settings.task.streams.stream(f"extract/{name}", round=state.g)
        p, least = self.p.mode(state), settings.least_draws
        return thin(settings.places, p, gamma, rng, least, owner=f"size {name}").mask

    def trained(self, state: State | None, view: View, k: int) -> Array:
        """What device k trains in a model round."""
        settings, gamma = self.settings, self.settings.gamma(view, k)
        dense = gamma == 1 and settings.full_capacity == "dense"
        if settings.train_mask == "topk" or dense:
            return largest_of(self, state)(gamma)
        phase_start = view.g // settings.cycle * settings.cycle
        begun = view.g if settings.train_mask == "sample" else phase_start
        rng = settings.task.streams.stream("submodel", device=k, round=begun)
        p, places = self.p.mode(state), settings.places
        drawn = thin(places, p, gamma, rng, settings.least_draws, owner=f"device {k}")
        if settings.refill == "none" or not isinstance(places, PerWeight):
            return drawn.mask
        return refilled(places, drawn, p, gamma)

    def nested(self, state: State, mine: Array, gamma: float, rng: np.random.Generator) -> Array:
        """The part of a device's choice that fits a smaller budget."""
        if self.settings.train_mask == "topk":
            return largest_of(self, state)(gamma)
        return thin(self.settings.places, self.p.mode(state), gamma, rng, 0, mine).mask

    def weights_of(self, chosen: Array) -> Array:
        """A choice as weights bool [P]; what only the method learns is none of them."""
        mask = np.zeros(self.settings.layout.size, dtype=bool)
        mask[: self.settings.task.layout.size] = self.settings.places.expand(chosen)
        return mask

    def factor(self, kept: Array) -> Tensor | None:
        """1 / sqrt(kept share) of every weight [P]; None where it is 1 everywhere."""
        size = self.settings.task.layout.size
        if not self.settings.mask_scaler or kept[:size].all():
            return None
        factor = np.ones(self.settings.layout.size, dtype=np.float32)
        factor[:size] = scale(self.settings.places, kept[:size])
        return self.settings.task.tensor(factor)

    # --- what is used, and measured --------------------------------------------------------------

    def model(self, state: State, gamma: float, how: str) -> Tensor:
        """x cut down to a budget [P]; how: topk | sample."""
        return models_of(self, state)(gamma, how)[1]

    def sizes(self, state: State) -> list[float]:
        """Budgets whose submodels are tested, the largest first."""
        return sorted(self.settings.sizes or set(state.memo["gamma"].tolist()), reverse=True)

    def probes(self, state: State) -> dict[str, Tensor]:
        """Submodels of every size and way."""
        ways = [(how, size) for how in ("topk", "sample") for size in self.sizes(state)]
        return {f"{how} {size:g}": self.model(state, size, how) for how, size in ways}

    def measures(self, state: State) -> dict[str, float]:
        """Spread of p; of each size the share of its budget that a draw uses, and empty layers."""
        places, layout = self.settings.places, self.settings.task.layout
        found = {"spread of p": float(np.std(self.p.mode(state)))}
        for size in self.sizes(state):
            used = places.size(places.choice_of(models_of(self, state)(size, "sample")[0]))
            found[f"capacity used {size:g}"] = used / max(places.room(size), 1)
            found[f"empty layers {size:g}"] = empty_layers(
                layout, models_of(self, state)(size, "topk")[0]
            )
        return found


# A state never changes, and a round asks for its submodels again and again; that devices of one
# budget get one tensor lets an evaluation see that they share it. Only the latest state is held.


@lru_cache(maxsize=1)
def largest_of(extraction: Extraction, state: State | None) -> Callable[[float], Array]:
    """TopK of a state by budget: bool [J], shared between calls, not to be written to."""
    settings = extraction.settings
    places, p = settings.places, extraction.p.mode(state)
    w = np.zeros(settings.layout.size) if state is None else state.w.cpu().numpy()

    @cache
    def largest(gamma: float) -> Array:
        if settings.topk_over == "layer" and isinstance(places, PerWeight):
            return places.largest_of_each(p, w, gamma)
        return places.largest(p, w, gamma)

    return largest


@lru_cache(maxsize=1)
def models_of(extraction: Extraction, state: State) -> Callable[[float, str], tuple[Array, Tensor]]:
    """By budget and way: what is kept of a state, bool [P], and x cut down to it [P]."""

    @cache
    def model(gamma: float, how: str) -> tuple[Array, Tensor]:
        topk = how == "topk"
        chosen = largest_of(extraction, state)(gamma) if topk else extraction.drawn(state, gamma)
        kept = extraction.weights_of(chosen)
        w = state.w.where(extraction.settings.task.tensor(kept), 0.0)
        factor = extraction.factor(kept)
        return kept, w if factor is None else w * factor

    return model
