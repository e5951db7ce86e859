"""Base class of federated methods: the questions of a round, answered as FedAvg answers them.

Who takes part (`select`, `observe`), what it costs (`stages`, `payload`, `rho_bounds`, `demand`),
which weights (`mask`, `personal`), how a device trains (`local_update`), what returns and how it is
combined (`encode`, `aggregate`), which model a device uses (`personalise`). All hooks are pure; the
method object holds hyper-parameters, and what follows from them alone. A new method answers the
questions in which it differs; `local_update` and `stages` belong together, since one is trained and
the other is charged.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fl.accounting import StepCost, step_cost
from fl.contracts import (
    Array,
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
from fl.errors import MethodError
from fl.method_base.affine_demand import affine_demand, cost_columns, total_work, upload_bits
from fl.method_base.aggregation import mean_over_holders
from fl.method_base.hook_answers import (
    answer,
    answers,
    bounds_of,
    coordinates,
    not_personal,
    number,
    phases_of,
    sent_of,
    weights,
)
from fl.method_base.hyperparameter_declaration import (
    bind,
    check,
    param,
    parameters,
    with_length,
)
from fl.method_base.stale_updates import MovedUpdate, WeightedUpdate, as_it_came
from fl.method_base.state import State
from fl.models.architectures import Architecture
from fl.models.layout import Layout, Slot
from fl.selection.selection_rules import one_of_many, uniform
from fl.task import LearningTask

__all__ = ["Method", "State", "bind", "check", "param", "parameters", "with_length"]

STEPS_SOURCE = "our choice: Liu et al. give no number of local steps"
RATE_SOURCE = "Liu et al., Section V"
PRUNING = ("mask_overhead", "sparse_efficiency")
MAX_RATE = 1e6  # far above any use, far below what a float32 holds
DEVICE_COSTS = {"stages", "planned", "work"}  # hooks that say what one device computes


@dataclass(frozen=True, eq=False)
class Method(metaclass=ABCMeta):
    """The answers that methods share.

    Attributes:
        source: Paper, and algorithm or section.
        reads: Which of the scenario's accounting keys about pruning (`PRUNING`) have an effect;
            None: all, where the method prunes.
        stale: What becomes of updates from older versions of the model, one of
            `fl.contracts.STALENESS`: damp | count | refuse. ``count`` overrides `damped`.
        partial_work: Whether updates of fewer steps than planned have a meaning; of the class
            itself, not inherited.
        cost_by_samples: Whether `stages` depends on the device through its number of samples
            alone, so that devices with equally many are priced once. A class that overrides
            `stages`, `planned` or `work` and does not declare it is asked for every device.
    """

    source: ClassVar[str] = "none given"
    reads: ClassVar[tuple[str, ...] | None] = None
    stale: ClassVar[str] = "damp"
    partial_work: ClassVar[bool] = False
    cost_by_samples: ClassVar[bool] = True
    task: LearningTask = field(repr=False)
    participants: int | None = param(
        None,
        "devices asked per round, by learning.selection; none: all that are idle",
        source="Liu et al.: all",
        ge=1,
    )
    weighting: str = param(
        "uniform",
        "weight of a device in the mean: the same for all, or its number of samples",
        source="Liu et al., eqs. (11), (26)",
        choices=("uniform", "samples"),
    )

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if DEVICE_COSTS & vars(cls).keys() and "cost_by_samples" not in vars(cls):
            cls.cost_by_samples = False

    # --- hyper-parameters and model --------------------------------------------------------------

    @classmethod
    def conflict(cls, values: dict[str, Any]) -> MethodError | None:
        """What is wrong where parameters, each allowed by itself, contradict each other."""
        return None

    @classmethod
    def unread(cls, values: dict[str, Any]) -> dict[str, str]:
        """Parameters without effect beside these values, and why: giving one is an error."""
        return {}

    @classmethod
    def by_length(cls, rounds: int, asked: int) -> dict[str, Any]:
        """Parameters that are none by default and then follow from the length of a run.

        Args:
            rounds: Of the run.
            asked: Devices that are asked per round, K epsilon.
        """
        return {}

    @classmethod
    def architecture(cls, given: Architecture) -> Architecture:
        """The model that the method trains, made from the one that the scenario names."""
        return given

    def extra(self) -> tuple[Slot, ...]:
        """Coordinates behind the architecture's own that are learned too: thresholds, scores."""
        return ()

    @cached_property
    def layout(self) -> Layout:
        """Which slice of w [P] is what: the architecture's tensors, then those of `extra`."""
        return self.task.layout.extended(self.extra())

    def start(self) -> State:
        """The architecture's initial weights; what the method adds begins at zero."""
        w = self.task.initial()
        more = self.layout.size - len(w)
        return State(0, w if not more else padded(w, more))

    # --- who -------------------------------------------------------------------------------------

    def select(self, state: State, view: View) -> Array:
        """Devices asked in this round, int [S], in rising order: by the task's selection rule."""
        count = view.places(self.participants)
        if self.task.selection is uniform:
            one = one_of_many(view, self.task.streams)
            if one is not None:
                return one
        stream = self.task.streams.stream("select", round=view.occasion)
        return np.sort(self.task.selection(view, count, stream))

    def leaves_choice_open(self) -> bool:
        """Does the task's selection rule choose the devices of every round?"""
        return type(self).select is Method.select

    def observe(self, state: State, report: Report) -> State:
        """The state after the server has seen how the round of every device ended."""
        return state

    # --- how much --------------------------------------------------------------------------------

    @abstractmethod
    def stages(self, k: int, rho: float) -> tuple[Stage, ...]:
        """The computation of device k at pruning ratio rho, in order; affine in rho.

        Args:
            k: Device.
            rho: Pruned share of the prunable weights, in [0, 1]; may be an array.
        """

    def payload(self, rho: float) -> Payload:
        """What travels: down the shared weights, up the kept ones.

        Affine in rho up to the mask's own bits.
        """
        bits = self.task.accounting.weight_bits
        return Payload(bits_down=bits(self.shared_count), bits_up=bits(self.shared_count, rho))

    def rho_bounds(self) -> tuple[float, float]:
        """Pruning ratios that the allocator may choose; equal where the method decides."""
        return 0.0, 0.0

    def planned(self, k: int, rho: float) -> tuple[Work, float]:
        """Work and upload bits that the allocation plans with; affine in rho."""
        stages = answers("stages", self.stages(k, rho), Stage)
        return total_work(stages), upload_bits(answer("payload", self.payload(rho), Payload))

    def forecast(self, view: View, k: int, rho: float) -> tuple[Stage, ...]:
        """The computation of device k that a check of the scenario shows, before round 0."""
        return self.stages(k, rho)

    def demand(self, state: State | None, view: View, chosen: Array) -> Demand:
        """`planned` of the chosen devices int [S], as an affine function of rho."""
        low, high = bounds_of(self)
        classes = self.cost_classes(chosen)
        payload = answer("payload", self.payload(low), Payload)
        bits_down = number("payload, bits_down of Payload,", payload.bits_down)
        return affine_demand(chosen, classes, self.planned, (low, high), bits_down)

    def cost_classes(self, devices: Array) -> Array:
        """Numbers [S]: devices with the same number cost the same at the same rho."""
        return np.asarray(self.task.samples)[devices] if self.cost_by_samples else devices

    def cost_columns(self, devices: Array, rho: Array) -> tuple[tuple[Stage, ...], Payload]:
        """`stages` and `payload` of devices [S] at their ratios [S]: works and bits are [S]."""
        classes = self.cost_classes(devices)
        return cost_columns(devices, classes, rho, self.stages, self.payload)

    def work(
        self, k: int, step: StepCost, steps: float, rho: float = 0.0, batch: float | None = None
    ) -> Work:
        """Work of so many steps of device k.

        Args:
            k: Device.
            step: What one costs: `whole_step`, `shared_step`, `personal_step`.
            steps: How many.
            rho: Pruned share of what is prunable.
            batch: Samples per step; None: the device's batch.
        """
        batch = self.task.batch(k) if batch is None else batch
        return self.task.accounting.work(step, steps, batch, rho)

    @cached_property
    def whole_step(self) -> StepCost:
        """Cost of a step on all weights."""
        return self._step(self.everything)

    @cached_property
    def shared_step(self) -> StepCost:
        """Cost of a step on the shared weights."""
        return self._step(self.shared)

    @cached_property
    def personal_step(self) -> StepCost:
        """Cost of a step on the personal weights."""
        return self._step(self.personal())

    def _step(self, trained: Array) -> StepCost:
        task = self.task
        return step_cost(task.architecture, trained, self.prunable(), task.accounting)

    def charged(self, job: Job, trained: Trained) -> tuple[Stage, ...]:
        """The computation of a job whose ``stages`` are None, once it is trained."""
        raise NotImplementedError(
            f"{type(self).__name__} orders work that is known only after training; it needs charged"
        )

    def read_keys(self) -> tuple[str, ...]:
        """The keys of the scenario's accounting, of those about pruning, that have an effect."""
        return self.reads if self.reads is not None else PRUNING if self.prunable().any() else ()

    def own_loss(self) -> str | None:
        """What it does with class labels that another loss, or real targets, would not allow."""
        return None

    def no_tier_models(self) -> str | None:
        """Why a group of devices cannot have a model of its own, and what to write instead."""
        return None

    # --- which weights ---------------------------------------------------------------------------

    def personal(self) -> Array:
        """Weights that never leave their device, bool [P]: v of Liu; slots of that role."""
        return self.layout.role("personal")

    def prunable(self) -> Array:
        """Weights that rho prunes, bool [P]."""
        return self.layout.role("none")

    def mask(self, state: State, grant: Grant) -> Array:
        """Weights that the device trains, bool [P], where that is known before it trains."""
        return self.everything

    def trained_weights(self, state: State, grant: Grant) -> Array:
        """What `mask` gives, which is a mask bool [P]."""
        return coordinates("mask", self.mask(state, grant), self.layout.size)

    @cached_property
    def everything(self) -> Array:
        """All weights, bool [P]."""
        return np.ones(self.layout.size, dtype=bool)

    @cached_property
    def shared(self) -> Array:
        """Weights that are not personal, bool [P]: u of Liu."""
        return ~self.personal()

    @cached_property
    def shared_count(self) -> int:
        """Weights that travel when nothing is pruned: N_u."""
        return int(self.shared.sum())

    @cached_property
    def shared_mask(self) -> Tensor:
        """`shared` as a tensor."""
        return self.task.tensor(self.shared)

    @cached_property
    def personal_index(self) -> Tensor:
        """Coordinates of the personal weights, int."""
        return self.task.tensor(np.flatnonzero(self.personal()))

    def weights(self) -> dict[str, int]:
        """How many weights there are in all, global, personal."""
        total = self.layout.size
        return {"total": total, "global": self.shared_count, "personal": total - self.shared_count}

    # --- how a device trains ---------------------------------------------------------------------

    @abstractmethod
    def local_update(self, state: State, k: int, w: Tensor, grant: Grant) -> tuple[Phase, ...]:
        """The phases of device k from its model w [P].

        The shared weights that the last phase trains travel.
        """

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        """The order for one device: what it trains, what it is charged, what it sends."""
        k = grant.device
        w = weights("received", self.received(state, k), self.layout.size)
        phases = self.local_update(state, k, w, grant)
        return Job(
            device=k,
            g=view.g,
            phases=phases_of(phases, self.layout.size),
            stages=self.stages(k, grant.rho),
            payload=self.payload(grant.rho),
            rho=grant.rho,
        )

    # --- what returns ----------------------------------------------------------------------------

    def encode(self, job: Job, trained: Trained) -> Sent:
        """The upload: the shared weights that the last phase trained."""
        return Sent(trained.w, trained.mask & self.shared_mask)

    def local_part(self, trained: Trained) -> Tensor:
        """What stays at a device that finished training: its personal weights, as in w."""
        return trained.w[self.personal_index]

    def retain(self, state: State, updates: Sequence[Update]) -> State:
        """The state with what stays at the devices that finished training, received or not."""
        return self.with_local_parts(state, updates) if self.personal().any() else state

    def with_local_parts(self, state: State, updates: Sequence[Update]) -> State:
        """The state with the `local_part` of everybody who trained."""
        parts = {update.job.device: self.local_part(update.result()) for update in updates}
        return replace(state, local=state.local | parts)

    def discard(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """The state with what the server remembers of updates that are too stale for the model.

        The devices have kept their part by then (`retain`).
        """
        return state

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """The mean of each weight over the devices that sent it: Liu, eq. (26)."""
        w = mean_over_holders(state.w, *self.arrived(view, updates))
        return replace(state, g=state.g + 1, w=w)

    def arrived(self, view: View, updates: Sequence[Update]) -> tuple[list[Sent], list[float]]:
        """What each update sent, as it is used now, and its device's weight in the mean."""
        sent = [self._sent(update) for update in updates]
        return sent, [self.weight_of(view, update.job.device) for update in updates]

    def _sent(self, update: Update) -> Sent:
        # A device encodes what it has trained, whatever staleness leaves of that at the server.
        own = as_it_came(update)
        sent = sent_of(self.encode(own.job, own.result()), self.layout.size)
        if not isinstance(update, MovedUpdate):
            return sent
        return replace(sent, values=update.moved(sent.values))

    def damped(self, update: Update, now: State, base: State, weight: float) -> Update:
        """An update from an older version, as it is used now.

        Args:
            update: Whose job started from ``base``.
            now: The state that it is used in.
            base: The state that its change is measured from.
            weight: What staleness leaves of the change.
        """
        if weight == 1.0 and base.w is now.w:
            return update
        if self.stale == "count":
            return WeightedUpdate(update, weight)
        return MovedUpdate(update, weight, now.w, base.w, self.shared_mask)

    def recovered(self, saved: State, now: State) -> State:
        """The state of a server that has failed: as it was stored, but what stays at devices.

        Args:
            saved: the last state that the server has stored.
            now: when it failed.
        """
        return replace(saved, g=now.g, local=now.local)

    def weight_of(self, view: View, k: int) -> float:
        """Weight of device k in the mean: `weighting`."""
        return float(view.samples[k]) if self.weighting == "samples" else 1.0

    # --- what is used ----------------------------------------------------------------------------

    def received(self, state: State, k: int) -> Tensor:
        """The model w [P] from which device k starts when it is asked: the one that it uses."""
        return weights("personalise", self.personalise(state, k), self.layout.size)

    def personalise(self, state: State, k: int) -> Tensor:
        """The model w [P] of device k: the shared weights and its own personal ones, [u, v_k]."""
        return self.with_local_part(state, k)

    def with_local_part(self, state: State, k: int) -> Tensor:
        """The server's weights [P] and, in the personal coordinates, what stays at device k."""
        if k not in state.local:
            return state.w
        own, w = state.local[k], state.w.clone()
        if own.shape != self.personal_index.shape:
            raise not_personal(k, own, self.personal_index)
        w[self.personal_index] = own
        return w

    def probes(self, state: State) -> dict[str, Tensor]:
        """Further models w [P], by name, that are tested on the whole test set."""
        return {}

    def measures(self, state: State) -> dict[str, float]:
        """Further numbers of the round, by name: densities, sizes."""
        return {}


def padded(w: Tensor, more: int) -> Tensor:
    """w [P] and so many zeros behind it."""
    grown = w.new_zeros(len(w) + more)
    grown[: len(w)] = w
    return grown
