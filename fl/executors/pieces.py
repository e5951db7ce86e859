"""Jobs on their way through a stack: which can be stacked, and one phase of one, ready to be."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan

import numpy as np
from torch import Tensor

from edgesim.contracts import Adam, Job, Phase, Sgd, Trained
from fl import local
from fl.cut import cut
from fl.layout import Layout
from fl.task import Task

Array = np.ndarray
Extent = tuple[str, ...]  # of every slot "all", "some" or "none" of it


@dataclass(slots=True)
class Run:
    """How far a job has come.     trouble: why it is trained one by one instead."""

    job: Job
    trouble: str | None
    done: list[Tensor] = field(default_factory=list)
    mask: Tensor | None = None
    loss: float = nan
    accuracy: float = nan

    def end(self) -> Trained:
        w = self.job.finish(self.done) if self.job.finish else self.done[-1]
        return Trained(w, self.mask, self.loss, self.accuracy)


@dataclass(slots=True)
class Piece:
    """One phase of a job: the part of its model that computes, and what it is trained on.

    Args:
        whole: the model [P].     part: the weights that compute [p].     where: their places in it; None: the first p.
        layout: of the part.     mask: what is trained, bool [p], which is ``extent`` of it.
        rate: one, or per weight [p].     factor: of the weights while they compute [p], or None.
        samples: their indices, step by step [sum of sizes].     sizes: samples of each step; None: ``batch`` each.
    """

    run: Run
    whole: Tensor
    part: Tensor
    where: Tensor | None
    layout: Layout
    mask: Tensor
    extent: Extent
    rate: float | Tensor
    factor: Tensor | None
    optimiser: Sgd | Adam
    samples: Array
    sizes: list[int] | None
    steps: int
    batch: int

    @property
    def kind(self) -> tuple:
        """Pieces of one kind can be stacked: equal shapes, and the same operations in every step."""
        shapes = self.where is not None and tuple(slot.shape for slot in self.layout.slots)
        rate = "per weight" if isinstance(self.rate, Tensor) else self.rate
        return shapes, self.extent, rate, self.factor is None, self.optimiser, self.batch

    def finish(self, part: Tensor, loss: float, accuracy: float) -> None:
        """Puts the trained part [p], which is its own from now on, into the model."""
        run, w = self.run, part
        if part.numel() < self.whole.numel():
            w = self.whole.clone()
            w[slice(part.numel()) if self.where is None else self.where] = part
        run.done.append(w)
        run.loss, run.accuracy = loss, accuracy


def not_stacked(task: Task, job: Job) -> str | None:
    """Why a job cannot be part of a stack; None where it can."""
    for phase in job.phases:
        if not local.is_plain(phase):
            return "a hook of the method looks at the flat model while it trains"
        if phase.criterion is not None:
            return "the loss is the method's own"
        if isinstance(phase.submodel, tuple):
            return "every step has a submodel of its own"
        if phase.ragged and task.architecture.normalises:
            return "batch norm would see the padding of a smaller last batch"
    return None


class Desk:
    """Prepares the phases of a pass. What many jobs have in common, a mask of everything, is looked at once."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._extents: dict[tuple[int, int], tuple[Tensor, Extent]] = {}

    def prepare(self, run: Run, phase: Phase) -> Piece | None:
        """The next phase of a job; None where it trains nothing: the job then goes on as it is."""
        task, job = self.task, run.job
        whole, mask = local.value_of(phase.start, run.done), local.value_of(phase.mask, run.done)
        layout, where, factor, rate = task.layout, None, phase.scale, phase.lr
        if phase.submodel is not None:
            submodel = local.value_of(phase.submodel, run.done)
            mask = mask & submodel
            if not bool(submodel.all()):
                smaller = cut(layout, submodel)
                if smaller is not None:
                    layout, where = smaller.layout, smaller.index
                else:
                    factor = submodel.to(whole.dtype) if factor is None else submodel * factor
        run.mask = mask
        mask = part_of(mask, where, layout)
        extent = self._extent(mask, layout)
        if phase.steps == 0 or extent.count("none") == len(extent):
            run.done.append(whole.clone())
            run.loss = run.accuracy = nan
            return None
        samples, sizes = local.samples(task, phase, job)
        return Piece(
            run=run,
            whole=whole,
            part=part_of(whole, where, layout),
            where=where,
            layout=layout,
            mask=mask,
            extent=extent,
            rate=part_of(rate, where, layout) if isinstance(rate, Tensor) else rate,
            factor=None if factor is None else part_of(factor, where, layout),
            optimiser=phase.optimiser,
            samples=samples,
            sizes=sizes,
            steps=phase.steps,
            batch=min(task.batch_size, len(task.data.train_index[job.device])),
        )

    def _extent(self, mask: Tensor, layout: Layout) -> Extent:
        """How much of every slot a mask [p] has; kept by its address, and with it, so that nothing else comes there."""
        key = mask.data_ptr(), mask.numel()
        if key not in self._extents:
            parts = (mask[slot.slice] for slot in layout.slots)
            self._extents[key] = mask, tuple("all" if p.all() else "some" if p.any() else "none" for p in parts)
        return self._extents[key][1]


def part_of(values: Tensor, where: Tensor | None, layout: Layout) -> Tensor:
    """Values [P] of a model, at the places of its part [p]."""
    if where is not None:
        return values[where]
    return values if values.numel() == layout.size else values[: layout.size]
