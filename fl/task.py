"""A learning task: the model, the data of every device, the batch size, the accounting."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from fl.accounting import Accounting
from fl.contracts import Array, Streams, Tensor
from fl.data.samples import Federated
from fl.models.architectures import Architecture
from fl.models.layout import Layout
from fl.objective import Objective
from fl.selection.selection_rules import SelectionRule, uniform


@dataclass(frozen=True, eq=False)
class LearningTask:
    """A learning task over K devices; tensors are made when they are first used.

    Args:
        architecture: the model.
        data: samples, and which device holds which.
        batch_size: samples per step.
        streams: named random streams.
        accounting: conventions of costs.
        device: where torch computes: cpu, cuda.
        objective: what is minimised and measured.
        selection: which devices take part, where the method leaves that open.
    """

    architecture: Architecture
    data: Federated
    batch_size: int
    streams: Streams
    accounting: Accounting = field(default_factory=Accounting)
    device: str = "cpu"
    selection: SelectionRule = uniform
    objective: Objective = field(default_factory=Objective)

    @property
    def layout(self) -> Layout:
        return self.architecture.layout

    @property
    def samples(self) -> Array:
        """Training samples of every device, D_k [K]."""
        return self.data.samples

    @property
    def devices(self) -> int:
        return len(self.samples)

    def batch(self, k: int) -> int:
        """Samples in a batch of device k: the batch size, or all its samples if they are fewer."""
        return min(self.batch_size, int(self.samples[k]))

    def initial(self) -> Tensor:
        """The model w [P] before the first round, float32."""
        return self.tensor(self.architecture.initial(self.streams.stream("init")))

    def tensor(self, array: Array) -> Tensor:
        """A numpy array as a tensor on the device of the task."""
        import torch

        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    @cached_property
    def train(self) -> tuple[Tensor, Tensor]:
        """All training images [N, *input_shape] and labels [N]."""
        return self.tensor(self.data.x_train), self.tensor(self.data.y_train)

    @cached_property
    def validation(self) -> LearningTask | None:
        """The same task with what devices hold out as test samples; None where nobody holds any."""
        held_out = self.data.held_out
        return None if held_out is None else replace(self, data=held_out)

    @cached_property
    def test(self) -> tuple[Tensor, Tensor]:
        """All test images [N, *input_shape] and labels [N]."""
        return self.tensor(self.data.x_test), self.tensor(self.data.y_test)
