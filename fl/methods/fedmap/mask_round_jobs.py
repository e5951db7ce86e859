"""The mask rounds of FedMAP: the weights stand still, devices step on the mask logits.

A device sends how often each place survived its draws; the posterior counts that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np

from fl.accounting import StepCost, submodel_cost
from fl.contracts import (
    Adam,
    Array,
    Demand,
    Grant,
    Job,
    Payload,
    Sent,
    Sgd,
    Stage,
    Trained,
    View,
    Work,
)
from fl.method_base.affine_demand import decided_demand, total_work
from fl.method_base.state import State
from fl.methods.fedmap.fedmap_parameters import FedMapParameters
from fl.methods.fedmap.keep_probability_posterior import KeepProbabilities, count_bits
from fl.methods.fedmap.thinning import Record, thin


@dataclass(frozen=True, eq=False)
class MaskRounds:
    """What a mask round costs, what a device does in it, and what it sends."""

    settings: FedMapParameters
    p: KeepProbabilities

    # --- what it costs ---------------------------------------------------------------------------

    def demand(self, state: State | None, view: View, chosen: Array) -> Demand:
        """As one thinning by the server's own p predicts it."""
        devices = [int(k) for k in chosen]
        by_budget = predictions_of(self, state, view.g)
        predicted = [by_budget(self.settings.gamma(view, k)) for k in devices]
        each = [
            total_work(self.stages(k, record))
            for k, (record, _) in zip(devices, predicted, strict=True)
        ]
        payloads = [
            Payload(self.bits_down(state, k), bits)
            for k, (_, bits) in zip(devices, predicted, strict=True)
        ]
        return decided_demand(chosen, each, payloads, np.zeros(len(chosen)))

    def forecast(self, view: View, k: int) -> tuple[Stage, ...]:
        """The computation of device k before round 0."""
        return self.stages(k, predictions_of(self, None, view.g)(self.settings.gamma(view, k))[0])

    def step_cost(self, child: Array, parent: Array) -> StepCost:
        """Forward through the child, backward through its parent: FedMAP, Section 4."""
        task = self.settings.task
        return submodel_cost(task.architecture, child, task.accounting, backward=parent)

    def stages(self, k: int, record: Record) -> tuple[Stage, ...]:
        """The steps, and thinning's random draws: (n + 1) J per step, n J for the upload."""
        steps, settings = self.steps(k), self.settings
        cost = StepCost(record.weights, 0.0, record.flops, 0.0)
        train = settings.task.accounting.work(cost, steps, settings.samples_per_step(k))
        draws = steps * record.draws_per_step + record.draws
        thinning = Work(flops=draws * settings.places.count)
        return Stage("train", train), Stage("thinning", thinning)

    def charged(self, job: Job, trained: Trained) -> tuple[Stage, ...]:
        """The computation by the device's own record."""
        record = Record(*trained.w[self.settings.record].tolist())
        return self.stages(job.device, replace(record, draws=self.counts(job, trained)[1]))

    def steps(self, k: int) -> int:
        """Steps of device k on the mask logits."""
        settings = self.settings
        return settings.steps(k) if settings.mask_steps is None else settings.mask_steps

    def bits_down(self, state: State | None, k: int) -> float:
        """p, and x to a device that does not hold it yet in this phase."""
        holds = state is not None and bool(state.memo["holds"][k])
        task = self.settings.task
        x = 0 if holds else task.layout.size
        return task.accounting.weight_bits(self.settings.places.count + x)

    # --- what a device does and sends ------------------------------------------------------------

    def job(self, state: State, view: View, grant: Grant) -> Job:
        """Steps of the device on s = logit(p) at frozen x."""
        # Here, since it imports torch, which pricing a scenario does without.
        from fl.methods.fedmap.mask_steps import MaskSteps

        k, g, settings = grant.device, view.g, self.settings
        gamma = settings.gamma(view, k)
        mine = MaskSteps(k, settings, gamma, self.step_cost)
        start = state.w.clone()  # [x, s, 0]
        start[settings.logits] = settings.task.tensor(self.p.mode(state, g)).logit()
        logits = settings.task.tensor(settings.layout.where(lambda slot: slot.kind == "logit"))
        phase = settings.training(
            lambda done: mine.begin(start), logits, g, k, batches="mask", effective=mine.effective
        )
        optimiser = Adam() if settings.mask_optimiser == "adam" else Sgd()
        steps = self.steps(k)
        phase = replace(phase, steps=steps, lr=settings.mask_lr, optimiser=optimiser)
        return Job(
            device=k,
            g=g,
            phases=(phase,),
            stages=None,
            payload=Payload(self.bits_down(state, k), None),
            rho=grant.rho,
            finish=mine.finish,
            note=gamma,
        )

    def upload(self, job: Job, trained: Trained) -> Sent:
        """The survival counts."""
        bits = count_bits(*self.counts(job, trained), self.settings.count_coding)
        return Sent(trained.w, trained.mask, bits)

    def counts(self, job: Job, trained: Trained) -> tuple[Array, int]:
        """m [J] and n of one more thinning by the p that was learned, without a shrink draw."""
        # Here, since it imports torch, which pricing a scenario does without.
        from fl.methods.fedmap.mask_steps import probability

        settings, owner = self.settings, f"device {job.device}"
        p = probability(trained.w[settings.logits]).cpu().numpy()
        rng = job.stream(settings.task.streams, "survival")
        drawn = thin(settings.places, p, job.note, rng, settings.least_draws, owner=owner)
        return drawn.survived.astype(np.float32), drawn.draws


@lru_cache(maxsize=1)
def predictions_of(
    rounds: MaskRounds, state: State | None, g: int
) -> Callable[[float], tuple[Record, float]]:
    """By budget: what a device will count in round g, and the bits of its counts.

    As if its p stayed the server's. One thinning per budget; only the latest round is held.
    """
    settings, p = rounds.settings, rounds.p.mode(state, g)

    @cache
    def predicted(gamma: float) -> tuple[Record, float]:
        rng = settings.task.streams.stream(f"foretold/{gamma:g}", round=g)
        drawn = thin(settings.places, p, gamma, rng, settings.least_draws, owner="some device")
        kept = settings.places.expand(drawn.mask)
        cost = rounds.step_cost(kept, kept)
        bits = count_bits(drawn.survived, drawn.draws, settings.count_coding)
        return Record(drawn.draws, drawn.draws + 1, cost.flops, cost.weights), bits

    return predicted
