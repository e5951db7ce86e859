"""One step of training on a batch: by the slots of a model, or by the flat model where a method looks at it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fl.contracts import Phase
from fl.models.architectures import Architecture
from fl.models.layout import Layout
from fl.training.optimisers import descent

Step = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # images, labels -> loss, hits


def slot_step(
    model: Architecture,
    phase: Phase,
    w: Tensor,
    mask: Tensor,
    layout: Layout,
    where: Tensor | None = None,
) -> Step:
    """A step that differentiates only by the slots in which something is trained.

    The leaves are views into w, so the update is written into the flat model directly. Slots that are frozen are no
    variables of autograd: where only the classifier trains, nothing is kept of the convolutions and no backward pass
    goes through them. ``where`` tells which coordinates of the whole model the w of a submodel are.
    """
    lr = phase.lr[where] if isinstance(phase.lr, Tensor) and where is not None else phase.lr
    masks = layout.split(mask)
    leaves = [
        view.detach().requires_grad_(bool(m.any()))
        for view, m in zip(layout.split(w), masks, strict=True)
    ]
    rates = [slot_rate(lr, slot.slice, slot.shape) for slot in layout.slots]
    trained = [
        (leaf, None if bool(m.all()) else m.to(w.dtype), rate)
        for leaf, m, rate in zip(leaves, masks, rates, strict=True)
        if leaf.requires_grad
    ]
    variables = [leaf for leaf, _, _ in trained]
    move = descent(phase.optimiser, trained)
    criterion = phase.criterion or cross_entropy
    scale = None if phase.scale is None else phase.scale if where is None else phase.scale[where]
    factors = (
        None
        if scale is None
        else [slot_rate(scale, slot.slice, slot.shape) for slot in layout.slots]
    )

    def step(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        tensors = (
            leaves if factors is None else [w * f for w, f in zip(leaves, factors, strict=True)]
        )
        logits = model.forward(tensors, x)
        loss = criterion(logits, y)
        move(torch.autograd.grad(loss, variables))
        return loss.detach(), hits_of(logits, y)

    return step


def flat_step(
    model: Architecture,
    phase: Phase,
    w: Tensor,
    mask: Tensor,
    submodel: Tensor | None,
    draws: np.random.Generator | None,
) -> Step:
    """A step that differentiates by the flat model, for phases that have hooks of their own."""
    leaf = w.detach().requires_grad_(True)
    move = descent(
        phase.optimiser,
        [
            (
                leaf,
                None if bool(mask.all()) else mask.to(w.dtype),
                slot_rate(phase.lr, slice(None), w.shape),
            )
        ],
    )
    if phase.project is not None:
        phase.project(w, None)
    shapes, sizes = (
        [slot.shape for slot in model.layout.slots],
        [slot.size for slot in model.layout.slots],
    )
    sizes.append(len(w) - sum(sizes))  # coordinates that are no weights of the architecture

    def logits_of(x: Tensor) -> Tensor:
        weights = leaf if phase.effective is None else phase.effective(leaf, draws)
        weights = weights if submodel is None else weights * submodel[: len(weights)]
        weights = weights if phase.scale is None else weights * phase.scale[: len(weights)]
        pieces = weights.split(sizes if len(weights) == len(w) else sizes[:-1])
        return model.forward([p.view(s) for p, s in zip(pieces, shapes, strict=False)], x)

    def step(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if phase.loss is not None:
            loss, hits = phase.loss(leaf, x, y), torch.tensor(torch.nan, device=w.device)
        else:
            logits = logits_of(x)
            loss, hits = (phase.criterion or cross_entropy)(logits, y), hits_of(logits, y)
        if phase.penalty is not None:
            loss = loss + phase.penalty(leaf)
        move(torch.autograd.grad(loss, [leaf]))
        if phase.project is not None:
            phase.project(w, move.velocity(0))
        return loss.detach(), hits

    return step


@torch.no_grad()
def hits_of(logits: Tensor, y: Tensor) -> Tensor:
    """How many of the batch are right."""
    return (logits.argmax(dim=1) == y).sum()


def slot_rate(lr: float | Tensor, where: slice, shape: tuple[int, ...]) -> float | Tensor:
    """The learning rate (or scale) of one slot: a number wherever it is the same for the whole slot."""
    if not isinstance(lr, Tensor):
        return lr
    part = lr[where]
    return float(part[0]) if bool((part == part[0]).all()) else part.reshape(shape)
