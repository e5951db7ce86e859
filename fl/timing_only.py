"""Rounds that cost time, bits and joules, but train nothing: for studies of the network alone.

Neither torch nor data is needed, and the number of devices is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from fl.contracts import Array, Demand, Grant, Job, Payload, Report, Stage, Trained, Update, View
from fl.data.datasets import NONE
from fl.data.shakespeare_text import CONTEXT
from fl.errors import DataError, LearningError, MethodError
from fl.method_base.method import Method
from fl.repeated_call import RepeatedCall
from fl.selection.selection_rules import candidates, uniform
from fl.training.fallback_counts import Fallbacks

ABOUT = (
    NONE,
    "no data: counts time, bits and joules of the model as on its natural data, trains nothing",
    "",
)
MNIST, CIFAR_10 = ((1, 28, 28), 10), ((3, 32, 32), 10)
# model -> (input shape, classes) where there is no data set
NATURAL: dict[str, tuple[tuple[int, ...], int]] = {
    **dict.fromkeys(("mlp", "digits-cnn"), ((1, 8, 8), 10)),
    **dict.fromkeys(("liu-cnn", "fedlps-cnn", "lenet5-caffe"), MNIST),
    **dict.fromkeys(("spafl-conv4", "vgg11", "resnet18", "vit"), CIFAR_10),
    "vgg13": ((3, 32, 32), 100),  # CIFAR-100
    "vgg16": ((3, 64, 64), 200),  # Tiny-ImageNet
    "shakespeare-lstm": ((CONTEXT,), 65),
    "reddit-lstm": ((9,), 10_000),
}
COST_HOOKS = ("configure", "observe", "demand", "charged")


@dataclass(frozen=True, eq=False)
class Unseen:
    """Shape of data that is never read, and the number of samples of each device, D_k [K]."""

    samples: Array
    input_shape: tuple[int, ...]
    classes: tuple[str, ...]
    text: bool
    y_train = y_test = np.zeros(0, dtype=np.int64)
    clients = None

    @property
    def outputs(self) -> int:
        return len(self.classes)


def unseen(model: str, devices: int, samples: int) -> Unseen:
    """So many samples on each of K devices, of the shape that the model was made for."""
    if model not in NATURAL:
        raise DataError(
            f"dataset none has no shape for model {model}; choose one of {', '.join(NATURAL)}"
        )
    shape, classes = NATURAL[model]
    names = tuple(map(str, range(classes)))
    return Unseen(np.full(devices, samples), shape, names, text=len(shape) == 1)


def check_countable(method: Method) -> None:
    """Refuse a method whose costs depend on what is learned."""
    if any(getattr(type(method), hook) is not getattr(Method, hook) for hook in COST_HOOKS):
        raise MethodError(
            "name",
            "is a method whose costs depend on the device's submodel or on what it learns, which "
            "dataset: none does not know; use fedavg, fedprox, fedalt, fedsim, liu or "
            "pruning-only, or give a data set",
        )


@dataclass(frozen=True)
class Rounds:
    """State after ``g`` rounds that learned nothing; see `fl.method_base.state.State`.

    Args:
        g: rounds done.
        notes: what a selection rule remembers, fit for JSON.
    """

    g: int = 0
    notes: dict[str, Any] = field(default_factory=dict)

    def to_arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        return {}, self._record()

    def _record(self) -> dict[str, Any]:
        return {"g": self.g} | ({"notes": self.notes} if self.notes else {})

    def bases_to_arrays(
        self, bases: Sequence[tuple[Rounds, Sequence[int]]]
    ) -> tuple[dict[str, Array], list[dict[str, Any]]]:
        return {}, [base._record() for base, _ in bases]

    def bases_from_arrays(
        self, arrays: dict[str, Array], records: Sequence[dict[str, Any]]
    ) -> list[Rounds]:
        return [Rounds.from_arrays(arrays, record) for record in records]

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array], record: dict[str, Any]) -> Rounds:
        return cls(int(record["g"]), dict(record.get("notes", {})))


@dataclass(frozen=True, eq=False)
class Counted:
    """Selection and costs of a method, without its learning (`fl.contracts.MethodHooks`)."""

    method: Method
    _orders: RepeatedCall[tuple[tuple[Stage, ...], Payload]] = field(
        default_factory=RepeatedCall, init=False, repr=False
    )
    stale = "damp"

    def start(self) -> Rounds:
        return Rounds()

    def select(self, state: Any, view: View) -> Array:
        return self.method.select(state, view)

    def demand(self, state: Any, view: View, chosen: Array) -> Demand:
        return self.method.demand(state, view, chosen)

    def configure(self, state: Rounds, view: View, grant: Grant) -> Job:
        stages = self.method.stages(grant.device, grant.rho)
        return Job(grant.device, view.g, (), stages, self.method.payload(grant.rho), grant.rho)

    def orders(self, grants: Any) -> tuple[tuple[Stage, ...], Payload]:
        """The jobs of all devices as columns; ``grants`` has the arrays device and rho."""
        given = grants.device, grants.rho
        return self._orders(given, lambda: self.method.cost_columns(*given))

    def candidates(self, turns: range) -> Array | None:
        """Devices [occasions, n] in the order in which they are tried; None: see `select`."""
        method, task = self.method, self.method.task
        if not method.leaves_choice_open() or task.selection is not uniform:
            return None
        return candidates(task.streams, turns, task.devices)

    def retain(self, state: Rounds, updates: Sequence[Update]) -> Rounds:
        return state

    def discard(self, state: Rounds, view: View, updates: Sequence[Update]) -> Rounds:
        return state

    def aggregate(self, state: Rounds, view: View, updates: Sequence[Update]) -> Rounds:
        return replace(state, g=state.g + 1)

    def observe(self, state: Rounds, report: Report) -> Rounds:
        return state

    def recovered(self, saved: Rounds, now: Rounds) -> Rounds:
        return replace(saved, g=now.g)

    def damped(self, update: Update, now: Rounds, base: Rounds, weight: float) -> Update:
        return update


@dataclass(frozen=True)
class Untrained:
    """A job that takes time but is never trained (`fl.contracts.Update`).

    Its costs are known before training: `check_countable` refuses all other methods.
    """

    job: Job
    weight: float = 1.0
    is_trained: bool = False

    def result(self) -> Trained:
        """There is none.

        Raises:
            LearningError: always, with the device.
        """
        raise self._untrained()

    def stages(self) -> tuple[Stage, ...]:
        return cast("tuple[Stage, ...]", self.job.stages)

    def bits_up(self) -> float:
        return cast("float", self.job.payload.bits_up)

    def truncate(self, fraction: float) -> int:
        """There are no steps to leave out.

        Raises:
            LearningError: always, with the device.
        """
        raise self._untrained()

    def abort(self) -> None:
        pass

    def _untrained(self) -> LearningError:
        return LearningError(
            f"the job of device {self.job.device} in round {self.job.g} takes no steps and has no "
            "result, as nothing is trained with dataset: none; give a data set"
        )


class NoTrainer:
    """Takes jobs and trains none of them (`fl.contracts.JobTrainer`)."""

    seconds = 0.0
    executor_name = "none"

    def __init__(self) -> None:
        self.fallbacks = Fallbacks()

    def restore_fallbacks(self, counts: Sequence[tuple[str, int]]) -> None:
        pass

    def uncounted(self) -> AbstractContextManager[None]:
        return nullcontext()

    def submit(self, jobs: Sequence[Job]) -> list[Untrained]:
        return [Untrained(job) for job in jobs]
