"""FedMAP. "One Training Fits All: ... Model-Heterogeneity FL via Architecture Probing", ICLR submission."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import ClassVar

import numpy as np

from fl.contracts import Grant, Job, Payload, Phase, Stage, Tensor, Update, View, Work
from fl.errors import MethodError
from fl.masks import posterior, thinning
from fl.method_base.costs import total_work
from fl.method_base.method import MAX_RATE, State, param
from fl.methods.fedmap.extraction import Extraction

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class FedMap(Extraction):
    """One vector p of keep-probabilities cuts submodels of any size out of one model x.

    Mask phases learn p at frozen x (`fl.methods.fedmap.mask_rounds`), model phases train x at frozen p: every device trains the
    submodel that p gives its budget gamma_k, and the server takes the mean of each weight over its holders.
    What travels: in mask rounds p down (and x, once per phase and device) and survival counts up; in model rounds the
    submodel's weights, down and up, and which they are, down. A device uses the submodel of its own budget.

    Departs from the paper:
        At least one thinning draw (``literal_thinning``), whose count is the exponent of (7) (``exponent``).
        tau model rounds follow tau mask rounds (``model_rounds: 1`` is as printed); Adam on the mask logits.
        ``mask_scaler`` and ``train_mask: topk`` are not in the paper; without them sampled small submodels of a
        network without normalisation do not train (fedmap.md, section 6).
    """

    source: ClassVar[str] = '"One Training Fits All" (FedMAP), ICLR submission, Algorithms 1 to 3'
    reads: ClassVar[tuple[str, ...]] = ("sparse_efficiency",)
    averaging: str = param(
        "heterofl",
        "one submodel for all steps, or one of every size up to the device's own, drawn per step and nested",
        source="FedMAP, Section 5",
        choices=("heterofl", "fjord"),
    )
    server_rate: str = param(
        "scalar",
        "server step: server_lr, or by (2) with the holders counted over all devices, or expected",
        source="fedmap.md, H8",
        choices=("scalar", "exact", "expected"),
    )
    server_lr: float = param(
        1.0, "server step size, eta_s", source="fedmap.md, E11", gt=0, le=MAX_RATE
    )
    mask_overhead: str = param(
        "entropy",
        "how a device is told its submodel",
        source="fedmap.md, section 5",
        choices=("none", "bitmap", "entropy", "seed"),
    )

    @classmethod
    def conflict(cls, values: dict) -> MethodError | None:
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
    def unread(cls, values: dict) -> dict[str, str]:
        rate = values["server_rate"]
        return super().unread(values) | (
            {} if rate == "scalar" else {"server_lr": f"server_rate is {rate}"}
        )

    # --- how it is trained, and what it costs ------------------------------------------------------------------------

    def phases(self, state: State, view: View, k: int, w: Tensor, kept: Array) -> tuple[Phase, ...]:
        mask = self.task.tensor(kept)
        if self.averaging == "fjord":
            return (
                self.training(w, mask, view.g, k, effective=self._resized(state, view, k, kept)),
            )
        whole = kept[: self.task.layout.size].all()
        return (
            self.training(
                w, mask, view.g, k, submodel=None if whole else mask, scale=self.factor(kept)
            ),
        )

    def _resized(self, state: State, view: View, k: int, kept: Array) -> Callable[..., Tensor]:
        """The weights of a step: of every size up to the device's own one is drawn, as part of the largest."""
        sizes, mine = self._sizes_within(view, k), self.grain.places(kept)

        def effective(w: Tensor, rng: np.random.Generator) -> Tensor:
            part = self.weights_of(
                self.nested(state, mine, sizes[int(rng.random() * len(sizes))], rng)
            )
            factor = self.factor(part)
            return (
                w * self.task.tensor(part)
                if factor is None
                else w * self.task.tensor(part) * factor
            )

        return effective

    def _sizes_within(self, view: View, k: int) -> list[float]:
        return [
            gamma for gamma in np.unique(view.model_budget).tolist() if gamma <= self.gamma(view, k)
        ]

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        """Where the size is drawn per step, the mean over the sizes is charged; the plan has room for the largest."""
        job, k = super().configure(state, view, grant), grant.device
        if self.averaging == "heterofl" or self.learns_masks(view.g):
            return job
        mine, rng = (
            self.choice(state, view, k),
            self.task.streams.stream("charged", device=k, round=view.g),
        )
        parts = [self.nested(state, mine, size, rng) for size in self._sizes_within(view, k)]
        each = [total_work(self.ordered(view, k, self.weights_of(part))) for part in parts]
        mean = Work(*(sum(column) / len(each) for column in zip(*map(astuple, each), strict=True)))
        return replace(job, stages=(Stage("train", mean),))

    def travel(self, kept: Array) -> Payload:
        """The kept weights, biases and norms included, and down also which they are."""
        bits, places = self.task.accounting.weight_bits(int(kept.sum())), self.grain.places(kept)
        told = posterior.mask_bits(len(places), int(places.sum()), self.mask_overhead)
        return Payload(bits_down=bits + told, bits_up=bits)

    def pruned_share(self, kept: Array) -> float:
        return 1.0 - float(kept.sum()) / self.task.layout.size

    # --- what becomes of it ----------------------------------------------------------------------------------------

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """x + eta_s (mean over the holders - x): FedMAP, Section 3, partial averaging."""
        after = super().aggregate(state, view, updates)
        plain = self.server_rate == "scalar" and self.server_lr == 1
        if self.learns_masks(state.g) or plain or not updates:
            return after
        rate = (
            self.server_lr
            if self.server_rate == "scalar"
            else self._unbiased(state, view, len(updates))
        )
        moved = state.w.double() + rate * (after.w.double() - state.w.double())
        return replace(after, w=moved.to(state.w.dtype))

    def _unbiased(self, state: State, view: View, sampled: int) -> Tensor:
        """FedMAP, (2), [P]."""
        devices = range(self.task.devices)
        holders = np.full(self.layout.size, float(len(devices)))
        if self.server_rate == "exact" or self.train_mask == "topk":
            holders = sum(self.kept(state, view, k).astype(float) for k in devices)
        else:
            gammas = [self.gamma(view, k) for k in devices]
            expected = thinning.expected_holders(self.chances(state), gammas, self.rules.least)
            holders[np.flatnonzero(self.grain.maskable)] = expected
        return self.task.tensor(posterior.unbiased_rate(holders, len(devices), sampled))
