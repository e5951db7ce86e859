"""A federated method: the six questions, answered as FedAvg answers them.

Who takes part (`select`), what it costs (`stages`, `payload`, `rho_bounds`), which weights (`mask`, `personal`), how a
device trains (`local_update`), what returns and how it combines (`encode`, `aggregate`), what a device uses
(`personalise`). All hooks are pure; the method object holds hyper-parameters only. A new method answers the questions
in which it differs; `local_update` and `stages` belong together, since one is trained and the other is charged.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fl.contracts import (
    Grant,
    Job,
    Phase,
    Report,
    Sent,
    Tensor,
    Trained,
    Update,
    View,
)
from fl.errors import MethodError
from fl.method_base.costs import Costs
from fl.method_base.hyperparameters import bind, check, param, parameters
from fl.method_base.state import State
from fl.models.architectures import Architecture
from fl.models.layout import Layout, Slot
from fl.task import LearningTask

__all__ = ["Method", "MethodError", "State", "bind", "check", "param", "parameters"]

Array = np.ndarray
STEPS_SOURCE = "our choice: Liu et al. give no number of local steps"
RATE_SOURCE = "Liu et al., Section V"
PRUNING = ("mask_overhead", "sparse_efficiency")
MAX_RATE = 1e6  # far above any use, far below what a float32 holds


@dataclass(frozen=True, eq=False)
class Method(Costs):
    """The answers that methods share."""

    source: ClassVar[str] = "none given"
    reads: ClassVar[tuple[str, ...] | None] = (
        None  # which of accounting's PRUNING keys; None: all, where it prunes
    )
    task: LearningTask = field(repr=False)
    participants: int | None = param(
        None,
        "devices asked per round, drawn uniformly; none: all that are idle",
        source="Liu et al.: all",
        ge=1,
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

    @classmethod
    def architecture(cls, given: Architecture) -> Architecture:
        """The model that the method trains, made from the one that the scenario names; its `task` has it."""
        return given

    # --- who -------------------------------------------------------------------------------------------------------

    def start(self) -> State:
        """The architecture's initial weights; what the method adds begins at zero."""
        w = self.task.initial()
        more = self.layout.size - len(w)
        return State(0, w if not more else padded(w, more))

    def extra(self) -> tuple[Slot, ...]:
        """Coordinates behind the architecture's own that the method learns too: thresholds, scores, logits."""
        return ()

    @cached_property
    def layout(self) -> Layout:
        """Which slice of w [P] is what: the architecture's tensors, then what the method adds."""
        return self.task.layout.extended(self.extra())

    def select(self, state: State, view: View) -> Array:
        """Devices asked in this round, int [S], in rising order."""
        if self.participants is None or self.participants >= len(view.idle):
            return np.sort(view.idle)
        lots = self.task.streams.stream("select", round=view.g).random(self.task.devices)[view.idle]
        return np.sort(view.idle[np.argsort(lots, kind="stable")[: self.participants]])

    def observe(self, state: State, report: Report) -> State:
        return state

    # --- which weights ---------------------------------------------------------------------------------------------

    def personal(self) -> Array:
        """Weights that never leave their device, bool [P]: v of Liu."""
        return self.layout.role("none")

    def prunable(self) -> Array:
        """Weights that rho prunes, bool [P]."""
        return self.layout.role("none")

    def read_keys(self) -> tuple[str, ...]:
        """The keys of the scenario's accounting, of those about pruning, that have an effect here."""
        return self.reads if self.reads is not None else PRUNING if self.prunable().any() else ()

    @cached_property
    def everything(self) -> Array:
        """All weights, bool [P]."""
        return np.ones(self.layout.size, dtype=bool)

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
        total = self.layout.size
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
            phases=self.local_update(state, k, self.received(state, k), grant),
            stages=self.stages(k, grant.rho),
            payload=self.payload(grant.rho),
            rho=grant.rho,
        )

    # --- what returns, and what is used ----------------------------------------------------------------------------

    def encode(self, job: Job, trained: Trained) -> Sent:
        """The upload: the shared weights that the last phase trained."""
        return Sent(trained.w, trained.mask & self.shared_mask)

    def keep(self, trained: Trained) -> Tensor:
        """What stays at a device that finished training: its personal weights, in their order in w."""
        return trained.w[self.personal_index]

    def retain(self, state: State, updates: Sequence[Update]) -> State:
        """What stays at the devices that finished training, received or not."""
        if not self.personal().any():
            return state
        kept = {update.job.device: self.keep(update.result()) for update in updates}
        return replace(state, local=state.local | kept)

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """The mean of each weight over the devices that sent it: Liu, eq. (26)."""
        from fl.method_base.aggregation import mean_over_holders

        sent = [self.encode(update.job, update.result()) for update in updates]
        weights = [self._weight(view, update.job.device) for update in updates]
        return replace(
            state, g=state.g + 1, w=mean_over_holders(state.w, sent, weights) if sent else state.w
        )

    def _weight(self, view: View, k: int) -> float:
        return float(view.samples[k]) if self.weighting == "samples" else 1.0

    def received(self, state: State, k: int) -> Tensor:
        """The model w [P] from which device k starts when it is asked: the one that it uses."""
        return self.personalise(state, k)

    def personalise(self, state: State, k: int) -> Tensor:
        """The model w [P] of device k: the shared weights and its own personal ones, [u, v_k]."""
        if k not in state.local:
            return state.w
        w = state.w.clone()
        w[self.personal_index] = state.local[k]
        return w

    def probes(self, state: State) -> dict[str, Tensor]:
        """Further models w [P], by name, whose accuracy on the whole test set is worth a line of the log."""
        return {}

    def measures(self, state: State) -> dict[str, float]:
        """Further numbers of the round, by name: densities, sizes."""
        return {}


def padded(w: Tensor, more: int) -> Tensor:
    """w [P] and so many zeros behind it."""
    grown = w.new_zeros(len(w) + more)
    grown[: len(w)] = w
    return grown
