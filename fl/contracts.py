"""The records that the rooms hand to each other. No logic lives here.

Symbols follow Liu et al.: ``k`` device, ``g`` round, ``K`` devices in the cell, ``S`` devices selected in a round,
``P`` coordinates of the flat model ``w``, ``rho`` the *pruned* share of the prunable weights, ``b`` the band share.
Everything is SI: seconds, hertz, bit, bit/s, watt, joule. ``Tensor`` stands for a torch tensor: this package never
imports torch, it only passes tensors on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

Array = np.ndarray
Tensor = Any
State = Any  # what a method carries from round to round; opaque to the engine


class Streams(Protocol):
    """Named random streams; the same name gives the same numbers whatever else was drawn before."""

    def stream(
        self, purpose: str, device: int | None = None, round: int | None = None
    ) -> np.random.Generator: ...
    def brief(
        self, purpose: str, device: int | None = None, round: int | None = None
    ) -> np.random.Generator: ...


@dataclass(frozen=True)
class Work:
    """Computation, before a CPU turns it into cycles. Scalars, or arrays [S] inside a Demand.

    weight_steps: weights x SGD steps, Liu, eq. (8).     flops: floating point operations, 1 multiply-add = 2.
    """

    weight_steps: Any = 0.0
    flops: Any = 0.0


@dataclass(frozen=True)
class Stage:
    """A named stretch of a device's computation: personal, warm-up, global, train."""

    name: str
    work: Work


@dataclass(frozen=True)
class View:
    """What the server knows when round g starts, and nothing else."""

    g: int
    now_s: float
    idle: Array  # int [A], devices that are there and free
    rate_bps: Array  # [K], uplink rate over the whole band: r_k of Liu (9) with b = 1
    cpu_hz: Array  # [K]
    samples: Array  # int [K], training samples D_k
    budget_s: float  # T_th; inf where the scenario sets none
    capability: Array  # [K], z_k in (0, 1]: share of its processor that a device gives in this round; cpu_hz has it
    model_budget: Array  # [K], gamma_k in (0, 1]: largest share of the model's parameters that a device can hold


@dataclass(frozen=True)
class Demand:
    """What taking part costs each selected device, affine in its pruning ratio, with the bounds of that ratio.

    bits(rho) = bits_fixed + (1 - rho) bits_prunable, and the same for the work. Equal bounds mean that the method
    decided; open bounds mean that the allocator decides.
    """

    devices: Array  # int [S]
    bits_fixed: Array
    bits_prunable: Array
    work_fixed: Work
    work_prunable: Work
    rho_min: Array
    rho_max: Array
    weight: Array  # w_k of the objective sum_k w_k rho_k
    bits_down: Any = (
        0.0  # [S] or one number; a plan leaves room for it where the downlink takes time
    )


@dataclass(frozen=True)
class Grant:
    """What device k may use in this round: one row of a RoundPlan."""

    device: int
    share: float  # b_k, of the band
    rho: float
    cpu_hz: float
    power_w: float


@dataclass(frozen=True)
class RoundPlan:
    """The allocation of one round: who takes part and with what, and the certificate's numbers."""

    grants: Sequence[Grant]
    infeasible: tuple[int, ...] = ()  # devices that cannot meet the budget at all; left out
    residual: float = float("nan")  # worst KKT residual of the certificate, relative
    budget_s: float = float(
        "inf"
    )  # the threshold planned for: T_th, or the least feasible one where T_th is too short
    pruning_per_hz: float = float(
        "nan"
    )  # what more band for the uplink, or time, would change sum w rho by, 1/Hz and
    pruning_per_s: float = float(
        "nan"
    )  # 1/s; nan: the allocator does not tell, or the plan was stretched


@dataclass(frozen=True)
class Payload:
    bits_down: float
    bits_up: float | None  # None: known only after training


@dataclass(frozen=True)
class Sgd:
    """Stochastic gradient descent: v <- momentum v + g + weight_decay w; w <- w - lr v. ``clip`` bounds |g|_2."""

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
    """A stretch of training on one device: ``steps`` steps from ``start`` on the coordinates where ``mask`` is true.

    ``start``, ``mask`` and ``submodel`` are tensors [P], or functions of the list of results [P] of the phases before.
    What computes is ``scale * effective(w)`` on the ``submodel``; what is minimised ``criterion(logits, y) +
    penalty(w)``, or ``loss(w, x, y)`` instead of both. The optimiser is fresh in every phase.

    Args:
        lr: a number or a tensor [P].
        batches: names the stream of mini-batches, so that a warm-up does not shift the batches of what follows.
        first: number of the first mini-batch in that stream: phases can continue one stream.
        ragged: each pass over the device's data ends with a smaller batch; else batches run on into the next pass.
        submodel: weights bool [P] that compute; the others count as zero and are not trained. None: all. A tuple has
            one mask per step.     scale: factor [P] of the weights while they train.
        effective: (w [P], rng) -> the weights that compute, differentiable; asked once per step. None: w itself.
        criterion: (logits, y) -> scalar; None: cross entropy.     penalty: w [P] -> scalar that is added to it.
        project: (w, velocity or None), in place, before the first step and after every step.
        collect: w [P] -> tensor, at every step before w moves; the sum over the steps is `Trained.collected`.
    """

    start: Tensor | Callable[[list[Tensor]], Tensor]
    mask: Tensor | Callable[[list[Tensor]], Tensor]
    steps: int
    lr: float | Tensor
    batches: str = "train"
    loss: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None
    first: int = 0
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
    """What a job ended with: the flat model [P], and of its last phase the mask [P] of what was trained, the mean loss,
    the mean training accuracy (nan where the method has a loss of its own), the sum of what it collected."""

    w: Tensor
    mask: Tensor
    loss: float
    accuracy: float = float("nan")
    collected: Tensor | None = None


@dataclass(frozen=True)
class Sent:
    """What arrives at the server: values [P], valid where ``travels`` [P] is true; bits where only now known."""

    values: Tensor
    travels: Tensor
    bits: float | None = None


@dataclass(frozen=True)
class Job:
    """One device's order for one round: what it trains, computes and sends."""

    device: int
    g: int
    phases: tuple[Phase, ...]
    stages: (
        tuple[Stage, ...] | None
    )  # the work that is charged, in order; None: known only after training
    payload: Payload
    rho: float
    finish: Callable[[list[Tensor]], Tensor] | None = (
        None  # result of all phases -> w; None: the last one
    )


class Update(Protocol):
    """A promise: the training of ``job`` runs when somebody first asks for its value."""

    job: Job

    def result(self) -> Trained: ...
    def stages(self) -> tuple[Stage, ...]: ...
    def bits_up(self) -> float: ...
    def abort(self) -> None: ...


class JobTrainer(Protocol):
    def submit(self, jobs: Sequence[Job]) -> list[Update]: ...


@dataclass(frozen=True)
class Outcome:
    """How one device's round ended."""

    grant: Grant
    update: Update | None
    status: str  # arrived | late | failed | infeasible
    received: bool  # did the server get the upload in time to aggregate it
    trained: bool  # did the device finish its computation: its personal part then stays
    finish_s: float  # since the start of the round; nan where it never finished


@dataclass(frozen=True)
class Report:
    """What the server learns from a round, for methods that learn from it (`observe`)."""

    g: int
    latency_s: float
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class Scores:
    """Personalised test loss (inf: diverged) and accuracy of every device [K]; nan: no test data.

    measures: further numbers of the round, by name, as the method gives them.
    """

    loss: Array
    accuracy: Array
    measures: dict[str, float] = field(default_factory=dict)


class MethodHooks(Protocol):
    """The questions that a method answers; `fl.method_base.method.Method` answers them as FedAvg."""

    def start(self) -> State: ...
    def select(self, state: State, view: View) -> Array: ...
    def demand(self, state: State, view: View, chosen: Array) -> Demand: ...
    def configure(self, state: State, view: View, grant: Grant) -> Job: ...
    def retain(self, state: State, updates: Sequence[Update]) -> State: ...
    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State: ...
    def observe(self, state: State, report: Report) -> State: ...


class Observer(Protocol):
    """Who watches a run: evaluates, shows progress, writes the checkpoint. Costs no simulated time."""

    def scores(self, g: int, state: State) -> Scores | None: ...
    def finished(self, g: int, state: State) -> None: ...
