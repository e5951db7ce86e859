"""One training step on a batch, by the tensors of a model or by its flat vector.

The flat vector is differentiated where a method looks at it while it trains; otherwise the tensors
are, which is faster.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fl.contracts import Phase
from fl.data.samples import IGNORED
from fl.errors import MethodError
from fl.method_base.hook_answers import computing, losses
from fl.models.architectures import Architecture
from fl.models.layout import Layout
from fl.training.optimisers import Variable, make_optimiser

# (images, labels) -> loss, and how many of the batch are classified correctly
Step = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def tensor_step(model: Architecture, phase: Phase, w: Tensor, mask: Tensor, layout: Layout) -> Step:
    """A step that differentiates by the tensors in which something is trained.

    The tensors are views into w, so that the update is written into w directly. Those that are not
    trained are no variables of autograd: where only the classifier trains, no backward pass goes
    through the convolutions.

    Args:
        model: what computes.
        phase: its lr and scale are numbers, or tensors [p].
        w: weights [p], trained in place.
        mask: coordinates that are trained, bool [p].
        layout: tensors of w.
    """
    masks = layout.split(mask)
    tensors = [
        view.detach().requires_grad_(bool(m.any()))
        for view, m in zip(layout.split(w), masks, strict=True)
    ]
    rates = [slot_value(phase.lr, slot.slice, slot.shape) for slot in layout.slots]
    trained = [
        Variable(tensor, None if bool(m.all()) else m.to(w.dtype), rate)
        for tensor, m, rate in zip(tensors, masks, rates, strict=True)
        if tensor.requires_grad
    ]
    variables = [each.tensor for each in trained]
    update = make_optimiser(phase.optimiser, trained)
    criterion = phase.criterion or cross_entropy
    scales = None
    if phase.scale is not None:
        scales = [slot_value(phase.scale, slot.slice, slot.shape) for slot in layout.slots]

    def step(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        weights = tensors
        if scales is not None:
            weights = [tensor * scale for tensor, scale in zip(tensors, scales, strict=True)]
        logits = model.forward(weights, x)
        loss = criterion(logits, y)
        # a forward pass may leave a tensor out (a branch, a layer that nobody calls): zero, as in
        # the flat vector
        update(torch.autograd.grad(differentiable(loss), variables, materialize_grads=True))
        return loss.detach(), hits_of(logits, y)

    return step


def flat_step(
    model: Architecture,
    phase: Phase,
    w: Tensor,
    mask: Tensor,
    submodel: Tensor | None,
    effective: Callable[[Tensor], Tensor] | None,
) -> Step:
    """A step that differentiates by the flat model w [P], trained in place.

    Args:
        model: what computes.
        phase: with functions of the method that look at w.
        w: weights, and whatever coordinates the method has behind them.
        mask: coordinates that are trained, bool [P].
        submodel: coordinates that compute, bool [P]; None: all.
        effective: w [P] -> weights that compute; None: w itself.
    """
    leaf = w.detach().requires_grad_(True)
    rate = slot_value(phase.lr, slice(None), w.shape)
    trained = Variable(leaf, None if bool(mask.all()) else mask.to(w.dtype), rate)
    update = make_optimiser(phase.optimiser, [trained])
    if phase.project is not None:
        phase.project(w, None)
    slots = model.layout.slots
    sizes = [slot.size for slot in slots]

    def logits_of(x: Tensor) -> Tensor:
        weights = leaf if effective is None else computing(effective(leaf), sum(sizes))
        weights = weights if submodel is None else weights * submodel[: len(weights)]
        weights = weights if phase.scale is None else weights * phase.scale[: len(weights)]
        behind = len(weights) - sum(sizes)  # coordinates that are no weights of the architecture
        pieces = weights.split([*sizes, behind] if behind else sizes)
        tensors = [p.view(slot.shape) for p, slot in zip(pieces, slots, strict=False)]
        return model.forward(tensors, x)

    def step(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if phase.loss is not None:
            minimised, loss = losses(phase.loss(leaf, x, y))
            hits = torch.tensor(torch.nan, device=w.device)
        else:
            logits = logits_of(x)
            minimised = loss = (phase.criterion or cross_entropy)(logits, y)
            hits = hits_of(logits, y)
        if phase.penalty is not None and isinstance(minimised, Tensor):
            added = phase.penalty(leaf)
            minimised = minimised + added if isinstance(added, Tensor | Real) else added
        update(torch.autograd.grad(differentiable(minimised), [leaf]))
        if phase.project is not None:
            phase.project(w, update.velocity(0))
        return loss.detach(), hits

    return step


def differentiable(minimised: Tensor) -> Tensor:
    """What a step minimises.

    Raises:
        MethodError: it is no single number, or does not depend on the weights.
    """
    if not isinstance(minimised, Tensor) or minimised.numel() != 1 or not minimised.requires_grad:
        found = type(minimised).__name__
        if isinstance(minimised, Tensor):
            shape = f"the shape {list(minimised.shape)}"
            found = f"what has {'no gradient' if minimised.numel() == 1 else shape}"
        problem = f"names a method that minimises {found}; criterion, loss and penalty"
        raise MethodError("name", f"{problem} of a Phase give one number, made of weights by torch")
    return minimised


@torch.no_grad()
def hits_of(logits: Tensor, y: Tensor) -> Tensor:
    """How many of the batch are classified correctly; nan where the targets are real numbers.

    Where every step of a text has a label, that share of the batch's samples which the hits are of
    its labels.
    """
    if y.is_floating_point():
        return torch.tensor(torch.nan, device=y.device)
    found = (logits.argmax(dim=1) == y).sum()
    return found if y.dim() == 1 else found * len(y) / (y != IGNORED).sum()


def slot_value(values: float | Tensor, where: slice, shape: tuple[int, ...]) -> float | Tensor:
    """Learning rate or scale of one tensor: a number wherever all its coordinates agree."""
    if not isinstance(values, Tensor):
        return values
    part = values[where]
    return float(part[0]) if bool((part == part[0]).all()) else part.reshape(shape)
