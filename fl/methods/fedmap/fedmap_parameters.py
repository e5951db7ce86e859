"""Hyper-parameters of FedMAP, and what follows from them alone."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from fl.contracts import View
from fl.errors import MethodError
from fl.method_base.method import MAX_RATE, param
from fl.methods._submodel_method import SubmodelMethod
from fl.methods.fedmap.granularity import Granularity, PerUnit, PerWeight
from fl.methods.fedmap.thinning import Record
from fl.models.layout import Slot

OURS = "our choice: the paper gives none"


@dataclass(frozen=True, eq=False)
class FedMapParameters(SubmodelMethod):
    """What a scenario can choose; mask phases and model phases take turns, in rounds."""

    phase_rounds: int = param(10, "rounds of a mask phase, tau", source=OURS, ge=1)
    model_rounds: int | None = param(
        None,
        "rounds of a model phase; none: as many; 1 is as printed",
        source="FedMAP, Algorithm 3: 1",
        ge=1,
    )
    granularity: str = param(
        "parameter",
        "what has a keep-probability: every weight, or every hidden unit, whose submodels are "
        "smaller dense models",
        source="FedMAP, Section 3: as printed",
        choices=("parameter", "neuron"),
    )
    min_units: int = param(
        0,
        "weights, or units, that every layer keeps at least",
        source="our choice: the paper has none",
        ge=0,
    )
    prior_strength: float = param(
        2.0, "alpha = beta of a new posterior, lambda", source=OURS, gt=1, le=MAX_RATE
    )
    reset_rounds: int | None = param(
        None,
        "rounds of a mask phase after which its counts are dropped; none: never",
        source="FedMAP, Algorithm 3",
        ge=1,
    )
    warm_posterior: bool = param(
        False,
        "a mask phase goes on from the posterior before",
        source="our choice; not so in FedMAP, Algorithm 3",
    )
    mask_steps: int | None = param(
        None,
        "steps on the mask logits per round; none: as on the weights; 0 is the control",
        source=OURS,
        ge=0,
    )
    mask_optimiser: str = param(
        "adam",
        "of the mask logits",
        source="our choice, as FedPM; the paper gives none",
        choices=("adam", "sgd"),
    )
    mask_lr: float = param(
        0.1,
        "step size on the mask logits, eta_m",
        source="our choice, as FedPM; the paper gives none",
        gt=0,
        le=MAX_RATE,
    )
    mask_scaler: bool = param(
        True,
        "divide a layer's kept weights by the root of their share",
        source="our choice: not in the paper",
    )
    literal_thinning: bool = param(
        False, "no draw where the budget is the whole model", source="FedMAP, Algorithm 2"
    )
    exponent: str = param(
        "draws",
        "n of (7): draws made, or draws survived as printed",
        source="FedMAP, (7)",
        choices=("draws", "survivals"),
    )
    indicator: str = param(
        "candidates",
        "places with a gradient (7): those that survived all draws before the last, or as printed "
        "those whose count is at most 1 below the largest",
        source="FedMAP, Proposition 4.1",
        choices=("candidates", "printed"),
    )
    surrogate: str = param(
        "fedpm",
        "backward pass of a draw: its probability, or 1",
        source="FedMAP, (10), (11)",
        choices=("fedpm", "identity"),
    )
    count_coding: str = param(
        "entropy",
        "how survival counts are sent",
        source="our choice: the paper gives no codes",
        choices=("raw", "entropy"),
    )
    train_mask: str = param(
        "topk",
        "submodel in a model round: the largest p, drawn in every round, or once per phase",
        source="our choice; FedMAP, Algorithm 3: sample",
        choices=("topk", "sample", "sample_once"),
    )
    refill: str = param(
        "none",
        "drawn submodels below their budget get the likeliest weights back, or not",
        source="our choice: not in the paper",
        choices=("none", "topk"),
    )
    full_capacity: str = param(
        "thinned",
        "model round of a budget of 1 that draws",
        source="FedMAP, Algorithm 2",
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
        source="our choice: the paper does not say",
        choices=("model", "layer"),
    )
    sizes: tuple[float, ...] | None = param(
        None,
        "budgets whose submodels are tested on the whole test set; none: those that the devices "
        "have",
        source="FedMAP, Fig. 2",
        gt=0,
        le=1,
    )
    averaging: str = param(
        "heterofl",
        "one submodel for all steps, or one of every size up to the device's own, drawn per step "
        "and nested",
        source="FedMAP, Section 5",
        choices=("heterofl", "fjord"),
    )
    server_rate: str = param(
        "scalar",
        "server step: server_lr, or by (2) with the holders counted over all devices, or expected",
        source="FedMAP, (2)",
        choices=("scalar", "exact", "expected"),
    )
    server_lr: float = param(
        1.0,
        "server step size, eta_s",
        source="our choice: the paper gives no value",
        gt=0,
        le=MAX_RATE,
    )
    mask_overhead: str = param(
        "entropy",
        "how a device is told its submodel",
        source="our choice: the paper gives no codes",
        choices=("none", "bitmap", "entropy", "seed"),
    )

    @classmethod
    def conflict(cls, values: dict[str, Any]) -> MethodError | None:
        if (
            values["server_rate"] == "expected"
            and values["train_mask"] != "topk"
            and values["granularity"] == "neuron"
        ):
            return MethodError(
                "server_rate", "is expected, which is known for single weights only; write exact"
            )
        return super().conflict(values)

    @classmethod
    def unread(cls, values: dict[str, Any]) -> dict[str, str]:
        units = ("refill", "topk_over") if values["granularity"] == "neuron" else ()
        topk = ("refill", "full_capacity") if values["train_mask"] == "topk" else ()
        rate = values["server_rate"]
        return (
            super().unread(values)
            | dict.fromkeys(units, "granularity is neuron")
            | dict.fromkeys(topk, "train_mask is topk")
            | ({} if rate == "scalar" else {"server_lr": f"server_rate is {rate}"})
        )

    @property
    def cycle(self) -> int:
        """Rounds of a mask phase and the model phase behind it."""
        return self.phase_rounds + (self.model_rounds or self.phase_rounds)

    def learns_masks(self, g: int) -> bool:
        """Whether round g is a mask round; else it is a model round."""
        return g % self.cycle < self.phase_rounds

    def gamma(self, view: View, k: int) -> float:
        """gamma_k, the share of the weights that device k's submodel may have."""
        return float(view.model_budget[k])

    @property
    def least_draws(self) -> int:
        """Draws that thinning makes in any case."""
        return 0 if self.literal_thinning else 1

    @cached_property
    def places(self) -> Granularity:
        """What has a keep-probability, J places."""
        if self.granularity == "neuron":
            return PerUnit(self.task.layout, max(1, self.min_units))
        return PerWeight(self.task.layout, self.min_units)

    def extra(self) -> tuple[Slot, ...]:
        """The mask logits s [J], and a device's record."""
        logits = Slot("mask.logits", (self.places.count,), 0, "logit", "mask", -1)
        return logits, Slot("mask.record", (len(fields(Record)),), 0, "record", "mask", -1)

    @property
    def logits(self) -> slice:
        """Where the mask logits lie in w."""
        return self.layout.slots[-2].slice

    @property
    def record(self) -> slice:
        """Where the device's record lies in w."""
        return self.layout.slots[-1].slice
