"""What a device trains, computes and sends: the job, its phases, its result and its upload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fl.contracts.basic_types import Streams, Tensor
from fl.contracts.round_plan import Stage


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
    minimised is ``criterion(logits, y) + penalty(w)``, with ``loss(w, x, y)`` in place of the
    criterion where it is given. The optimiser starts anew in every phase.

    Args:
        start: weights before the first step, float [P].
        mask: coordinates that are trained, bool [P].
        steps: number of steps, one mini-batch each, or ``hold`` steps on the same.
        lr: learning rate, a number or a tensor [P], finite and at least 0.
        batches: name of the stream of mini-batches: what one phase draws does not shift another's.
        loss: (w, x, y) -> scalar, or a pair: it, and the part of it that `Trained.loss` is the mean
            of; None: the criterion of the logits.
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
        penalty: w [P] -> scalar that is added; `Trained.loss` is without it.
        project: (w, velocity or None) -> None, in place, before the first and after every step.
        collect: w [P] -> tensor, at every step before w moves; `Trained.collected` is the sum.
        optimiser: Sgd or Adam.
    """

    start: Tensor | Callable[[list[Tensor]], Tensor]
    mask: Tensor | Callable[[list[Tensor]], Tensor]
    steps: int
    lr: float | Tensor
    batches: str = "train"
    loss: Callable[[Tensor, Tensor, Tensor], Tensor | tuple[Tensor, Tensor]] | None = None
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


def value_of(given: Any, done: list[Tensor]) -> Any:
    """Start, mask or submodel of a phase, given the results [P] of the phases before."""
    return given(done) if callable(given) else given


@dataclass(frozen=True)
class Trained:
    """Result of a job; all but ``w`` belong to its last phase.

    Args:
        w: the flat model [P].
        mask: coordinates that were trained, bool [P].
        loss: mean over the steps, without the penalty and what else a method adds.
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

    With 0 steps left by `truncate` the job stays as it is, and whoever asked aborts it.
    """

    @property
    def job(self) -> Job:
        """What is trained."""

    @property
    def weight(self) -> float:
        """What staleness leaves of it, 1 where nothing is damped."""

    @property
    def is_trained(self) -> bool:
        """Does `result` return without training?"""

    def result(self) -> Trained:
        """The trained model; trains where it is not yet."""

    def stages(self) -> tuple[Stage, ...]:
        """The work that is charged, in weight steps and FLOPs."""

    def bits_up(self) -> float:
        """Size of the upload, bit."""

    def truncate(self, fraction: float) -> int:
        """Leave the whole steps in the first ``fraction`` of the last phase; their number."""

    def abort(self) -> None:
        """Take the job back: it has no result any more."""


class JobTrainer(Protocol):
    """Takes the jobs of a round; `fl.executors.deferred_training.Trainer` trains them."""

    def submit(self, jobs: Sequence[Job]) -> Sequence[Update]:
        """One update per job; nothing is trained yet."""

    def uncounted(self) -> AbstractContextManager[None]:
        """What is trained meanwhile was trained and reported before, and is not again."""
