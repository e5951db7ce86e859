"""FedLPS: learnable sparse customisation, with a bandit for the size of each device's submodel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fl.accounting import forward_flops
from fl.contracts import (
    Array,
    Grant,
    Job,
    Payload,
    Phase,
    Report,
    Sent,
    Sgd,
    Stage,
    Tensor,
    Trained,
    Update,
    View,
)
from fl.masks.unit_masks import owners
from fl.method_base.aggregation import mean_of_differences
from fl.method_base.state import State
from fl.methods.fedlps.fedlps_parameters import FedLPSParameters
from fl.methods.fedlps.ratio_policy import RatioPolicy
from fl.methods.fedlps.unit_patterns import UnitPatterns
from fl.models.layout import Slot

if TYPE_CHECKING:
    from fl.methods.fedlps.unit_scores import PatternObjective


@dataclass(frozen=True, eq=False)
class FedLPS(FedLPSParameters):
    """Every device learns which units of the model to keep, and a bandit at the server how many.

    Xue et al., "Learnable Sparse Customization in Heterogeneous Edge Computing", arXiv 2412.07216,
    2024. Units have importance scores that are trained with the weights (`unit_patterns`); of every
    hidden layer the share s (`ratio_policy`) with the largest scores computes, anew in every step.
    The device keeps its scores and its masked model, which it uses.
    What travels: all weights down; up those that the last scores keep, as differences that the
    server averages (13).

    Departs from the paper (see docs/papers/fedlps.md):
        Scores get the task's gradient through the sigmoid, straight through: the paper names no
        estimator, and in the released code none arrives. They start at random, unsorted, and stay
        at the device (``q_init``, ``q_persist``).
        The target of (8) is a constant of the step. Exactly max(1, floor(s J)) units are kept, of
        equal ones the first.
        A device that was never asked is tested with the global model.
        Time in (15) is relative to the first finish times that the server sees (``time_scale``); a
        device that is late earns nothing where the server does not wait for it. The bandit knows
        the initial model's accuracy on a device's data, at no cost.
        ``accounting.mask_overhead`` charges the pattern, J bit or J H2(share of the units that are
        kept). The scores' own few FLOPs are free.
    """

    source: ClassVar[str] = "Xue et al., arXiv 2412.07216, Algorithms 1, 2"
    stale: ClassVar[str] = "damp"

    @cached_property
    def ratios(self) -> RatioPolicy:
        return RatioPolicy(self)

    @cached_property
    def patterns(self) -> UnitPatterns:
        return UnitPatterns(self)

    def observe(self, state: State, report: Report) -> State:
        return self.ratios.observed(state, report)

    # --- which weights ---------------------------------------------------------------------------

    @cached_property
    def owners(self) -> Array:
        """The unit of each weight, int [P]; -1: of none."""
        return owners(self.task.layout)

    def extra(self) -> tuple[Slot, ...]:
        return self.patterns.slots()

    def prunable(self) -> Array:
        extra = self.layout.size - self.task.layout.size
        return np.pad(self.owners >= 0, (0, extra))

    def kept(self, state: State | None, view: View, k: int) -> Array:
        return self.patterns.first_units(self.ratios.share(state, view, k))

    def own_loss(self) -> str | None:
        return "chooses ratios by accuracy (ratio: p-ucbv)" if self.ratio == "p-ucbv" else None

    # --- what it costs ---------------------------------------------------------------------------

    def submodel_stages(self, view: View, k: int, kept: Array) -> tuple[Stage, ...]:
        """The computation of a round, the same for all patterns of one share.

        Where all scores learn, the gradients by the weights are dense, each as costly as the
        forward pass of its layer.
        """
        (stage,) = super().submodel_stages(view, k, kept)
        if self.q_grad == "kept" or self.pattern != "learned":
            return (stage,)
        model, accounting = self.task.architecture, self.task.accounting
        left_out = forward_flops(model, accounting) - forward_flops(model, accounting, kept)
        flops = stage.work.flops + self.steps(k) * self.samples_per_step(k) * left_out
        return (replace(stage, work=replace(stage.work, flops=flops)),)

    def submodel_payload(self, kept: Array) -> Payload:
        """All weights down; up the kept ones, and the pattern of units where that is charged."""
        bits, count = self.task.accounting, self.patterns.unit_count
        up = bits.weight_bits(int((kept & self.shared).sum()))
        units = np.bincount(self.owners[kept[: len(self.owners)] & (self.owners >= 0)])
        pattern = bits.mask_bits(count, np.count_nonzero(units) / count)
        return Payload(bits_down=bits.weight_bits(self.shared_count), bits_up=up + pattern)

    # --- how a device trains ---------------------------------------------------------------------

    def phases(self, state: State, view: View, k: int, w: Tensor, kept: Array) -> tuple[Phase, ...]:
        """One phase on (9), where only what the scores keep computes: Algorithm 1, lines 16-23."""
        objective = self.objective(state, view, k)
        regular = self.mu or self.lam or self.weight_decay
        phase = self.training(
            self.patterns.with_pattern(w, self.ratios.share(state, view, k), view.g, k),
            self.task.tensor(self.everything),
            view.g,
            k,
            effective=objective.effective,
            penalty=objective.penalty if regular else None,
            project=objective.settle if self.momentum else None,
            # What is left out does not decay: the penalty does the others.
            optimiser=Sgd(self.momentum, 0.0, self.clip),
        )
        return (phase,)

    def noted(self, state: State, view: View, k: int) -> float:
        """The ratio that the device executes."""
        return self.ratios.share(state, view, k)

    def objective(self, state: State, view: View, k: int) -> PatternObjective:
        """What device k minimises in round view.g, from the model that the server sends."""
        # Here, since it imports torch, which pricing a scenario does without.
        from fl.methods.fedlps.unit_scores import PatternObjective

        return PatternObjective(
            self.patterns.units,
            self.ratios.share(state, view, k),
            anchor=self.patterns.units.weights(state.w),
            learned=self.pattern == "learned",
            mu=self.mu,
            lam=self.lam,
            decay=self.weight_decay,
            every_score=self.q_grad == "all",
            mean=self.reduction == "mean",
            standardise=self.t_norm,
        )

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        job = super().configure(state, view, grant)
        return replace(job, finish=self.objective(state, view, grant.device).finish)

    # --- what returns, and what is used ----------------------------------------------------------

    def received(self, state: State, k: int) -> Tensor:
        """The server's dense weights, and the device's own scores."""
        return self.patterns.with_scores(state.w, state.local.get(k), state.g, k)

    def local_part(self, trained: Trained) -> Tensor:
        """The masked model (12) with its scores and pattern."""
        return trained.w

    def retain(self, state: State, updates: Sequence[Update]) -> State:
        """Scores always stay; the masked model where its share is above ``use_above``."""
        after = super().retain(state, updates)
        if self.use_above == 0:
            return after
        wide = {one.job.device for one in updates if one.job.note > self.use_above}
        narrow = {one.job.device for one in updates} - wide
        older = {
            k: state.local[k].where(self.shared_mask, after.local[k])
            for k in narrow & state.local.keys()
        }
        used = sorted(wide.union(state.notes.get("used", [])))
        return replace(after, local=after.local | older, notes=after.notes | {"used": used})

    def recovered(self, saved: State, now: State) -> State:
        """A device knows whether it uses its own model, whatever the server has stored."""
        after = super().recovered(saved, now)
        known = {name: value for name, value in now.notes.items() if name == "used"}
        return replace(after, notes=after.notes | known)

    def encode(self, job: Job, trained: Trained) -> Sent:
        return Sent(trained.w, self.patterns.held(trained.w) & self.shared_mask)

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """The mean difference: FedLPS, eq. (13)."""
        w = mean_of_differences(state.w, *self.arrived(view, updates))
        if self.noise:
            rng = self.task.streams.stream("noise", round=state.g)
            draws = self.task.tensor(rng.standard_normal(len(w), dtype=np.float32))
            w = w + self.noise * draws * self.shared_mask
        return replace(state, g=state.g + 1, w=w)

    def personalise(self, state: State, k: int) -> Tensor:
        if self.use_above and k not in state.notes.get("used", []):
            return state.w
        return state.local.get(k, state.w)

    def probes(self, state: State) -> dict[str, Tensor]:
        return {"global": state.w}

    def measures(self, state: State) -> dict[str, float]:
        executed = list(state.notes.get("executed", {}).values())
        ratios = {"mean ratio": float(np.mean(executed))} if executed else {}
        return ratios | {"never trained": 1.0 - len(state.local) / self.task.devices}
