"""The units into which an evaluation falls: batches of one model, and stacks of perceptrons.

They are the same whoever computes them. On a CPU the processes that train divide them; what they find is put together
in one order, so that no bit depends on their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fl.executors.choice import FORK_PAYS_S
from fl.executors.cost_model import Pace
from fl.executors.crew import MOST_PIECES, Crew
from fl.executors.stacked import Dense, log_loss
from fl.models.batch_norm import Collected, Frozen
from fl.models.memory_format import fastest_memory_format
from fl.task import LearningTask

Array = np.ndarray
BATCH = 125  # samples at a time: bounds the memory of activations, and keeps them in the cache
A_BATCH, A_STACK = (
    Pace(step_s=5e-4, flops_per_s=9e10),
    Pace(step_s=3e-5, flops_per_s=3.5e10),
)  # of a stack each model


@dataclass(frozen=True, eq=False)
class Look:
    """A model w [P], its test samples [N], and the devices that use it: their training data give its statistics."""

    w: Tensor
    samples: Array
    devices: Sequence[int]


class Unit(NamedTuple):
    """A part of an evaluation that one process computes: what to call, and about how long it takes."""

    run: Callable[[], list[Tensor]]
    seconds: float


def units_of(
    task: LearningTask, stack: Sequence[Look], norms: Sequence[Frozen | None]
) -> list[Unit]:
    """A stack of several models is one unit, and so is every batch of a single model."""
    if len(stack) > 1:
        samples = len(stack) * max(len(look.samples) for look in stack)
        return [
            Unit(
                partial(stack_answers, task, stack),
                A_STACK.of(len(stack), forward_flops(task, samples)),
            )
        ]
    ((look,), (norm,)) = stack, norms
    return batches(
        task,
        partial(batch_answers, task, look.w, norm),
        on_device(look.samples, look.w).split(BATCH),
    )


def batches(
    task: LearningTask, run: Callable[[Tensor], list[Tensor]], chosen: Iterable[Tensor]
) -> list[Unit]:
    """One unit per batch of samples that holds any."""
    held = [one for one in chosen if len(one)]
    return [Unit(partial(run, one), A_BATCH.of(1, forward_flops(task, len(one)))) for one in held]


def forward_flops(task: LearningTask, samples: int) -> float:
    return 2.0 * sum(task.architecture.macs.values()) * samples


def computed(
    task: LearningTask, groups: Sequence[Sequence[Unit]], crew: Crew
) -> list[list[list[Tensor]]]:
    """What the units of each group find, by several processes where that takes a core about ``FORK_PAYS_S``."""
    units = list(chain(*groups))
    long = sum(unit.seconds for unit in units) >= FORK_PAYS_S
    if min(len(units), crew.workers) > 1 and long and not crew.hindered(len(units)):
        found = divided(task, units, crew)
    else:
        found = [unit.run() for unit in units]
    each = iter(found)
    return [list(islice(each, len(group))) for group in groups]


def divided(task: LearningTask, units: Sequence[Unit], crew: Crew) -> list[list[Tensor]]:
    """What the units find, by all processes."""
    task.test, task.architecture.normalises and task.train  # noqa: B018 (read before they are shared)
    size = -(-len(units) // MOST_PIECES)
    pieces = [units[i : i + size] for i in range(0, len(units), size)]
    found = crew.each(
        lambda number: [unit.run() for unit in pieces[number]],
        list(map(len, pieces)),
        packed,
        unpacked,
    )
    return list(chain(*found))


def packed(found: list[list[Tensor]]) -> list[list[Array]]:
    return [[one.numpy() for one in unit] for unit in found]


def unpacked(found: list[list[Array]]) -> list[list[Tensor]]:
    return [[torch.from_numpy(one) for one in unit] for unit in found]


# --- how it is computed ----------------------------------------------------------------------------------------------


def on_device(index: Array, w: Tensor) -> Tensor:
    return torch.from_numpy(index).to(w.device)


@torch.inference_mode()
def batch_answers(
    task: LearningTask, w: Tensor, norms: Frozen | None, chosen: Tensor
) -> list[Tensor]:
    """Loss and hit (0 or 1) of the chosen test samples [1, 2, B]; with the statistics ``norms`` where it has some."""
    images, labels = task.test
    model, order = fastest_memory_format(task.architecture, task.layout, images, BATCH)
    logits, y = model.logits(w, order(images[chosen]), norms), labels[chosen]
    losses = cross_entropy(logits, y, reduction="none").double().nan_to_num(nan=torch.inf)
    return [torch.stack((losses, (logits.argmax(dim=1) == y).double()))[None]]


@torch.inference_mode()
def stack_answers(task: LearningTask, stack: Sequence[Look]) -> list[Tensor]:
    """Loss and hit of the test samples of several models, all models at once [C, 2, N]; samples are filled up."""
    images, labels = task.test
    index = np.zeros((len(stack), max(len(look.samples) for look in stack)), dtype=np.int64)
    for row, look in zip(index, stack, strict=True):
        row[: len(look.samples)] = look.samples
    chosen = torch.from_numpy(index).to(images.device)
    flat = torch.stack([look.w[: task.layout.size] for look in stack])
    leaves = [flat[:, slot.slice].reshape(len(stack), *slot.shape) for slot in task.layout.slots]
    logits = Dense(task.architecture, [True] * len(leaves)).logits(leaves, images[chosen])
    losses, hits, _ = log_loss(logits, labels[chosen], torch.ones_like(logits[..., 0]))
    return [torch.stack((losses.double().nan_to_num(nan=torch.inf), hits.double()), dim=1)]


@torch.inference_mode()
def sums(task: LearningTask, w: Tensor, chosen: Tensor) -> list[Tensor]:
    """What the norm layers see of the chosen training samples."""
    norms = Collected()
    task.architecture.logits(w, task.train[0][chosen], norms)
    return norms.sums()
