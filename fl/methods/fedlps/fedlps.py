"""FedLPS. Xue et al., "Learnable Sparse Customization in Heterogeneous Edge Computing", arXiv 2412.07216, 2024."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fl.contracts import Grant, Job, Payload, Phase, Sent, Sgd, Tensor, Trained, Update, View
from fl.method_base.averaging import by_samples
from fl.method_base.method import State, param
from fl.methods.fedlps.ratio_policy import Ratios
from fl.methods.fedlps.unit_patterns import Patterns


@dataclass(frozen=True, eq=False)
class FedLPS(Patterns, Ratios):
    """Every device learns which units of the model to keep, and a bandit at the server how many.

    Units have importance scores that are trained with the weights; of every hidden layer the share s with the largest
    scores computes, anew in every step. The device keeps its scores and its masked model, which it uses.
    What travels: all weights down; up those that the last scores keep, as differences that the server averages (13).

    Departs from the paper:
        Scores get the task's gradient through the sigmoid, straight through: the paper names no estimator, and in the
        released code none arrives. They start at random, unsorted, and stay at the device (``q_init``, ``q_persist``).
        The target of (8) is a constant of the step. Exactly max(1, floor(s J)) units are kept, of equal ones the first.
        A device that was never asked is tested with the global model.
        Time in (15) is relative to the first finish times that the server sees (``time_scale``); a late device earns
        nothing. The bandit knows the initial model's accuracy on a device's data, at no cost.
        ``accounting.mask_overhead`` charges the pattern, 1 bit per unit. The scores' own few FLOPs are free.
    """

    source: ClassVar[str] = "Xue et al., arXiv 2412.07216, Algorithms 1, 2"
    mu: float = param(
        1.0,
        "weight of the distance to the received model (7)",
        source="FedLPS, Section V",
        ge=0,
        le=1e6,
    )
    lam: float = param(
        1.0, "weight of the scores' distance to |w|_J (8)", source="FedLPS, Section V", ge=0, le=1e6
    )
    reduction: str = param(
        "sum",
        "(7) and (8) as sums or means",
        source="FedLPS, eqs. (7), (8)",
        choices=("sum", "mean"),
    )
    t_norm: bool = param(
        False, "standardise |w|_J within its layer in (8)", source="fedlps.md, 4.4"
    )
    noise: float = param(
        0.0,
        "standard deviation of noise on the global model",
        source="none; 0.001 in the released code",
        ge=0,
        le=1,
    )
    weighting: str = by_samples("FedLPS, eq. (13)")

    @classmethod
    def unread(cls, values: dict[str, Any]) -> dict[str, str]:
        ruled = (
            {}
            if values["pattern"] == "learned"
            else dict.fromkeys(("lam", "t_norm"), "no scores are learned")
        )
        alone = {} if values["lam"] else {"t_norm": "lam is 0"}
        return super().unread(values) | alone | ruled

    def travel(self, kept: np.ndarray) -> Payload:
        """All weights down; up the kept ones, and 1 bit per unit where the pattern is charged (fedlps.md, 6.1)."""
        bits = self.task.accounting
        up = super().travel(kept).bits_up + bits.mask_bits_bound(self.unit_count)
        return Payload(bits_down=bits.weight_bits(self.shared_count), bits_up=up)

    # --- how a device trains ---------------------------------------------------------------------------------------

    def phases(
        self, state: State, view: View, k: int, w: Tensor, kept: np.ndarray
    ) -> tuple[Phase, ...]:
        """FedLPS, Algorithm 1, lines 16 to 23: one phase on (9), in which only what the scores keep computes."""
        objective = self.objective(state, view, k)
        regular = self.mu or self.lam or self.weight_decay
        phase = self.training(
            self.with_pattern(w, self.share(state, view, k), view.g, k),
            self.task.tensor(self.everything),
            view.g,
            k,
            effective=objective.effective,
            penalty=objective.penalty if regular else None,
            project=objective.settle if self.momentum else None,
            optimiser=Sgd(
                self.momentum, 0.0, self.clip
            ),  # what is left out does not decay: penalty does the others
        )
        return (phase,)

    def objective(self, state: State, view: View, k: int) -> Any:
        """What device k minimises in round view.g, from the model that the server sends."""
        from fl.methods.fedlps.unit_scores import Objective

        return Objective(
            self.units,
            self.share(state, view, k),
            anchor=self.units.weights(state.w),
            learned=self.pattern == "learned",
            mu=self.mu,
            lam=self.lam,
            decay=self.weight_decay,
            every_score=self.q_grad == "all",
            mean=self.reduction == "mean",
            standardise=self.t_norm,
        )

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        return replace(
            super().configure(state, view, grant),
            finish=self.objective(state, view, grant.device).finish,
        )

    # --- what returns, and what is used ----------------------------------------------------------------------------

    def received(self, state: State, k: int) -> Tensor:
        """The server's dense weights, and the device's own scores."""
        return self.with_scores(state.w, state.local.get(k), state.g, k)

    def keep(self, trained: Trained) -> Tensor:
        """The masked model (12) with its scores and pattern."""
        return trained.w

    def encode(self, job: Job, trained: Trained) -> Sent:
        return Sent(trained.w, self.held(trained.w) & self.shared_mask)

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """FedLPS, eq. (13)."""
        from fl.method_base.aggregation import mean_of_differences

        sent = [self.encode(update.job, update.result()) for update in updates]
        weights = [self._weight(view, update.job.device) for update in updates]
        w = mean_of_differences(state.w, sent, weights) if sent else state.w
        if self.noise:
            draws = self.task.streams.stream("noise", round=state.g).standard_normal(
                len(w), dtype=np.float32
            )
            w = w + self.noise * self.task.tensor(draws) * self.shared_mask
        return replace(state, g=state.g + 1, w=w, notes=self.noted(state, view))

    def personalise(self, state: State, k: int) -> Tensor:
        return state.local.get(k, state.w)

    def probes(self, state: State) -> dict[str, Tensor]:
        return {"global": state.w}

    def measures(self, state: State) -> dict[str, float]:
        return super().measures(state) | {
            "never trained": 1.0 - len(state.local) / self.task.devices
        }
