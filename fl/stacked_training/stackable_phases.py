"""Rows of a stack: one phase of one job, with the part of its model that trains."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fl.contracts import Adam, Job, Phase, Sgd, Trained
from fl.method_base.hook_answers import values_of
from fl.models.dense_submodel import dense_submodel
from fl.models.layout import Layout
from fl.stacked_training.stackable_models import why_never_stacked
from fl.task import LearningTask
from fl.training import local_sgd


@dataclass(slots=True)
class JobProgress:
    """A job whose phases are trained in stacks, and what it has so far.

    Args:
        not_stacked: why it is trained by itself instead; None: it is not.
        done: the models [P] after its phases.
        mask: what the latest phase trained, bool [P].
        loss: mean over the steps of the latest phase.
        accuracy: likewise.
    """

    job: Job
    not_stacked: str | None
    done: list[Tensor] = field(default_factory=list)
    mask: Tensor | None = None
    loss: float = nan
    accuracy: float = nan

    def result(self) -> Trained:
        w = self.job.finish(self.done) if self.job.finish else self.done[-1]
        return Trained(w, self.mask, self.loss, self.accuracy)


@dataclass(frozen=True, slots=True, eq=False)
class TrainedPart:
    """The part of a model that computes in a phase, and how it is trained; many rows share one.

    Args:
        index: its coordinates in the model, int [p]; None: the first p.
        layout: of the part.
        full_mask: what is trained of the model, bool [P].
        mask: what is trained of the part, bool [p].
        extent: of each tensor, is "all", "some" or "none" of it trained?
        trains: is anything?
        rate: step size, one or one per weight [p].
        factor: of the weights while they compute [p]; None: 1.
        kind: number of the rows that can share a stack: same shapes, same operations.
    """

    index: Tensor | None
    layout: Layout
    full_mask: Tensor
    mask: Tensor
    extent: tuple[str, ...]
    trains: bool
    rate: float | Tensor
    factor: Tensor | None
    optimiser: Sgd | Adam
    kind: int

    def put_back(self, trained: Tensor, w: Tensor) -> Tensor:
        """The model w [P] with the trained part [p]; where that is all, the trained part."""
        if self.index is None and trained.numel() == w.numel():
            return trained
        w = w.clone()
        w[slice(trained.numel()) if self.index is None else self.index] = trained
        return w


class StackRow(NamedTuple):
    """One phase of one job, ready to be trained.

    Args:
        w: the model that it starts from [P].
        start: the part of it that computes [p].
        samples: indices of its samples, step after step [sum of sizes].
        sizes: how many samples each step has; None: ``batch`` each.
    """

    progress: JobProgress
    part: TrainedPart
    w: Tensor
    start: Tensor
    samples: np.ndarray
    sizes: list[int] | None
    steps: int
    batch: int


def why_not_stacked(task: LearningTask, job: Job) -> str | None:
    """Why a job cannot be part of a stack; None where it can."""
    if reason := why_never_stacked(task):
        return reason
    for phase in job.phases:
        if not local_sgd.is_plain(phase):
            return "a hook of the method looks at the flat model while it trains"
        if phase.criterion is not None:
            return "the loss is the method's own"
        if isinstance(phase.submodel, tuple):
            return "every step has a submodel of its own"
        if phase.ragged and task.architecture.normalises:
            return "batch norm would see the padding of a smaller last batch"
    return None


class RowBuilder:
    """Makes the rows of one pass. What many jobs share, such as a mask, is examined once."""

    def __init__(self, task: LearningTask) -> None:
        self.task = task
        self._parts: dict[tuple, TrainedPart] = {}  # by the identity of the tensors of a phase
        self._kinds: dict[tuple, int] = {}

    def row(self, progress: JobProgress, number: int) -> StackRow | None:
        """The row of a phase; None where it trains nothing, and the job goes on as it is."""
        phase, task = progress.job.phases[number], self.task
        w, mask, submodel = values_of(phase, progress.done)
        # Tensors hash by identity, and the key keeps them alive: no other takes their place.
        key = mask, submodel, phase.scale, phase.lr, phase.optimiser, w.dtype
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = self._part(phase, mask, submodel, w.dtype)
        progress.mask = part.full_mask
        if phase.steps == 0 or not part.trains:
            progress.done.append(w.clone())
            progress.loss = progress.accuracy = nan
            return None
        samples, sizes = local_sgd.samples(task, phase, progress.job)
        batch = min(task.batch_size, len(task.data.train_index[progress.job.device]))
        start = part_of(w, part.index, part.layout)
        return StackRow(progress, part, w, start, samples, sizes, phase.steps, batch)

    def _part(
        self, phase: Phase, mask: Tensor, submodel: Tensor | None, dtype: torch.dtype
    ) -> TrainedPart:
        layout, index, factor, rate = self.task.layout, None, phase.scale, phase.lr
        if submodel is not None:
            mask = mask & submodel
            if not bool(submodel.all()):
                smaller = dense_submodel(layout, submodel)
                if smaller is not None:
                    layout, index = smaller.layout, smaller.index
                else:
                    factor = submodel.to(dtype) if factor is None else submodel * factor
        own_mask = part_of(mask, index, layout)
        extent = tuple(extent_of(own_mask[slot.slice]) for slot in layout.slots)
        shapes = None if index is None else tuple(slot.shape for slot in layout.slots)
        how = "per weight" if isinstance(rate, Tensor) else rate, phase.optimiser
        kind = shapes, extent, how, factor is None, dtype
        return TrainedPart(
            index,
            layout,
            mask,
            own_mask,
            extent,
            any(how != "none" for how in extent),
            part_of(rate, index, layout) if isinstance(rate, Tensor) else rate,
            None if factor is None else part_of(factor, index, layout),
            phase.optimiser,
            self._kinds.setdefault(kind, len(self._kinds)),
        )


def extent_of(mask: Tensor) -> str:
    """How much a mask has: "all", "some" or "none"."""
    return "all" if mask.all() else "some" if mask.any() else "none"


def part_of(values: Tensor, index: Tensor | None, layout: Layout) -> Tensor:
    """Values [P] of a model at the coordinates of a part of it [p]."""
    if index is not None:
        return values[index]
    return values if values.numel() == layout.size else values[: layout.size]
