"""A federated method: the six questions, answered as FedAvg answers them.

Who takes part (`select`), what it costs (`stages`, `payload`, `rho_bounds`), which weights (`mask`, `personal`), how a
device trains (`local_update`), what returns and how it combines (`encode`, `aggregate`), what a device uses
(`personalise`). All hooks are pure; the method object holds hyper-parameters only. A new method answers the questions
in which it differs; `local_update` and `stages` belong together, since one is trained and the other is charged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from edgesim.contracts import (
    Demand,
    Grant,
    Job,
    Payload,
    Phase,
    Report,
    Sent,
    Stage,
    Tensor,
    Trained,
    Update,
    View,
    Work,
)
from fl.accounting import StepCost, step_cost
from fl.params import MethodError, bind, check, param, parameters
from fl.state import State
from fl.task import Task

__all__ = ["Method", "MethodError", "State", "bind", "check", "param", "parameters"]

Array = np.ndarray
STEPS_SOURCE = "our choice: Liu et al. give no number of local steps"
RATE_SOURCE = "Liu et al., Section V"
MAX_RATE = 1e6  # far above any use, far below what a float32 holds


@dataclass(frozen=True, eq=False)
class Method(ABC):
    """The answers that methods share."""

    source: ClassVar[str] = "none given"
    task: Task = field(repr=False)
    participants: int | None = param(
        None, "devices asked per round, drawn uniformly; none: all that are idle", source="Liu et al.: all", ge=1
    )
    weighting: str = param(
        "uniform",
        "weight of a device in the mean: the same for all, or its number of samples",
        source="Liu et al., eqs. (11), (26)",
        choices=("uniform", "samples"),
    )

    @classmethod
    def conflict(cls, values: dict[str, Any]) -> MethodError | None:
        """What is wrong where parameters, each allowed by itself, contradict each other."""
        return None

    @classmethod
    def unread(cls, values: dict[str, Any]) -> dict[str, str]:
        """Parameters without effect beside these values, and why: giving one is an error."""
        return {}

    # --- who -------------------------------------------------------------------------------------------------------

    def start(self) -> State:
        return State(0, self.task.initial())

    def select(self, state: State, view: View) -> Array:
        """Devices asked in this round, int [S], in rising order."""
        if self.participants is None or self.participants >= len(view.idle):
            return np.sort(view.idle)
        lots = self.task.streams.stream("select", round=view.g).random(self.task.devices)[view.idle]
        return np.sort(view.idle[np.argsort(lots, kind="stable")[: self.participants]])

    def observe(self, state: State, report: Report) -> State:
        return state

    # --- what it costs ---------------------------------------------------------------------------------------------

    @abstractmethod
    def stages(self, k: int, rho: float) -> tuple[Stage, ...]:
        """The computation of device k at pruning ratio rho, in order; affine in rho."""

    def payload(self, rho: float) -> Payload:
        """What travels: down the shared weights, up the kept ones; affine in rho up to the mask's own bits."""
        bits = self.task.accounting.weight_bits
        return Payload(bits_down=bits(self.shared_count), bits_up=bits(self.shared_count, rho))

    def rho_bounds(self) -> tuple[float, float]:
        """Pruning ratios that the allocator may choose; equal where the method decides."""
        return 0.0, 0.0

    def planned(self, k: int, rho: float) -> tuple[Work, float]:
        """Work and upload bits that the allocation plans with; affine in rho."""
        return total_work(self.stages(k, rho)), self.payload(rho).bits_up

    def demand(self, state: State, view: View, chosen: Array) -> Demand:
        """`planned` of the chosen devices, as an affine function of rho."""
        low, high = self.rho_bounds()
        fixed, prunable = np.stack([self._affine(int(k)) for k in chosen]).transpose(1, 2, 0)
        size = len(chosen)
        return Demand(
            devices=np.asarray(chosen),
            bits_fixed=fixed[2],
            bits_prunable=prunable[2],
            work_fixed=Work(*fixed[:2]),
            work_prunable=Work(*prunable[:2]),
            rho_min=np.full(size, low),
            rho_max=np.full(size, high),
            weight=np.ones(size),
            bits_down=np.full(size, self.payload(low).bits_down),
        )

    def _affine(self, k: int) -> Array:
        """Fixed and prunable (weight steps, FLOPs, bits) [2, 3] of device k.

        Where the method decides rho, all of it counts as prunable: the threshold then makes the device late, never
        infeasible.
        """
        low, high = self.rho_bounds()
        if low == high < 1:
            return np.stack([np.zeros(3), self._costs(k, low) / (1 - low)])
        fixed = self._costs(k, 1.0)
        return np.stack([fixed, self._costs(k, 0.0) - fixed])

    def _costs(self, k: int, rho: float) -> Array:
        work, bits = self.planned(k, rho)
        return np.array([work.weight_steps, work.flops, bits])

    def work(self, k: int, trained: Array, steps: int, rho: float = 0.0) -> Work:
        """Work of ``steps`` steps of device k on the weights ``trained`` bool [P], pruned by rho where prunable."""
        return self.task.accounting.work(self._step_cost(trained), steps, self.task.batch(k), rho)

    def _step_cost(self, trained: Array) -> StepCost:
        """Remembered per mask object: the masks of a method's parts are the same arrays in every round."""
        memory = self._step_costs
        known = next((cost for mask, cost in memory if mask is trained), None)
        if known is None:
            known = step_cost(self.task.architecture, trained, self.prunable())
            memory.append((trained, known))
        return known

    @cached_property
    def _step_costs(self) -> deque[tuple[Array, StepCost]]:
        return deque(maxlen=8)

    # --- which weights ---------------------------------------------------------------------------------------------

    def personal(self) -> Array:
        """Weights that never leave their device, bool [P]: v of Liu."""
        return self.task.layout.role("none")

    def prunable(self) -> Array:
        """Weights that rho prunes, bool [P]."""
        return self.task.layout.role("none")

    @cached_property
    def everything(self) -> Array:
        """All weights, bool [P]."""
        return np.ones(self.task.layout.size, dtype=bool)

    @cached_property
    def shared(self) -> Array:
        """Weights that are not personal, bool [P]: u of Liu."""
        return ~self.personal()

    def mask(self, state: State, grant: Grant) -> Array:
        """Weights that the device trains in this round, bool [P], where that is known before it trains."""
        return self.everything

    @cached_property
    def shared_count(self) -> int:
        """Weights that travel when nothing is pruned: N_u."""
        return int(self.shared.sum())

    @cached_property
    def shared_mask(self) -> Tensor:
        return self.task.tensor(self.shared)

    @cached_property
    def personal_index(self) -> Tensor:
        return self.task.tensor(np.flatnonzero(self.personal()))

    def weights(self) -> dict[str, int]:
        """How many weights there are in all, global, personal."""
        total = self.task.layout.size
        return {"total": total, "global": self.shared_count, "personal": total - self.shared_count}

    # --- how a device trains ---------------------------------------------------------------------------------------

    @abstractmethod
    def local_update(self, state: State, k: int, w: Tensor, grant: Grant) -> tuple[Phase, ...]:
        """The phases of device k from its model w [P]. The shared weights that the last phase trains travel."""

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        """The order for one device: what it trains, what it is charged, what it sends."""
        k = grant.device
        return Job(
            device=k,
            g=view.g,
            phases=self.local_update(state, k, self.personalise(state, k), grant),
            stages=self.stages(k, grant.rho),
            payload=self.payload(grant.rho),
            rho=grant.rho,
        )

    # --- what returns, and what is used ----------------------------------------------------------------------------

    def encode(self, job: Job, trained: Trained) -> Sent:
        """The upload: the shared weights that the last phase trained."""
        return Sent(trained.w, trained.mask & self.shared_mask)

    def retain(self, state: State, updates: Sequence[Update]) -> State:
        """Personal weights of the devices that finished training, received or not."""
        if not self.personal().any():
            return state
        kept = {update.job.device: update.result().w[self.personal_index] for update in updates}
        return replace(state, local=state.local | kept)

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """The mean of each weight over the devices that sent it: Liu, eq. (26)."""
        from fl.aggregate import mean_over_holders

        sent = [self.encode(update.job, update.result()) for update in updates]
        weights = [self._weight(view, update.job.device) for update in updates]
        return replace(state, g=state.g + 1, w=mean_over_holders(state.w, sent, weights) if sent else state.w)

    def _weight(self, view: View, k: int) -> float:
        return float(view.samples[k]) if self.weighting == "samples" else 1.0

    def personalise(self, state: State, k: int) -> Tensor:
        """The model w [P] of device k: the shared weights and its own personal ones, [u, v_k]."""
        if k not in state.local:
            return state.w
        w = state.w.clone()
        w[self.personal_index] = state.local[k]
        return w


def total_work(stages: Sequence[Stage]) -> Work:
    """The sum over stages."""
    return Work(sum(s.work.weight_steps for s in stages), sum(s.work.flops for s in stages))
