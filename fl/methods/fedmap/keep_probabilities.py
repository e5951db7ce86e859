"""What FedMAP learns beside the weights: keep-probabilities, of which the server holds a posterior; and its phases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fl.contracts import View
from fl.masks.granularity import Grain, Units, Weights
from fl.masks.posterior import Beta
from fl.masks.thinning import Record
from fl.method_base.method import MAX_RATE, State, param
from fl.method_base.submodel_method import Submodels
from fl.models.layout import Slot

Array = np.ndarray
OURS = "fedmap.md, H3: the paper gives none"


@dataclass(frozen=True, eq=False)
class Belief(Submodels):
    """Keep-probabilities p [J], the mode of a Beta posterior, that mask phases learn; model phases follow on them.

    The memo holds alpha and beta [J], every device's budget gamma [K], and which devices hold the x of this mask phase
    [K].
    """

    phase_rounds: int = param(10, "rounds of a mask phase, tau", source=OURS, ge=1)
    model_rounds: int | None = param(
        None,
        "rounds of a model phase; none: as many; 1 is as printed",
        source="fedmap.md, E5",
        ge=1,
    )
    granularity: str = param(
        "parameter",
        "what has a keep-probability: every weight, or every hidden unit, whose submodels are smaller dense models",
        source="fedmap.md, H1: as printed",
        choices=("parameter", "neuron"),
    )
    min_units: int = param(
        0, "weights, or units, that every layer keeps at least", source="fedmap.md, H10", ge=0
    )
    prior_strength: float = param(
        2.0, "alpha = beta of a new posterior, lambda", source=OURS, gt=1, le=MAX_RATE
    )
    reset_rounds: int | None = param(
        None,
        "rounds of a mask phase after which its counts are dropped; none: never",
        source="fedmap.md, E6",
        ge=1,
    )
    warm_posterior: bool = param(
        False, "a mask phase goes on from the posterior before", source="fedmap.md, E7"
    )

    @classmethod
    def unread(cls, values: dict) -> dict[str, str]:
        return super().unread(values) | {"width": "the devices' model budgets decide"}

    # --- where a round stands --------------------------------------------------------------------------------------

    @property
    def cycle(self) -> int:
        """Rounds of a mask phase and the model phase behind it."""
        return self.phase_rounds + (self.model_rounds or self.phase_rounds)

    def learns_masks(self, g: int) -> bool:
        return g % self.cycle < self.phase_rounds

    def gamma(self, view: View, k: int) -> float:
        """gamma_k, the share of the weights that device k's submodel may have."""
        return float(view.model_budget[k])

    @cached_property
    def grain(self) -> Grain:
        if self.granularity == "neuron":
            return Units(self.task.layout, max(1, self.min_units))
        return Weights(self.task.layout, self.min_units)

    # --- state -----------------------------------------------------------------------------------------------------

    def extra(self) -> tuple[Slot, ...]:
        """The mask logits s [J], whose place the counts m take in the upload, and a device's record."""
        logits = Slot("mask.logits", (self.grain.count,), 0, "logit", "mask", -1)
        return logits, Slot(
            "mask.record", (len(Record.__dataclass_fields__),), 0, "record", "mask", -1
        )

    def weights(self) -> dict[str, int]:
        """Those of the model; logits and records are none."""
        return {"total": self.task.layout.size, "global": self.task.layout.size, "personal": 0}

    @cached_property
    def logits(self) -> slice:
        return self.layout.slots[-2].slice

    @cached_property
    def record(self) -> slice:
        return self.layout.slots[-1].slice

    def start(self) -> State:
        ones, prior = np.ones(self.task.devices), self._prior
        memo = {"alpha": prior.alpha, "beta": prior.beta, "gamma": ones, "holds": ones < 0}
        return replace(
            super().start(), memo={name: self.task.tensor(values) for name, values in memo.items()}
        )

    @property
    def _prior(self) -> Beta:
        strength = np.full(self.grain.count, self.prior_strength, dtype=np.float32)
        return Beta(strength, strength)

    def belief(self, state: State | None, g: int | None = None) -> Beta:
        """The posterior [J] of a state; a mask phase that begins in round g begins anew: p = 1/2 (E7)."""
        if state is None or (g is not None and g % self.cycle == 0 and not self.warm_posterior):
            return self._prior
        return Beta(state.memo["alpha"].cpu().numpy(), state.memo["beta"].cpu().numpy())

    def chances(self, state: State | None, g: int | None = None) -> Array:
        """p [J], the mode of the posterior: FedMAP, (9)."""
        return self.belief(state, g).mode()

    def known(self, state: State | None) -> dict:
        """What has been worked out of one state: a round asks for the same submodels again and again."""
        if self._memory[:1] != [state]:
            self._memory[:] = [state, {}]
        return self._memory[1]

    @cached_property
    def _memory(self) -> list:
        return []
