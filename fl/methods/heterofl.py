"""HeteroFL: nested submodels, as wide as each device can compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from fl.contracts import Array, Job, Phase, Sent, Tensor, Trained, Update, View
from fl.masks.unit_masks import hidden
from fl.method_base.method import State, param
from fl.methods._ordered_dropout import (
    DeployedSubmodels,
    deploy_parameter,
    first_units,
    width_of,
    width_parameter,
)
from fl.methods._submodel_method import SubmodelMethod


@dataclass(frozen=True, eq=False)
class HeteroFL(SubmodelMethod):
    """Nested submodels: a device of width s trains the first ceil(s J) of J units of hidden layers.

    Diao, Ding, Tarokh, "HeteroFL: Computation and Communication Efficient Federated Learning for
    Heterogeneous Clients", ICLR 2021. What travels: the submodel's weights, down and up; the server
    takes the mean of each weight over the devices that hold it, and of an output unit's weights
    over those that own its class.

    Departs from the paper:
        Step sizes and steps are the scenario's; the authors clip gradients to norm 1 (``clip``).
        All rows of the output layer are charged, also those of classes that a device lacks.
    """

    source: ClassVar[str] = "Diao et al., ICLR 2021"
    stale: ClassVar[str] = "damp"
    width: float | None = width_parameter()
    deploy: str = deploy_parameter()
    scaler: bool = param(
        True,
        "divide the outputs of hidden layers by the width while training",
        source="Diao et al., Section 3",
    )
    masked_ce: bool = param(
        True,
        "logits of classes that a device does not own count as 0, and it has no say in their "
        "output units",
        source="Diao et al., Section 3",
    )

    def kept(self, state: State | None, view: View, k: int) -> Array:
        return first_units(self.layout, width_of(self.width, view, k))

    # --- how a device trains, and what returns ---------------------------------------------------

    def phases(self, state: State, view: View, k: int, w: Tensor, kept: Array) -> tuple[Phase, ...]:
        (phase,) = super().phases(state, view, k, w, kept)
        scale = self._scale(width_of(self.width, view, k))
        return (replace(phase, scale=scale, criterion=self._criterion(k)),)

    def encode(self, job: Job, trained: Trained) -> Sent:
        sent = super().encode(job, trained)
        if not self.masked_ce:
            return sent
        return replace(sent, travels=sent.travels & self._rows(job.device))

    def _scale(self, width: float) -> Tensor | None:
        """1 / s for the weights and biases that make hidden units, [P]."""
        if not self.scaler or width == 1:
            return None
        units = hidden(self.layout)
        makes_units = self.layout.where(
            lambda slot: (
                slot.kind in ("weight", "bias")
                and any(axis and axis.group in units for axis in slot.axes[:1])
            )
        )
        return self.task.tensor(np.where(makes_units, 1.0 / width, 1.0).astype(np.float32))

    def _criterion(self, k: int) -> Callable[[Tensor, Tensor], Tensor] | None:
        """Cross entropy with logits 0 for classes that device k lacks; None where it lacks none."""
        owned = self._owned(k)
        if not self.masked_ce or owned.all():
            return None
        absent = self.task.tensor(~owned)

        def masked_cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
            return self.task.objective.mean(logits.masked_fill(absent, 0.0), y)

        return masked_cross_entropy

    def _owned(self, k: int) -> Array:
        """Classes of which device k has training samples, bool [classes].

        All where a sample has real targets, or a label at every step.
        """
        if not self.task.objective.labels or self.task.data.at_every_step:
            return np.ones(self.task.architecture.classes, dtype=bool)
        labels = self.task.data.y_train[self.task.data.train_index[k]]
        return np.bincount(labels, minlength=self.task.architecture.classes) > 0

    def _rows(self, k: int) -> Tensor:
        """All weights but those of output units whose classes device k lacks, bool [P]."""
        assert self.layout.output is not None  # every architecture has an output layer
        return self.task.tensor(self.layout.expand({self.layout.output: self._owned(k)}))

    # --- what is used ----------------------------------------------------------------------------

    @cached_property
    def deployed(self) -> DeployedSubmodels:
        return DeployedSubmodels(self.task, self.width, self.deploy)

    def noted(self, state: State, view: View, k: int) -> float:
        """The width of the device."""
        return width_of(self.width, view, k)

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """The mean over holders; and the server notes the width of every device."""
        after = super().aggregate(state, view, updates)
        return self.deployed.with_widths(after, view, updates)

    def received(self, state: State, k: int) -> Tensor:
        return state.w

    def personalise(self, state: State, k: int) -> Tensor:
        return self.deployed.of_device(state, k)

    def probes(self, state: State) -> dict[str, Tensor]:
        return self.deployed.by_width(state)
