"""FedMAP: mask rounds and model rounds in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from fl.accounting import mask_bits
from fl.contracts import (
    Array,
    Demand,
    Grant,
    Job,
    Payload,
    Phase,
    Sent,
    Stage,
    Tensor,
    Trained,
    Update,
    View,
    Work,
)
from fl.method_base.affine_demand import total_work
from fl.method_base.stale_updates import MovedUpdate, WeightedUpdate
from fl.method_base.state import State
from fl.methods.fedmap import thinning
from fl.methods.fedmap.extraction import Extraction
from fl.methods.fedmap.fedmap_parameters import FedMapParameters
from fl.methods.fedmap.granularity import PerWeight
from fl.methods.fedmap.keep_probability_posterior import KeepProbabilities
from fl.methods.fedmap.mask_round_jobs import MaskRounds


@dataclass(frozen=True, eq=False)
class FedMap(FedMapParameters):
    """One vector p of keep-probabilities cuts submodels of any size out of one model x.

    "One Training Fits All: Addressing Model-Heterogeneity Federated Learning via Architecture
    Probing" (FedMAP), ICLR submission. Mask phases learn p at frozen x
    (`mask_rounds`), model phases train x at frozen p: every device trains the submodel that p gives
    its budget gamma_k (`extraction`), and the server takes the mean of each weight over its
    holders. The memo of a state holds the posterior's alpha and beta [J], every device's budget
    gamma [K], and which devices hold the x of this mask phase [K].
    What travels: in mask rounds p down (and x, once per phase and device) and survival counts up;
    in model rounds the submodel's weights, down and up, and which they are, down. A device uses the
    submodel of its own budget.

    Departs from the paper (see docs/papers/fedmap.md):
        At least one thinning draw (``literal_thinning``), whose count is the exponent of (7)
        (``exponent``); its indicator is of the candidates (``indicator``).
        tau model rounds follow tau mask rounds (``model_rounds: 1`` is as printed); Adam on the
        mask logits.
        ``mask_scaler`` and ``train_mask: topk`` are not in the paper; without them sampled small
        submodels of a network without normalisation do not train.
    """

    source: ClassVar[str] = '"One Training Fits All" (FedMAP), ICLR submission, Algorithms 1 to 3'
    stale: ClassVar[str] = "count"
    reads: ClassVar[tuple[str, ...]] = ("sparse_efficiency",)

    @cached_property
    def p(self) -> KeepProbabilities:
        return KeepProbabilities(self)

    @cached_property
    def mask_rounds(self) -> MaskRounds:
        return MaskRounds(self, self.p)

    @cached_property
    def submodels(self) -> Extraction:
        return Extraction(self, self.p)

    def start(self) -> State:
        ones = np.ones(self.task.devices)
        memo = self.p.memo(self.p.prior)
        memo |= {"gamma": self.task.tensor(ones), "holds": self.task.tensor(ones < 0)}
        return replace(super().start(), memo=memo)

    def weights(self) -> dict[str, int]:
        """Those of the model; logits and records are none."""
        return {"total": self.task.layout.size, "global": self.task.layout.size, "personal": 0}

    # --- what it costs ---------------------------------------------------------------------------

    def demand(self, state: State | None, view: View, chosen: Array) -> Demand:
        if self.learns_masks(view.g):
            return self.mask_rounds.demand(state, view, chosen)
        return super().demand(state, view, chosen)

    def forecast(self, view: View, k: int, rho: float) -> tuple[Stage, ...]:
        return self.mask_rounds.forecast(view, k)

    def charged(self, job: Job, trained: Trained) -> tuple[Stage, ...]:
        return self.mask_rounds.charged(job, trained)

    def kept(self, state: State | None, view: View, k: int) -> Array:
        return self.submodels.weights_of(self.submodels.trained(state, view, k))

    def submodel_payload(self, kept: Array) -> Payload:
        """The kept weights, biases and norms included, and down also which they are."""
        choice = self.places.choice_of(kept)
        bits = self.task.accounting.weight_bits(int(kept.sum()))
        mask = mask_bits(len(choice), int(choice.sum()) / len(choice), self.mask_overhead)
        return Payload(bits_down=bits + mask, bits_up=bits)

    def pruned_share(self, kept: Array) -> float:
        return 1.0 - float(kept.sum()) / self.task.layout.size

    # --- how a device trains ---------------------------------------------------------------------

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        """The order for one device.

        Where the size is drawn per step, the mean over the sizes is charged; the plan has room for
        the largest.
        """
        if self.learns_masks(view.g):
            return self.mask_rounds.job(state, view, grant)
        job, k = super().configure(state, view, grant), grant.device
        if self.averaging == "heterofl":
            return job
        mine = self.submodels.trained(state, view, k)
        rng = self.task.streams.stream("charged", device=k, round=view.g)
        cut, gammas = self.submodels, self._budgets_within(view, k)
        parts = [cut.weights_of(cut.nested(state, mine, gamma, rng)) for gamma in gammas]
        each = [astuple(total_work(self.submodel_stages(view, k, part))) for part in parts]
        mean = Work(*(sum(column) / len(each) for column in zip(*each, strict=True)))
        return replace(job, stages=(Stage("train", mean),))

    def phases(self, state: State, view: View, k: int, w: Tensor, kept: Array) -> tuple[Phase, ...]:
        """How device k trains its submodel in a model round."""
        mask = self.task.tensor(kept)
        if self.averaging == "fjord":
            resized = self._resized(state, view, k, kept)
            return (self.training(w, mask, view.g, k, effective=resized),)
        whole, factor = kept[: self.task.layout.size].all(), self.submodels.factor(kept)
        submodel = None if whole else mask
        return (self.training(w, mask, view.g, k, submodel=submodel, scale=factor),)

    def _resized(self, state: State, view: View, k: int, kept: Array) -> Callable[..., Tensor]:
        """The weights of a step: a size up to the device's own is drawn, as part of the largest."""
        gammas, mine = self._budgets_within(view, k), self.places.choice_of(kept)
        cut, tensor = self.submodels, self.task.tensor

        def effective(w: Tensor, rng: np.random.Generator) -> Tensor:
            gamma = gammas[int(rng.random() * len(gammas))]
            part = cut.weights_of(cut.nested(state, mine, gamma, rng))
            factor = cut.factor(part)
            return w * tensor(part) if factor is None else w * tensor(part) * factor

        return effective

    def _budgets_within(self, view: View, k: int) -> list[float]:
        """The budgets of all devices up to that of device k."""
        gammas = np.unique(view.model_budget).tolist()
        return [gamma for gamma in gammas if gamma <= self.gamma(view, k)]

    # --- what returns ----------------------------------------------------------------------------

    def encode(self, job: Job, trained: Trained) -> Sent:
        if self.learns_masks(job.g):
            return self.mask_rounds.upload(job, trained)
        return super().encode(job, trained)

    def retain(self, state: State, updates: Sequence[Update]) -> State:
        """Who took part in a mask round holds x until a model round changes it."""
        holds = state.memo["holds"] & self.learns_masks(state.g)
        if self.learns_masks(state.g):
            holds[[each.job.device for each in updates if self._same_phase(each, state)]] = True
        return replace(state, memo=state.memo | {"holds": holds})

    def recovered(self, saved: State, now: State) -> State:
        """Devices still hold the x that they received last, if the server stored the same one."""
        holds = now.memo["holds"] & bool((saved.w == now.w).all())
        after = super().recovered(saved, now)
        return replace(after, memo=after.memo | {"holds": holds})

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """In a mask round the posterior counts what arrived, in a model round x moves.

        What started in an earlier phase says nothing about this one.
        """
        memo = {"gamma": self.task.tensor(np.array(view.model_budget))}
        updates = [each for each in updates if self._same_phase(each, state)]
        if self.learns_masks(state.g):
            counts = [self.mask_rounds.counts(each.job, each.result()) for each in updates]
            memo |= self.p.memo(self.p.updated(state, counts, [each.weight for each in updates]))
            return replace(state, g=state.g + 1, memo=state.memo | memo)
        after = self._moved(state, view, updates)
        return replace(after, memo=state.memo | memo)

    def _same_phase(self, update: Update, state: State) -> bool:
        """Did the job of an update start in the phase that the state is in?"""
        cycle, phases = self.cycle, (update.job.g, state.g)
        return len({(g // cycle, self.learns_masks(g)) for g in phases}) == 1

    def damped(self, update: Update, now: State, base: State, weight: float) -> Update:
        """Survival counts are weighted, changes of x are moved to the x of now."""
        if self.learns_masks(update.job.g):
            return WeightedUpdate(update, weight)
        return MovedUpdate(update, weight, now.w, base.w, self.shared_mask)

    def _moved(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """x + eta_s (mean over the holders - x): FedMAP, Section 3, partial averaging."""
        mean = super().aggregate(state, view, updates)
        plain = self.server_rate == "scalar" and self.server_lr == 1
        if plain or not updates:
            return mean
        scalar = self.server_rate == "scalar"
        sampled = len({each.job.device for each in updates})
        rate = self.server_lr if scalar else self._unbiased(state, view, sampled)
        moved = state.w.double() + rate * (mean.w.double() - state.w.double())
        return replace(mean, w=moved.to(state.w.dtype))

    def _unbiased(self, state: State, view: View, sampled: int) -> Tensor:
        """The server step of FedMAP, (2), [P]."""
        devices = range(self.task.devices)
        if self.server_rate == "exact" or self.train_mask == "topk":
            each = [self.kept(state, view, k) for k in devices]
            holders = np.sum(each, axis=0, dtype=float)
        else:
            assert isinstance(self.places, PerWeight)  # FedMapParameters.conflict
            gammas = [self.gamma(view, k) for k in devices]
            p, least = self.p.mode(state), self.least_draws
            holders = np.full(self.layout.size, float(len(devices)))
            maskable = np.flatnonzero(self.places.maskable)
            holders[maskable] = thinning.expected_holders(p, gammas, least)
        return self.task.tensor(thinning.unbiased_rate(holders, len(devices), sampled))

    # --- what is used ----------------------------------------------------------------------------

    def received(self, state: State, k: int) -> Tensor:
        return state.w

    def personalise(self, state: State, k: int) -> Tensor:
        return self.submodels.model(state, float(state.memo["gamma"][k]), self.extraction)

    def probes(self, state: State) -> dict[str, Tensor]:
        return self.submodels.probes(state)

    def measures(self, state: State) -> dict[str, float]:
        return self.submodels.measures(state)
