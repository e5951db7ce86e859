"""The mask rounds of FedMAP: the weights stand still, devices step on the mask logits, survival counts travel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from fl.accounting import StepCost, submodel_cost
from fl.contracts import (
    Adam,
    Demand,
    Grant,
    Job,
    Payload,
    Sent,
    Sgd,
    Stage,
    Trained,
    Update,
    View,
    Work,
)
from fl.masks import posterior
from fl.masks.thinning import Record, Rules, thin_for
from fl.method_base.costs import total_work
from fl.method_base.method import MAX_RATE, State, param
from fl.methods.fedmap.keep_probabilities import OURS, Belief

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class MaskRounds(Belief):
    """Devices learn masks by steps on s = logit(p) and send how often each place survived; the posterior counts that.

    What a model round does is a subclass's.
    """

    mask_steps: int | None = param(
        None,
        "steps on the mask logits per round; none: as on the weights; 0 is the control",
        source=OURS,
        ge=0,
    )
    mask_optimiser: str = param(
        "adam", "of the mask logits", source="fedmap.md, H4", choices=("adam", "sgd")
    )
    mask_lr: float = param(
        0.1, "step size on the mask logits, eta_m", source="fedmap.md, H4", gt=0, le=MAX_RATE
    )
    mask_scaler: bool = param(
        True,
        "divide a layer's kept weights by the root of their share",
        source="fedmap.md, H7b: not in the paper",
    )
    literal_thinning: bool = param(
        False, "no draw where the budget is the whole model", source="fedmap.md, E1"
    )
    exponent: str = param(
        "draws",
        "n of (7): draws made, or draws survived as printed",
        source="fedmap.md, E4",
        choices=("draws", "survivals"),
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
        source="fedmap.md, section 5",
        choices=("raw", "entropy"),
    )

    @property
    def rules(self) -> Rules:
        return Rules(
            0 if self.literal_thinning else 1, self.exponent, self.surrogate, self.mask_scaler
        )

    # --- what a mask round costs -----------------------------------------------------------------------------------

    def demand(self, state: State | None, view: View, chosen: Array) -> Demand:
        """In a mask round as one thinning of the server's own p foretells it; the device's own is known afterwards."""
        if not self.learns_masks(view.g):
            return super().demand(state, view, chosen)
        foretold = {
            gamma: self._foretold(state, view, gamma)
            for gamma in {self.gamma(view, int(k)) for k in chosen}
        }
        records, bits = zip(*(foretold[self.gamma(view, int(k))] for k in chosen), strict=True)
        works = [
            total_work(self._mask_stages(int(k), one))
            for k, one in zip(chosen, records, strict=True)
        ]
        nothing = np.zeros(len(chosen))
        return Demand(
            devices=np.asarray(chosen),
            bits_fixed=nothing,
            bits_prunable=np.array(bits),
            work_fixed=Work(nothing, nothing),
            work_prunable=Work(*np.array([(w.weight_steps, w.flops) for w in works]).T),
            rho_min=nothing,
            rho_max=nothing,
            weight=np.ones(len(chosen)),
            bits_down=np.array([self._mask_bits_down(state, int(k)) for k in chosen]),
        )

    def forecast(self, view: View, k: int, rho: float) -> tuple[Stage, ...]:
        return self._mask_stages(k, self._foretold(None, view, self.gamma(view, k))[0])

    def _foretold(self, state: State | None, view: View, gamma: float) -> tuple[Record, float]:
        """What a device of that budget will count, and the bits of its counts, where its p stays the server's."""
        known, at = self.known(state), ("foretold", view.g, gamma)
        if at not in known:
            rng = self.task.streams.stream(f"foretold/{gamma:g}", round=view.g)
            drawn = thin_for(
                "some device", self.grain, self.chances(state, view.g), gamma, rng, self.rules.least
            )
            kept = self.grain.expand(drawn.mask)
            cost = self.step_cost_of(kept, kept)
            bits = posterior.count_bits(drawn.survived, drawn.draws, self.count_coding)
            known[at] = Record(drawn.draws, drawn.draws + 1, cost.flops, cost.weights), bits
        return known[at]

    def step_cost_of(self, child: Array, parent: Array) -> StepCost:
        """Forward through the child, backward through its parent: FedMAP, Section 4."""
        return submodel_cost(self.task.architecture, child, self.task.accounting, backward=parent)

    def _mask_stages(self, k: int, record: Record) -> tuple[Stage, ...]:
        """The steps, and the random draws of thinning, J each: (n + 1) J per step and n J for the upload."""
        steps = self._mask_steps(k)
        cost = StepCost(record.weights, 0.0, record.flops, 0.0)
        train = self.task.accounting.work(cost, steps, self.samples_per_step(k))
        draws = steps * record.draws_per_step + record.draws
        return Stage("train", train), Stage("thinning", Work(flops=draws * self.grain.count))

    def _mask_bits_down(self, state: State | None, k: int) -> float:
        """p, and x to a device that does not hold it yet in this phase."""
        holds = state is not None and bool(state.memo["holds"][k])
        return self.task.accounting.weight_bits(
            self.grain.count + (0 if holds else self.task.layout.size)
        )

    def _mask_steps(self, k: int) -> int:
        return self.steps(k) if self.mask_steps is None else self.mask_steps

    def charged(self, job: Job, trained: Trained) -> tuple[Stage, ...]:
        return self._mask_stages(job.device, Record(*trained.w[self.record].tolist()))

    # --- how a device learns masks, and what becomes of it ---------------------------------------------------------

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        if not self.learns_masks(view.g):
            return super().configure(state, view, grant)
        from fl.masks.probing import MaskSteps

        k, g = grant.device, view.g
        upload = partial(self.task.streams.stream, "survival", device=k, round=g)
        mine = MaskSteps(k, self.grain, self.rules, self.gamma(view, k), self.step_cost_of, upload)
        start = state.w.clone()
        start[self.logits] = self.task.tensor(
            self.chances(state, g)
        ).logit()  # [x, s = logit(p), 0]
        logits = self.task.tensor(self.layout.where(lambda slot: slot.kind == "logit"))
        optimiser = Adam() if self.mask_optimiser == "adam" else Sgd()
        phase = self.training(
            lambda done: mine.begin(start), logits, g, k, batches="mask", effective=mine.effective
        )
        phase = replace(phase, steps=self._mask_steps(k), lr=self.mask_lr, optimiser=optimiser)
        return Job(
            device=k,
            g=g,
            phases=(phase,),
            stages=None,
            payload=Payload(self._mask_bits_down(state, k), None),
            rho=grant.rho,
            finish=mine.finish,
        )

    def encode(self, job: Job, trained: Trained) -> Sent:
        """In a mask round the survival counts."""
        if not self.learns_masks(job.g):
            return super().encode(job, trained)
        survived, draws = self._counts(trained)
        return Sent(
            trained.w, trained.mask, posterior.count_bits(survived, draws, self.count_coding)
        )

    def _counts(self, trained: Trained) -> tuple[Array, int]:
        """m [J] and n."""
        return trained.w[self.logits].cpu().numpy(), int(trained.w[self.record][0])

    def retain(self, state: State, updates: Sequence[Update]) -> State:
        """Who took part in a mask round holds x until a model round changes it."""
        holds = state.memo["holds"] & self.learns_masks(state.g)
        if self.learns_masks(state.g):
            holds[[update.job.device for update in updates]] = True
        return replace(super().retain(state, updates), memo=state.memo | {"holds": holds})

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """In a mask round the posterior counts what arrived, and x stays: FedMAP, (9)."""
        memo = {"gamma": self.task.tensor(np.array(view.model_budget))}
        if not self.learns_masks(state.g):
            state = super().aggregate(state, view, updates)
            return replace(state, memo=state.memo | memo)
        at = state.g % self.cycle
        drops = self.reset_rounds is not None and at > 0 and at % self.reset_rounds == 0
        before = self._prior if drops else self.belief(state, state.g)
        after = before.counted([self._counts(update.result()) for update in updates])
        memo |= {"alpha": self.task.tensor(after.alpha), "beta": self.task.tensor(after.beta)}
        return replace(state, g=state.g + 1, memo=state.memo | memo)
