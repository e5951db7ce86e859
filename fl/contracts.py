"""The seam between time and learning: the records and protocols that both sides exchange.

Symbols follow Liu et al.: ``k`` device, ``g`` round, ``K`` devices in the cell, ``S`` devices
selected in a round, ``P`` coordinates of the flat model ``w``, ``rho`` the *pruned* share of the
prunable weights, ``b`` the band share. All units are SI: seconds, hertz, bit, bit/s, watt, joule.
``Tensor`` stands for a torch tensor; this module passes tensors on and does not import torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, Any]
Tensor = Any
State = Any  # what a method carries from round to round; opaque to the clock


class Streams(Protocol):
    """Named random streams; a name gives the same numbers whatever else was drawn before."""

    def stream(
        self, purpose: str, device: int | None = None, round: int | None = None
    ) -> np.random.Generator: ...


@dataclass(frozen=True)
class Work:
    """Computation, before a processor turns it into cycles. Scalars, or arrays [S] in a Demand.

    Args:
        weight_steps: weights x SGD steps, Liu, eq. (8).
        flops: floating point operations; 1 multiply-add counts 2.
    """

    weight_steps: Any = 0.0
    flops: Any = 0.0


@dataclass(frozen=True)
class Stage:
    """A named part of a device's computation: personal, warm-up, global, train."""

    name: str
    work: Work


@dataclass(frozen=True)
class View:
    """What the server knows when round g starts, and nothing else.

    Args:
        g: number of the round: the version of the model that is handed out.
        now_s: simulated time, s.
        idle: devices that are present and free, int [A].
        rate_bps: uplink rate over the whole band, bit/s [K]: r_k of Liu (9) with b = 1.
        cpu_hz: processor frequency that each device gives in this round, Hz [K].
        samples: training samples D_k, int [K].
        budget_s: latency threshold T_th, s; inf where the scenario sets none.
        capability: z_k in (0, 1] [K], share of its processor that a device gives; part of cpu_hz.
        model_budget: gamma_k in (0, 1] [K], largest share of the parameters that a device holds.
        turn: how often the server has handed out jobs before.
        wanted: how many devices may start now; None: all that are idle.
        in_flight: devices that are at work on an earlier job, int [F]; none of them is idle.
        battery_j: energy in the battery of each device [K], J; inf: it has no battery. None: not
            known.
    """

    g: int
    now_s: float
    idle: Array
    rate_bps: Array
    cpu_hz: Array
    samples: Array
    budget_s: float
    capability: Array
    model_budget: Array
    turn: int = 0
    wanted: int | None = None
    in_flight: Array = field(default_factory=lambda: np.empty(0, dtype=int))
    battery_j: Array | None = None

    @property
    def occasion(self) -> int:
        """Number that names what is drawn when jobs are handed out: with rounds that of the round.

        Where jobs overlap, several are handed out of one version: each time others are drawn.
        """
        return self.turn or self.g

    def places(self, count: int | None) -> int:
        """How many devices to ask: those that the clock wants, or else the method's own count.

        A clock that asks for more than the method needs wants more: ``overcommit``.

        Args:
            count: the method's participants; None: no limit.
        """
        limits = (len(self.idle), count if self.wanted is None else self.wanted)
        return min(limit for limit in limits if limit is not None)


@dataclass(frozen=True)
class Demand:
    """What taking part costs each selected device, affine in its pruning ratio rho.

    bits(rho) = bits_fixed + (1 - rho) bits_prunable, and the same for the work. Equal bounds mean
    that the method chose the ratio; open bounds leave it to the allocator.

    Args:
        devices: their numbers, int [S].
        bits_fixed: upload that no pruning saves, bit [S].
        bits_prunable: upload that rho = 1 would save, bit [S].
        work_fixed: computation that no pruning saves, [S] each.
        work_prunable: computation that rho = 1 would save, [S] each.
        rho_min: least allowed ratio [S].
        rho_max: largest allowed ratio [S].
        weight: w_k of the objective sum_k w_k rho_k, [S].
        bits_down: download, bit, [S] or one number.
    """

    devices: Array
    bits_fixed: Array
    bits_prunable: Array
    work_fixed: Work
    work_prunable: Work
    rho_min: Array
    rho_max: Array
    weight: Array
    bits_down: Any = 0.0

    def without(self, devices: Array) -> Demand:
        """The demand of all other devices than these."""
        kept = ~np.isin(self.devices, devices)

        def column(values: Any) -> Array:
            return np.broadcast_to(np.asarray(values, dtype=float), kept.shape)[kept]

        def work(given: Work) -> Work:
            return Work(column(given.weight_steps), column(given.flops))

        return Demand(
            np.asarray(self.devices)[kept],
            column(self.bits_fixed),
            column(self.bits_prunable),
            work(self.work_fixed),
            work(self.work_prunable),
            column(self.rho_min),
            column(self.rho_max),
            column(self.weight),
            column(self.bits_down),
        )


@dataclass(frozen=True)
class Grant:
    """What one device may use in a round: one row of a RoundPlan.

    Args:
        device: k.
        share: b_k, share of the band in [0, 1].
        rho: pruning ratio.
        cpu_hz: processor frequency, Hz.
        power_w: transmit power, W.
    """

    device: int
    share: float
    rho: float
    cpu_hz: float
    power_w: float


@dataclass(frozen=True, eq=False)
class UploadForecast:
    """What a plan promises of uploads whose channel changes on the way, in the order of the grants.

    Args:
        rate_bps: rate that is planned for [S], bit/s.
        late: probability that the upload ends after the threshold [S].
        pruning_per_late: derivative of sum_k w_k rho_k by the late share that is accepted of each
            device [S]; nan where the plan is made for no quantile, or has no shadow prices.
    """

    rate_bps: Array
    late: Array
    pruning_per_late: Array


@dataclass(frozen=True)
class RoundPlan:
    """The allocation of one round.

    Args:
        grants: one per device that takes part.
        infeasible: devices that cannot meet the budget and are left out.
        residual: worst relative KKT residual of the certificate.
        budget_s: threshold planned for, s: T_th, or the least feasible one where T_th is too short.
        pruning_per_hz: derivative of sum_k w_k rho_k by the uplink bandwidth, 1/Hz.
        pruning_per_s: the same by the threshold, 1/s. Both are nan where the allocator gives no
            shadow prices or the threshold was stretched.
        forecast: of the uploads, where the plan counts with fading; None: planned for the instant.
    """

    grants: Sequence[Grant]
    infeasible: tuple[int, ...] = ()
    residual: float = float("nan")
    budget_s: float = float("inf")
    pruning_per_hz: float = float("nan")
    pruning_per_s: float = float("nan")
    forecast: UploadForecast | None = None


@dataclass(frozen=True)
class Payload:
    """What travels in a round, bit. ``bits_up`` None: known only after training."""

    bits_down: float
    bits_up: float | None


@dataclass(frozen=True)
class Sgd:
    """Gradient descent: v <- momentum v + gradient + weight_decay w; w <- w - lr v.

    ``clip`` bounds the Euclidean norm of the gradient; None: no bound.
    """

    momentum: float = 0.0
    weight_decay: float = 0.0
    clip: float | None = None


@dataclass(frozen=True)
class Adam:
    """Kingma and Ba, ICLR 2015, Algorithm 1."""

    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8


@dataclass(frozen=True)
class Phase:
    """Consecutive training steps on one device, from ``start``, where ``mask`` is true.

    ``start``, ``mask`` and ``submodel`` are tensors [P], or functions of the list of results [P] of
    the phases before. The model computes with ``scale * effective(w)`` on the ``submodel``. What is
    minimised is ``criterion(logits, y) + penalty(w)``, or ``loss(w, x, y)`` instead of both. The
    optimiser starts anew in every phase.

    Args:
        start: weights before the first step, float [P].
        mask: coordinates that are trained, bool [P].
        steps: number of steps, one mini-batch each, or ``hold`` steps on the same.
        lr: learning rate, a number or a tensor [P].
        batches: name of the stream of mini-batches: what one phase draws does not shift another's.
        loss: (w, x, y) -> scalar; None: criterion and penalty.
        first: number of the first mini-batch in that stream; a phase can continue another's stream.
        hold: consecutive steps on each mini-batch.
        ragged: each pass over the device's data ends with a smaller batch; otherwise batches run on
            into the next pass.
        submodel: weights that compute, bool [P]; the others count as zero and are not trained.
            None: all. A tuple has one mask per step.
        scale: factor [P] of the weights while they train.
        effective: (w [P], generator) -> weights that compute, differentiable; called once per step.
            None: w itself.
        criterion: (logits, y) -> scalar; None: cross entropy.
        penalty: w [P] -> scalar that is added to the criterion.
        project: (w, velocity or None) -> None, in place, before the first and after every step.
        collect: w [P] -> tensor, at every step before w moves; `Trained.collected` is the sum.
        optimiser: Sgd or Adam.
    """

    start: Tensor | Callable[[list[Tensor]], Tensor]
    mask: Tensor | Callable[[list[Tensor]], Tensor]
    steps: int
    lr: float | Tensor
    batches: str = "train"
    loss: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None
    first: int = 0
    hold: int = 1
    ragged: bool = False
    submodel: Tensor | tuple[Tensor, ...] | Callable[[list[Tensor]], Tensor] | None = None
    scale: Tensor | None = None
    effective: Callable[[Tensor, np.random.Generator], Tensor] | None = None
    criterion: Callable[[Tensor, Tensor], Tensor] | None = None
    penalty: Callable[[Tensor], Tensor] | None = None
    project: Callable[[Tensor, Tensor | None], None] | None = None
    collect: Callable[[Tensor], Tensor] | None = None
    optimiser: Sgd | Adam = Sgd()


@dataclass(frozen=True)
class Trained:
    """Result of a job; all but ``w`` belong to its last phase.

    Args:
        w: the flat model [P].
        mask: coordinates that were trained, bool [P].
        loss: mean over the steps.
        accuracy: mean training accuracy; nan where the method has a loss of its own.
        collected: sum of what `Phase.collect` returned.
    """

    w: Tensor
    mask: Tensor
    loss: float
    accuracy: float = float("nan")
    collected: Tensor | None = None


@dataclass(frozen=True)
class Sent:
    """What arrives at the server: values [P], valid where ``travels`` bool [P] is true.

    ``bits`` is the size of the upload where only training could tell it.
    """

    values: Tensor
    travels: Tensor
    bits: float | None = None


@dataclass(frozen=True)
class Job:
    """What one device trains, computes and sends in one round.

    Args:
        device: k.
        g: round: the version of the model that it starts from.
        phases: trained in this order.
        stages: work that is charged, in this order; None: known only after training.
        payload: bits down and up.
        rho: pruning ratio.
        finish: results [P] of all phases -> w [P]; None: the result of the last phase.
        again: how many earlier jobs of the device started from the same version.
        note: what the method wants to know of the dispatch when the update is used; the clock
            passes it on unread.
    """

    device: int
    g: int
    phases: tuple[Phase, ...]
    stages: tuple[Stage, ...] | None
    payload: Payload
    rho: float
    finish: Callable[[list[Tensor]], Tensor] | None = None
    again: int = 0
    note: Any = None

    def stream(self, streams: Streams, purpose: str) -> np.random.Generator:
        """The random stream of this job for a purpose: by device, version and repetition."""
        name = f"{purpose}/again {self.again}" if self.again else purpose
        return streams.stream(name, device=self.device, round=self.g)


class Update(Protocol):
    """Promise of a job's result: training runs when a value is first asked for.

    ``weight`` is what staleness leaves of it, 1 where nothing is damped. ``truncate`` leaves the
    whole steps in the first ``fraction`` of the last phase, and returns their number; with 0 the
    job stays as it is, and whoever asked aborts it.
    """

    @property
    def job(self) -> Job: ...
    @property
    def weight(self) -> float: ...
    @property
    def is_trained(self) -> bool: ...
    def result(self) -> Trained: ...
    def stages(self) -> tuple[Stage, ...]: ...
    def bits_up(self) -> float: ...
    def truncate(self, fraction: float) -> int: ...
    def abort(self) -> None: ...


class JobTrainer(Protocol):
    """Takes the jobs of a round; `fl.executors.deferred_training.Trainer` trains them."""

    def submit(self, jobs: Sequence[Job]) -> Sequence[Update]: ...
    def uncounted(self) -> AbstractContextManager[None]: ...


@dataclass(frozen=True)
class Outcome:
    """How a round ended for one device.

    Args:
        grant: what it was allowed to use.
        update: its training; None where it never started.
        status: arrived | late | failed | infeasible, and with overlapping jobs cancelled |
            discarded | unfinished.
        received: the server got the upload in time to aggregate it.
        trained: the device finished its computation, so that its personal part stays.
        finish_s: time since its own dispatch, s; nan where it never finished.
        staleness: versions made between its download and its use.
        weight: what staleness left of the update.
    """

    grant: Grant
    update: Update | None
    status: str
    received: bool
    trained: bool
    finish_s: float
    staleness: int = 0
    weight: float = 1.0


@dataclass(frozen=True)
class Report:
    """What the server learns from a round, for methods that adapt to it (`observe`).

    Args:
        g: number of the round, or version.
        latency_s: time since the version before, s.
        outcomes: of the jobs that have ended since.
    """

    g: int
    latency_s: float
    outcomes: tuple[Outcome, ...]


METRIC = "metric "  # begins the name of the measure that is the task's own metric


@dataclass(frozen=True)
class Scores:
    """Personalised test results of every device.

    Args:
        loss: [K]; inf: diverged, nan: no test data.
        accuracy: [K]; nan: no test data.
        measures: further numbers of the round, by the name that the method gives them.
    """

    loss: Array
    accuracy: Array
    measures: dict[str, float] = field(default_factory=dict)


STALENESS = ("damp", "count", "refuse")  # what a method may declare as its ``stale``


class MethodHooks(Protocol):
    """The questions that a method answers; `fl.method_base.method.Method` answers as FedAvg.

    ``stale`` says what becomes of an update that started from an older version of the model:
    ``damp``, its change is damped and applied to the model of now; ``count``, the method reads
    `Update.weight` itself; ``refuse``, the method has no meaning for it.
    """

    stale: str

    def start(self) -> State: ...
    def select(self, state: State, view: View) -> Array: ...
    def demand(self, state: State, view: View, chosen: Array) -> Demand: ...
    def configure(self, state: State, view: View, grant: Grant) -> Job: ...
    def retain(self, state: State, updates: Sequence[Update]) -> State: ...
    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State: ...
    def observe(self, state: State, report: Report) -> State: ...
    def damped(self, update: Update, now: State, base: State, weight: float) -> Update: ...
    def recovered(self, saved: State, now: State) -> State: ...


# Makes the arrays, and the record for JSON, of the jobs that are at work when a version is made.
AtWork = Callable[[], tuple[dict[str, Array], dict[str, Any]]]


class Observer(Protocol):
    """Evaluates, shows progress and writes checkpoints; costs no simulated time."""

    def scores(self, g: int, state: State) -> Scores | None: ...
    def finished(self, g: int, state: State, at_work: AtWork | None = None) -> None: ...
