"""Jobs on their way through a stack: which can be stacked, and one phase of one, ready to be."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan

import numpy as np
from torch import Tensor, dtype

from fl.contracts import Adam, Job, Phase, Sgd, Trained
from fl.models.dense_submodel import dense_submodel
from fl.models.layout import Layout
from fl.task import LearningTask
from fl.training import local_sgd as local

Array = np.ndarray
Place = tuple[int, int, tuple[int, ...]]  # of a tensor: address, length and strides
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


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """What phases have in common that train the same part of the model in the same way.

    Args:
        where: the places in the model of the part that computes; None: the first p.     layout: of the part.
        whole_mask: what is trained, bool [P].     mask: the same of the part [p].     extent: how much of it that is.
        rate: one, or per weight [p].     factor: of the weights while they compute [p], or None.
        trains: is anything?     kind: number of the form's kind: forms of one kind can be stacked.
    """

    where: Tensor | None
    layout: Layout
    whole_mask: Tensor
    mask: Tensor
    extent: Extent
    rate: float | Tensor
    factor: Tensor | None
    optimiser: Sgd | Adam
    trains: bool
    kind: int


@dataclass(slots=True, eq=False)
class Piece:
    """One phase of a job: the part of its model that computes, and what it is trained on.

    Args:
        whole: the model [P].     part: the weights that compute [p].
        samples: their indices, step by step [sum of sizes].     sizes: samples of each step; None: ``batch`` each.
        number: of the phase, once it is trained, from 1 on.
    """

    run: Run
    form: Form
    whole: Tensor
    part: Tensor
    samples: Array
    sizes: list[int] | None
    steps: int
    batch: int
    number: int = 0

    @property
    def kind(self) -> tuple[int, int]:
        """Pieces of one kind can be stacked: equal shapes, and the same operations in every step."""
        return self.form.kind, self.batch

    def model(self, part: Tensor) -> Tensor:
        """The model [P] with the trained part [p], which is its own from now on."""
        if self.part is self.whole:
            return part
        w, where = self.whole.clone(), self.form.where
        w[slice(part.numel()) if where is None else where] = part
        return w

    def finish(self, w: Tensor) -> None:
        self.run.done.append(w)
        self.number = len(self.run.done)

    def show(self, loss: float, accuracy: float) -> None:
        """Sums over the steps of the phase; those of the last phase are the job's."""
        if self.number == len(self.run.done):
            self.run.loss, self.run.accuracy = loss / self.steps, accuracy / self.steps


def not_stacked(task: LearningTask, job: Job) -> str | None:
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

    def __init__(self, task: LearningTask) -> None:
        self.task = task
        self._forms: dict[tuple, tuple[Form, tuple]] = {}
        self._latest: tuple[Phase, tuple[Form, Tensor, Tensor]] | None = None
        self._kinds: dict[tuple, int] = {}

    def prepare(self, run: Run, phase: Phase) -> Piece | None:
        """The next phase of a job; None where it trains nothing: the job then goes on as it is."""
        task = self.task
        form, whole, part = self._models(phase, run.done)
        run.mask = form.whole_mask
        if phase.steps == 0 or not form.trains:
            run.done.append(whole.clone())
            return None
        samples, sizes = local.samples(task, phase, run.job)
        batch = min(task.batch_size, len(task.data.train_index[run.job.device]))
        return Piece(run, form, whole, part, samples, sizes, phase.steps, batch)

    def _models(self, phase: Phase, done: list[Tensor]) -> tuple[Form, Tensor, Tensor]:
        """The form of a phase, the model [P] that it starts from, and the part of it that computes [p]."""
        if self._latest is not None and twins(phase, self._latest[0]):
            return self._latest[1]
        whole = local.value_of(phase.start, done)
        form = self._form(phase, done, whole.dtype)
        found = form, whole, part_of(whole, form.where, form.layout)
        given = phase.start, phase.mask, phase.submodel
        self._latest = (
            None if any(map(callable, given)) else (phase, found)
        )  # a function may find another model
        return found

    def _form(self, phase: Phase, done: list[Tensor], dtype: dtype) -> Form:
        """The form of a phase; kept by the addresses of its tensors, and with them: nothing else can come there."""
        mask, submodel = local.value_of(phase.mask, done), local.value_of(phase.submodel, done)
        tensors = mask, submodel, phase.scale, phase.lr
        key = *map(place_of, tensors), phase.optimiser, dtype
        known = self._forms.get(key)
        if known is None:
            known = self._forms[key] = self._formed(phase, mask, submodel, dtype), tensors
        return known[0]

    def _formed(self, phase: Phase, mask: Tensor, submodel: Tensor | None, dtype: dtype) -> Form:
        layout, where, factor, rate = self.task.layout, None, phase.scale, phase.lr
        if submodel is not None:
            mask = mask & submodel
            if not bool(submodel.all()):
                smaller = dense_submodel(layout, submodel)
                if smaller is not None:
                    layout, where = smaller.layout, smaller.index
                else:
                    factor = submodel.to(dtype) if factor is None else submodel * factor
        ours = part_of(mask, where, layout)
        extent = extent_of(ours, layout)
        shapes = where is not None and tuple(slot.shape for slot in layout.slots)
        each = isinstance(rate, Tensor)
        kind = (
            shapes,
            extent,
            "per weight" if each else rate,
            factor is None,
            phase.optimiser,
            dtype,
        )
        return Form(
            where=where,
            layout=layout,
            whole_mask=mask,
            mask=ours,
            extent=extent,
            rate=part_of(rate, where, layout) if each else rate,
            factor=None if factor is None else part_of(factor, where, layout),
            optimiser=phase.optimiser,
            trains=any(how != "none" for how in extent),
            kind=self._kinds.setdefault(kind, len(self._kinds)),
        )


def twins(one: Phase, other: Phase) -> bool:
    """Do phases start from the same tensors, and train the same of them? Told sooner than where tensors lie."""
    return one is other or (
        one.start is other.start
        and one.mask is other.mask
        and one.submodel is other.submodel
        and one.scale is other.scale
        and one.optimiser is other.optimiser
        and (one.lr is other.lr or (type(one.lr) is float is type(other.lr) and one.lr == other.lr))
    )


def place_of(value: Tensor | float | None) -> Place | float | None:
    """Where a tensor lies in memory; a number is its own place."""
    if (
        value is None or type(value) is float
    ):  # nearly always, and much faster told than what is no tensor
        return value
    return (value.data_ptr(), value.numel(), value.stride()) if isinstance(value, Tensor) else value


def extent_of(mask: Tensor, layout: Layout) -> Extent:
    """How much of every slot a mask [p] has."""
    parts = (mask[slot.slice] for slot in layout.slots)
    return tuple("all" if p.all() else "some" if p.any() else "none" for p in parts)


def part_of(values: Tensor, where: Tensor | None, layout: Layout) -> Tensor:
    """Values [P] of a model, at the places of its part [p]."""
    if where is not None:
        return values[where]
    return values if values.numel() == layout.size else values[: layout.size]
