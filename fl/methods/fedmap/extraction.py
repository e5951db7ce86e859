"""Submodels of any size cut out of one model by keep-probabilities: FedMAP, TopK and Sampling extraction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fl.contracts import Tensor, View
from fl.masks.granularity import Weights
from fl.masks.thinning import empty_layers, refilled, scale, thin_for
from fl.method_base.method import State, param
from fl.methods.fedmap.mask_rounds import MaskRounds

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Extraction(MaskRounds):
    """Which submodel a device trains and uses: x cut down to its budget by p, the posterior's mode as it stands."""

    train_mask: str = param(
        "topk",
        "submodel in a model round: the largest p, drawn in every round, or once per phase",
        source="fedmap.md, H7: sample is as printed",
        choices=("topk", "sample", "sample_once"),
    )
    refill: str = param(
        "none",
        "drawn submodels below their budget get the likeliest weights back, or not",
        source="fedmap.md, H5",
        choices=("none", "topk"),
    )
    full_capacity: str = param(
        "thinned",
        "model round of a budget of 1 that draws",
        source="fedmap.md, E1",
        choices=("thinned", "dense"),
    )
    extraction: str = param(
        "topk",
        "submodel that a device uses: the largest p within its budget, or drawn",
        source="FedMAP, Section 5",
        choices=("topk", "sample"),
    )
    topk_over: str = param(
        "model",
        "the largest p of the whole model, or of every layer by itself",
        source="fedmap.md, H9",
        choices=("model", "layer"),
    )
    sizes: tuple[float, ...] | None = param(
        None,
        "budgets whose submodels are tested on the whole test set; none: those that the devices have",
        source="FedMAP, Fig. 2",
        gt=0,
        le=1,
    )

    @classmethod
    def unread(cls, values: dict) -> dict[str, str]:
        topk = ("refill", "full_capacity") if values["train_mask"] == "topk" else ()
        units = ("refill", "topk_over") if values["granularity"] == "neuron" else ()
        known = dict.fromkeys(units, "granularity is neuron") | dict.fromkeys(
            topk, "train_mask is topk"
        )
        return super().unread(values) | known

    # --- which weights ---------------------------------------------------------------------------------------------

    def largest(self, state: State | None, gamma: float) -> Array:
        """TopK, bool [J]. Shared between calls: do not write to it."""
        known = self.known(state)
        if gamma not in known:
            grain, p = self.grain, self.chances(state)
            w = np.zeros(self.layout.size) if state is None else state.w.cpu().numpy()
            of_each = self.topk_over == "layer" and isinstance(grain, Weights)
            known[gamma] = (
                grain.largest_of_each(p, w, gamma) if of_each else grain.largest(p, w, gamma)
            )
        return known[gamma]

    def drawn(self, state: State, gamma: float) -> Array:
        """Sampling, bool [J]: one draw per round and size."""
        rng = self.task.streams.stream(f"extract/{gamma:g}", round=state.g)
        return thin_for(
            f"size {gamma:g}", self.grain, self.chances(state), gamma, rng, self.rules.least
        ).mask

    def kept(self, state: State | None, view: View, k: int) -> Array:
        return self.weights_of(self.choice(state, view, k))

    def choice(self, state: State | None, view: View, k: int) -> Array:
        """What device k trains in a model round, bool [J]."""
        gamma = self.gamma(view, k)
        if self.train_mask == "topk" or (gamma == 1 and self.full_capacity == "dense"):
            return self.largest(state, gamma)
        begun = view.g if self.train_mask == "sample" else view.g // self.cycle * self.cycle
        rng = self.task.streams.stream("submodel", device=k, round=begun)
        p, least = self.chances(state), self.rules.least
        drawn = thin_for(f"device {k}", self.grain, p, gamma, rng, least)
        return drawn.mask if self.refill == "none" else refilled(self.grain, drawn, p, gamma)

    def nested(self, state: State, mine: Array, gamma: float, rng: np.random.Generator) -> Array:
        """The part of a device's choice that fits a smaller budget, bool [J]."""
        if self.train_mask == "topk":
            return self.largest(state, gamma)
        return thin_for(
            "a device", self.grain, self.chances(state), gamma, rng, least=0, start=mine
        ).mask

    def weights_of(self, chosen: Array) -> Array:
        """A choice bool [J] as weights bool [P]; what only the method learns is none of them."""
        mask = np.zeros(self.layout.size, dtype=bool)
        mask[: self.task.layout.size] = self.grain.expand(chosen)
        return mask

    def factor(self, kept: Array) -> Tensor | None:
        """1 / sqrt(kept share) of every weight [P]: H7b; None where it is 1 everywhere."""
        size = self.task.layout.size
        if not self.mask_scaler or kept[:size].all():
            return None
        factor = np.ones(self.layout.size, dtype=np.float32)
        factor[:size] = scale(self.grain, kept[:size])
        return self.task.tensor(factor)

    # --- what is used ----------------------------------------------------------------------------------------------

    def personalise(self, state: State, k: int) -> Tensor:
        return self.extracted(state, float(state.memo["gamma"][k]), self.extraction)

    def received(self, state: State, k: int) -> Tensor:
        return state.w

    def extracted(self, state: State, gamma: float, how: str) -> Tensor:
        """x cut down to a budget, [P]; the same tensor for the same state, budget and way."""
        return self._extraction(state, gamma, how)[1]

    def _extraction(self, state: State, gamma: float, how: str) -> tuple[Array, Tensor]:
        """What is kept, bool [P], and x cut down to it, [P]."""
        known = self.known(state)
        if (gamma, how) not in known:
            kept = self.weights_of(
                self.largest(state, gamma) if how == "topk" else self.drawn(state, gamma)
            )
            w, factor = state.w.where(self.task.tensor(kept), 0.0), self.factor(kept)
            known[gamma, how] = kept, w if factor is None else w * factor
        return known[gamma, how]

    # --- what is measured ------------------------------------------------------------------------------------------

    def tested(self, state: State) -> list[float]:
        """Budgets whose submodels are tested, the largest first."""
        return sorted(self.sizes or set(state.memo["gamma"].tolist()), reverse=True)

    def probes(self, state: State) -> dict[str, Tensor]:
        ways = [(how, size) for how in ("topk", "sample") for size in self.tested(state)]
        return {f"{how} {size:g}": self.extracted(state, size, how) for how, size in ways}

    def measures(self, state: State) -> dict[str, float]:
        """capacity used: weights of a drawn submodel, as a share of its budget (H5). empty layers: of TopK (H10)."""
        found = {"spread of p": float(np.std(self.chances(state)))}
        for size in self.tested(state):
            maskable = self.grain.size(
                self.grain.places(self._extraction(state, size, "sample")[0])
            )
            found[f"capacity used {size:g}"] = maskable / max(self.grain.room(size), 1)
            found[f"empty layers {size:g}"] = empty_layers(
                self.task.layout, self._extraction(state, size, "topk")[0]
            )
        return found
