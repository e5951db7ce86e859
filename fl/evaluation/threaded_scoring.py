"""The pieces in which models are evaluated: batches of one model's samples, stacks of perceptrons.

They are the same for any number of threads, and their results are put together in one order, so
that no bit depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice

import numpy as np
import torch
from torch import Tensor

from fl.contracts import Array
from fl.models.batch_norm import Collected, Frozen
from fl.models.memory_format import fastest_memory_format
from fl.stacked_training.perceptron_gradients import PerceptronGradients, StackedCrossEntropy
from fl.task import LearningTask
from fl.worker_threads import map_in_threads

BATCH = 125  # samples at a time: bounds the memory of activations, and keeps them in the cache

Piece = Callable[[], Tensor]


@dataclass(frozen=True, eq=False)
class ScoredModel:
    """A model to be evaluated.

    Args:
        w: weights [P].
        samples: indices of its test samples [N].
        devices: who uses it: their training data give its statistics of batch norm.
    """

    w: Tensor
    samples: Array
    devices: Sequence[int]


def sample_scores(
    task: LearningTask,
    stacks: Sequence[Sequence[tuple[ScoredModel, Frozen | None]]],
    threads: int,
) -> Iterator[tuple[ScoredModel, Array]]:
    """Every model with loss, hit (0 or 1) and metric, if there is one, of its samples [2 or 3, N].

    Args:
        stacks: models with their statistics of batch norm; those of a stack are computed at once.
    """
    pieces = [score_pieces(task, stack) for stack in stacks]
    rows = task.objective.rows
    for stack, found in zip(stacks, in_groups(pieces, threads), strict=True):
        values = torch.cat(found, dim=2) if found else torch.empty(len(stack), rows, 0)
        for (model, _), own in zip(stack, values.cpu().numpy(), strict=True):
            yield model, own[:, : len(model.samples)]


def score_pieces(
    task: LearningTask, stack: Sequence[tuple[ScoredModel, Frozen | None]]
) -> list[Piece]:
    """A stack of several models is one piece, and so is each batch of a single model."""
    if len(stack) > 1:
        return [partial(stack_scores, task, [model for model, _ in stack])]
    ((model, statistics),) = stack
    chosen = torch.from_numpy(model.samples).to(model.w.device).split(BATCH)
    return [partial(batch_scores, task, model.w, statistics, one) for one in chosen if len(one)]


def batch_norm_statistics(
    task: LearningTask, models: Sequence[ScoredModel], threads: int = 1
) -> list[Frozen | None]:
    """The statistics of each model on the training data of its devices; None without batch norm.

    A batch takes every n-th sample, so that it holds some of every device, and none is a single
    sample.
    """
    if not task.architecture.normalises:
        return [None] * len(models)
    held = [training_batches(task, model) for model in models]
    pieces = [
        [partial(batch_norm_sums, task, model.w, batch) for batch in batches if len(batch)]
        for model, batches in zip(models, held, strict=True)
    ]
    return [
        averages(batches, found)
        for batches, found in zip(held, in_groups(pieces, threads), strict=True)
    ]


def training_batches(task: LearningTask, model: ScoredModel) -> list[Tensor]:
    index = np.concatenate([task.data.train_index[k] for k in model.devices])
    chosen, count = torch.from_numpy(index).to(model.w.device), -(-len(index) // BATCH)
    return [chosen[first::count] for first in range(count)]


def averages(batches: Sequence[Tensor], found: Sequence[list[Tensor]]) -> Frozen | None:
    """The statistics that the norm layers saw in some batches; None where there are none."""
    collected = Collected()
    for batch, sums in zip(batches, found, strict=True):
        collected.add(sums, len(batch))
    return collected.frozen() if len(batches) else None


def in_groups(groups: Sequence[Sequence[Callable]], threads: int) -> Iterator[list]:
    """The results of the pieces of each group, all computed at once by several threads."""
    results = iter(map_in_threads(lambda piece: piece(), list(chain(*groups)), threads))
    return (list(islice(results, len(group))) for group in groups)


@torch.inference_mode()
def batch_scores(
    task: LearningTask, w: Tensor, statistics: Frozen | None, chosen: Tensor
) -> Tensor:
    """Loss and hit (0 or 1) of some test samples under one model [1, 2, B]."""
    images, labels = task.test
    model, order = fastest_memory_format(task.architecture, task.layout, images, BATCH)
    logits, y = model.logits(w, order(images[chosen]), statistics), labels[chosen]
    loss, *others = (row.double() for row in task.objective.measured(logits, y))
    return torch.stack((loss.nan_to_num(nan=torch.inf), *others))[None]


@torch.inference_mode()
def stack_scores(task: LearningTask, models: Sequence[ScoredModel]) -> Tensor:
    """Loss and hit of the test samples of C perceptrons [C, 2, N], filled up to the longest."""
    images, labels = task.test
    index = np.zeros((len(models), max(len(model.samples) for model in models)), dtype=np.int64)
    for row, model in zip(index, models, strict=True):
        row[: len(model.samples)] = model.samples
    chosen = torch.from_numpy(index).to(images.device)
    flat = torch.stack([model.w[: task.layout.size] for model in models])
    leaves = [flat[:, slot.slice].reshape(len(models), *slot.shape) for slot in task.layout.slots]
    trained = [True] * len(leaves)
    logits = PerceptronGradients(task.architecture, trained).logits(leaves, images[chosen])
    share = torch.ones_like(logits[..., 0])
    losses, hits, _ = StackedCrossEntropy(logits)(logits, labels[chosen], share)
    return torch.stack((losses.double().nan_to_num(nan=torch.inf), hits.double()), dim=1)


@torch.inference_mode()
def batch_norm_sums(task: LearningTask, w: Tensor, chosen: Tensor) -> list[Tensor]:
    """What the norm layers see of some training samples."""
    collected = Collected()
    task.architecture.logits(w, task.train[0][chosen], collected)
    return collected.sums()
