"""FedPM: random weights that stay as they are, and masks that choose among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import e, log2, prod
from typing import Any, ClassVar

import numpy as np

from fl.accounting import mask_bits
from fl.contracts import (
    Adam,
    Array,
    Grant,
    Job,
    Payload,
    Phase,
    Sent,
    Sgd,
    Stage,
    Tensor,
    Trained,
    Update,
    View,
)
from fl.masks.posterior import Beta
from fl.method_base.method import MAX_RATE, State, param
from fl.methods._submodel_method import SubmodelMethod
from fl.models.layout import Layout

AUTHORS = "Isik et al., released program"
CERTAIN = 104.0  # a score whose sigmoid is 1 in float32; weight decay of an infinite one gives nan


@dataclass(frozen=True, eq=False)
class FedPM(SubmodelMethod):
    """The weights are random and stay; devices learn with which probability theta each is used.

    Isik, Pase, Gunduz, Weissman, Zorzi, "Sparse Random Networks for Communication-Efficient
    Federated Learning", ICLR 2023. Every step draws a mask m ~ Bern(theta), theta = sigmoid(s), and
    steps on the scores s; the server's posterior counts one mask per device. State.w is theta [P].
    What travels: theta down; one mask up, coded to its entropy: its bits are known only after
    training.

    Departs from the paper:
        Weights are +c or -c, c = e / sqrt(inputs), biases too; norms have no mask and stay 1 and 0.
        The backward pass of a draw is theta, not 1 (``surrogate``), and masks are counted as 0.01
        and 0.99.
        Computing is charged at the density of the mask that is sent, also the gradient by the
        scores, which is dense.
        The seed of the weights is free. A device uses the mask that the server draws in that round
        for everybody.
    """

    source: ClassVar[str] = "Isik et al., ICLR 2023, Algorithms 1, 2"
    stale: ClassVar[str] = "count"
    reads: ClassVar[tuple[str, ...]] = ("sparse_efficiency",)
    lr: float = param(0.1, "step size on the scores", source=AUTHORS, gt=0, le=MAX_RATE)
    optimiser: str = param("adam", "of the scores", source=AUTHORS, choices=("adam", "sgd"))
    surrogate: str = param(
        "fedpm",
        "backward pass of a draw: its probability, or 1",
        source=AUTHORS,
        choices=("fedpm", "identity"),
    )
    prior: float = param(
        1.0, "alpha = beta of a new posterior, lambda_0", source=AUTHORS, ge=1, le=MAX_RATE
    )
    reset_rounds: int = param(
        1, "rounds after which the posterior begins anew", source=AUTHORS, ge=1
    )
    softening: float = param(
        0.01, "a mask counts as this much for 0, and 1 less it for 1", source=AUTHORS, ge=0, le=0.4
    )

    @classmethod
    def unread(cls, values: dict[str, Any]) -> dict[str, str]:
        plain = ("momentum", "weight_decay", "clip") if values["optimiser"] == "adam" else ()
        fixed = {"weighting": "the posterior counts masks"}
        return super().unread(values) | fixed | dict.fromkeys(plain, "optimiser is adam")

    # --- the frozen weights ----------------------------------------------------------------------

    @cached_property
    def constants(self) -> Array:
        """The weights [P]: +c or -c, of norms the initial values."""
        signed = signed_constants(self.task.layout, self.task.streams.stream("signs"))
        initial = self.task.architecture.initial(self.task.streams.stream("init"))
        return np.where(self.maskable, signed, initial).astype(np.float32)

    @cached_property
    def maskable(self) -> Array:
        """All but norms, bool [P]."""
        return self.layout.where(lambda slot: slot.kind != "norm")

    @cached_property
    def first_theta(self) -> Array:
        """theta = sigmoid(s), s ~ N(0, 1), [P]."""
        scores = self.task.streams.stream("scores").standard_normal(self.layout.size)
        return np.where(self.maskable, 1.0 / (1.0 + np.exp(-scores)), 1.0).astype(np.float32)

    def start(self) -> State:
        used = self.sparse_model(self.first_theta, 0)
        return State(0, self.task.tensor(self.first_theta), memo={"used": used})

    def drawn(self, theta: Array, purpose: str, g: int) -> Array:
        """A mask, bool [P]."""
        rng = self.task.streams.stream(purpose, round=g)
        return rng.random(self.layout.size, dtype=np.float32) < theta

    # --- what it costs ---------------------------------------------------------------------------

    def kept(self, state: State | None, view: View, k: int) -> Array:
        """What a round is planned with: one draw of the server's theta."""
        theta = state.w.cpu().numpy() if state else self.first_theta
        return self.drawn(theta, "foretold", view.g)

    def submodel_payload(self, kept: Array) -> Payload:
        """theta down; the mask and its density up."""
        places = int(self.maskable.sum())
        share = int(kept[self.maskable].sum()) / places
        up = mask_bits(places, share, "entropy") + log2(places)
        return Payload(bits_down=self.task.accounting.weight_bits(places), bits_up=up)

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        job = super().configure(state, view, grant)
        return replace(job, stages=None, payload=replace(job.payload, bits_up=None))

    def charged(self, job: Job, trained: Trained) -> tuple[Stage, ...]:
        return self.kept_stages(job.device, self.sampled(job, trained))

    # --- how a device trains, and what becomes of it ---------------------------------------------

    def phases(self, state: State, view: View, k: int, w: Tensor, kept: Array) -> tuple[Phase, ...]:
        # Here, since it imports torch, which pricing a scenario does without.
        from fl.masks.straight_through import StraightThrough, slope

        weights = self.task.tensor(self.constants)

        def effective(s: Tensor, rng: np.random.Generator) -> Tensor:
            theta = s.detach().sigmoid()
            mask = self.task.tensor(rng.random(len(s), dtype=np.float32)) < theta
            back = slope(theta, 1, self.surrogate)
            return weights * StraightThrough.apply(s, mask.to(s.dtype), back)

        sgd = Sgd(self.momentum, self.weight_decay, self.clip)
        steps = Adam() if self.optimiser == "adam" else sgd
        learned = self.task.tensor(self.maskable)
        return (self.training(logits(w), learned, view.g, k, effective=effective, optimiser=steps),)

    def sampled(self, job: Job, trained: Trained) -> Array:
        """The mask that a device sends, bool [P]."""
        theta, rng = trained.w.sigmoid().cpu().numpy(), job.stream(self.task.streams, "sent")
        return rng.random(self.layout.size, dtype=np.float32) < theta

    def encode(self, job: Job, trained: Trained) -> Sent:
        mask = self.sampled(job, trained)
        values = self.task.tensor(mask.astype(np.float32))
        return Sent(values, trained.mask, self.submodel_payload(mask).bits_up)

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """theta as the mode of the posterior that counts the masks: Isik et al., Algorithm 2.

        A posterior that has begun anew does not count the masks of jobs that started before.
        """
        first, g = state.w.new_full(state.w.shape, self.prior), state.g + 1
        begun = state.g // self.reset_rounds * self.reset_rounds
        updates = [update for update in updates if update.job.g >= begun]
        prior = Beta(*(state.memo.get(name, first) for name in ("alpha", "beta")))
        masks = [self.encode(u.job, u.result()).values for u in updates]
        after = counted(prior, masks, self.softening, [u.weight for u in updates])
        begins_anew = g % self.reset_rounds == 0
        memo = {} if begins_anew else {"alpha": after.alpha, "beta": after.beta}
        theta = after.mode().where(self.task.tensor(self.maskable), 1.0) if updates else state.w
        used = self.sparse_model(theta.cpu().numpy(), g)
        return State(g, theta, memo=memo | {"used": used})

    def sparse_model(self, theta: Array, g: int) -> Tensor:
        """The weights under the mask of round g, [P]."""
        mask = self.drawn(theta, "used", g)
        return self.task.tensor(np.where(mask, self.constants, np.float32(0.0)))

    def received(self, state: State, k: int) -> Tensor:
        return state.w

    def personalise(self, state: State, k: int) -> Tensor:
        return state.memo["used"]

    def measures(self, state: State) -> dict[str, float]:
        return {"density": float(state.w[self.task.tensor(self.maskable)].mean())}


def signed_constants(layout: Layout, rng: np.random.Generator) -> Array:
    """+c or -c at random [P], c = e / sqrt(inputs of the unit); a bias has that of its weights."""
    c, inputs = np.empty(layout.size), 1
    for slot in layout.slots:
        inputs = inputs if slot.kind == "bias" else prod(slot.shape[1:])
        c[slot.slice] = e / inputs**0.5
    return np.where(rng.random(layout.size) < 0.5, -c, c)


def logits(theta: Tensor) -> Tensor:
    """The scores s [P] of probabilities theta [P], finite also where these are 0 or 1."""
    return theta.logit().clamp(-CERTAIN, CERTAIN)


def counted(
    prior: Beta,
    masks: Sequence[Any],
    softening: float = 0.0,
    weights: Sequence[float] | None = None,
) -> Beta:
    """The posterior of the probabilities [P] after some masks: Isik et al., Algorithm 2.

    Args:
        prior: Before them.
        masks: Of 0 and 1, [P] each.
        softening: A mask counts as softening and 1 - softening instead of 0 and 1, which keeps the
            mode inside (0, 1).
        weights: How much each mask counts; None: 1.
    """
    each = [1.0] * len(masks) if weights is None else weights
    used = sum(
        weight * (softening + (1.0 - 2.0 * softening) * mask)
        for mask, weight in zip(masks, each, strict=True)
    )
    return Beta(prior.alpha + used, prior.beta + (sum(each) - used))
