"""Base of the selection rules with a memory: what they are asked, and what they are told."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fl.contracts import Array, View
from fl.errors import MethodError

Memory = dict[str, Any]  # fit for JSON: a checkpoint has it


@dataclass(frozen=True)
class Costs:
    """What taking part is expected to cost every device [K], with the whole band.

    Args:
        compute_s: time of the computation, s.
        upload_s: time of the upload alone on the band, s; inf where the rate is 0.
        energy_j: of both, J.
    """

    compute_s: Array
    upload_s: Array
    energy_j: Array


@dataclass(frozen=True)
class Ended:
    """What the server knows of a job that has ended, or of a device that could not begin one.

    Args:
        device: k.
        received: its update came in time to be used.
        finish_s: time since its dispatch, s; nan where it did not arrive.
        energy_j: what its download, computation and upload have used, J.
        loss: mean training loss; nan where it is unknown.
        accuracy: mean training accuracy; nan where it is unknown.
    """

    device: int
    received: bool
    finish_s: float
    energy_j: float = 0.0
    loss: float = float("nan")
    accuracy: float = float("nan")


@dataclass(frozen=True)
class LearningRule(ABC):
    """A selection rule with a memory; all its functions are pure.

    Attributes:
        about: What it chooses, in one line.
        source: Paper, and algorithm or section.
        needs_threshold: It reads budget.latency_threshold.
        needs_training: It reads losses or accuracies, which a timing-only run does not have.
        needs_costs: It reads `Costs`, which otherwise are 0.
        needs_rounds: It plans rounds that end before the next one begins.
    """

    about: ClassVar[str] = ""
    source: ClassVar[str] = ""
    needs_threshold: ClassVar[bool] = False
    needs_training: ClassVar[bool] = False
    needs_rounds: ClassVar[bool] = False
    needs_costs: ClassVar[bool] = False

    @classmethod
    def conflict(cls, values: dict[str, Any]) -> MethodError | None:
        """What is wrong where parameters, each allowed by itself, contradict each other."""
        return None

    @classmethod
    def unread(cls, values: dict[str, Any]) -> dict[str, str]:
        """Parameters without effect beside these values, and why."""
        return {}

    @abstractmethod
    def start(self, devices: int) -> Memory:
        """The memory before the first round, of K devices."""

    @abstractmethod
    def choose(
        self, memory: Memory, view: View, costs: Costs, count: int, stream: np.random.Generator
    ) -> Array:
        """Devices int [S] out of view.idle, at most ``count``, each once."""

    def learn(self, memory: Memory, view: View, costs: Costs, ended: Sequence[Ended]) -> Memory:
        """The memory after a round, or version.

        Args:
            memory: before it; not changed.
            view: the last in it.
            costs: as of that view.
            ended: the jobs that have ended since the version before, by device.
        """
        return memory


def largest(values: Array, candidates: Array, count: int) -> Array:
    """The candidates int [C] with the largest values [K]; of equal ones the first."""
    order = np.argsort(-np.asarray(values)[candidates], kind="stable")
    return candidates[order[:count]]
