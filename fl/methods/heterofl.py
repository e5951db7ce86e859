"""HeteroFL. Diao, Ding, Tarokh, "HeteroFL: Computation and Communication Efficient Federated Learning", ICLR 2021."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fl.contracts import Job, Phase, Sent, Tensor, Trained, View
from fl.masks.ordered_dropout import Nested
from fl.method_base.method import State, param

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class HeteroFL(Nested):
    """Nested submodels: a device of width s trains the first ceil(s J) of the J units of every hidden layer.

    What travels: the submodel's weights, down and up; the server takes the mean of each weight over the devices that
    hold it, and of an output unit's weights over those that own its class.

    Departs from the paper:
        Step sizes and steps are the scenario's; the authors clip gradients to norm 1 (``clip``).
        All rows of the output layer are charged, also those of classes that a device does not own.
    """

    source: ClassVar[str] = "Diao et al., ICLR 2021"
    scaler: bool = param(
        True,
        "divide the outputs of hidden layers by the width while training",
        source="Diao et al., Section 3",
    )
    masked_ce: bool = param(
        True,
        "logits of classes that a device does not own count as 0, and it has no say in their output units",
        source="Diao et al., Section 3",
    )

    def phases(self, state: State, view: View, k: int, w: Tensor, kept: Array) -> tuple[Phase, ...]:
        (phase,) = super().phases(state, view, k, w, kept)
        return (
            replace(phase, scale=self._scale(self.width_of(view, k)), criterion=self._criterion(k)),
        )

    def encode(self, job: Job, trained: Trained) -> Sent:
        sent = super().encode(job, trained)
        return (
            replace(sent, travels=sent.travels & self._rows(job.device)) if self.masked_ce else sent
        )

    def _scale(self, width: float) -> Tensor | None:
        """1 / s for the weights and biases that make hidden units, [P]."""
        if not self.scaler or width == 1:
            return None
        makes = self.layout.where(
            lambda slot: (
                slot.kind in ("weight", "bias") and slot.axes[0].group != self.layout.output
            )
        )
        return self.task.tensor(np.where(makes, 1.0 / width, 1.0).astype(np.float32))

    def _criterion(self, k: int) -> Callable[[Tensor, Tensor], Tensor] | None:
        """Cross entropy in which the logits of classes that device k lacks are 0; None where it has them all."""
        owned = self._owned(k)
        if not self.masked_ce or owned.all():
            return None
        absent = self.task.tensor(~owned)

        def masked_cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
            from torch.nn.functional import cross_entropy

            return cross_entropy(logits.masked_fill(absent, 0.0), y)

        return masked_cross_entropy

    def _owned(self, k: int) -> Array:
        """Classes of which device k has training samples, bool [classes]."""
        labels = self.task.data.y_train[self.task.data.train_index[k]]
        return np.bincount(labels, minlength=self.task.architecture.classes) > 0

    def _rows(self, k: int) -> Tensor:
        """All weights but those of the output units of classes that device k lacks, bool [P]."""
        return self.task.tensor(self.layout.expand({self.layout.output: self._owned(k)}))
