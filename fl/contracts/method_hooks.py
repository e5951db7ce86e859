"""The questions that a method answers, what it learns of a round, and who watches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from fl.contracts.basic_types import Array, State
from fl.contracts.round_plan import Demand, Grant, View
from fl.contracts.training_job import Job, Update


@dataclass(frozen=True)
class Outcome:
    """How a round ended for one device.

    Args:
        grant: what it was allowed to use.
        update: its training; None where it never started.
        status: arrived | late | failed | infeasible, and of numbered jobs left | cancelled |
            discarded | unfinished.
        received: the server got the upload in time to aggregate it.
        trained: the device finished its computation, so that its personal part stays.
        finish_s: time since its own dispatch, s; nan where it never finished.
        staleness: versions made between its download and its use.
        weight: what staleness left of the update.
        energy_j: what its download, computation and upload have used, J.
    """

    grant: Grant
    update: Update | None
    status: str
    received: bool
    trained: bool
    finish_s: float
    staleness: int = 0
    weight: float = 1.0
    energy_j: float = 0.0


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
VALIDATION_MEASURES = "validation_loss", "validation_accuracy"  # of samples that are held out


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

    def start(self) -> State:
        """The state before the first round."""

    def select(self, state: State, view: View) -> Array:
        """Devices that start, int [S]."""

    def demand(self, state: State, view: View, chosen: Array) -> Demand:
        """What they need as a function of rho, arrays [S]."""

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        """The job of one device."""

    def retain(self, state: State, updates: Sequence[Update]) -> State:
        """The state with what stays at the devices that finished training, received or not."""

    def discard(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """The state after these updates have arrived too stale for the model."""

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """The next state."""

    def observe(self, state: State, report: Report) -> State:
        """The state after the server has seen how the round ended for every device."""

    def damped(self, update: Update, now: State, base: State, weight: float) -> Update:
        """The update moved to ``now``, times weight."""

    def recovered(self, saved: State, now: State) -> State:
        """The state of a server that failed and came back with the last one that it had stored."""


# Makes the arrays, and the record for JSON, of the jobs that are at work when a version is made.
AtWork = Callable[[], tuple[dict[str, Array], dict[str, Any]]]


class Observer(Protocol):
    """Evaluates, shows progress and writes checkpoints; costs no simulated time."""

    def scores(self, g: int, state: State) -> Scores | None:
        """Of the state after round g; None where round g is not evaluated."""

    def finished(self, g: int, state: State, at_work: AtWork | None = None) -> None:
        """Round g has ended: write its checkpoint, with the jobs at work, and show it."""
