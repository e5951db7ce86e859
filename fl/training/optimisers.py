"""SGD and Adam on masked tensors, in place: of one model, or of several models stacked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fl.contracts import Adam, Sgd


class Variable(NamedTuple):
    """A tensor that is trained, its mask (None: all of it) and its learning rate."""

    tensor: Tensor
    mask: Tensor | None
    rate: float | Tensor


def make_optimiser(
    settings: Sgd | Adam, variables: Sequence[Variable], stacked: bool = False
) -> MaskedSgd | MaskedAdam:
    """An optimiser whose call moves the variables by their gradients; its memory starts at zero.

    Args:
        settings: Sgd or Adam.
        variables: what is trained.
        stacked: the first dimension of every tensor counts models, each of which moves by itself.
    """
    if isinstance(settings, Adam):
        return MaskedAdam(settings, variables)
    return MaskedSgd(settings, variables, stacked)


class _Optimiser:
    """The variables, and ``buffers`` further tensors for each of them."""

    def __init__(self, variables: Sequence[Variable], buffers: int) -> None:
        self.trained = [Variable(*each) for each in variables]
        self._buffers = [[torch.zeros_like(v.tensor) for v in self.trained] for _ in range(buffers)]

    def velocity(self, i: int) -> Tensor | None:
        """Velocity of a variable (of Adam the first moment); None where there is none."""
        return self._buffers[0][i] if self._buffers else None

    def narrow(self, count: int) -> None:
        """From now on only the first ``count`` models of a stack move."""
        self.trained = [
            Variable(
                tensor[:count],
                None if mask is None else mask[:count],
                rate[:count] if isinstance(rate, Tensor) else rate,
            )
            for tensor, mask, rate in self.trained
        ]
        self._buffers = [[each[:count] for each in buffer] for buffer in self._buffers]


class MaskedSgd(_Optimiser):
    """w -= rate v, v = momentum v + mask (gradient + weight_decay w); gradients clipped jointly."""

    def __init__(self, settings: Sgd, variables: Sequence[Variable], stacked: bool = False) -> None:
        super().__init__(variables, buffers=1 if settings.momentum else 0)
        self.settings, self.stacked = settings, stacked

    @torch.no_grad()
    def __call__(self, gradients: Sequence[Tensor]) -> None:
        settings = self.settings
        if settings.clip is not None:
            gradients = self._clipped(gradients, settings.clip)
        for i, (gradient, (w, mask, rate)) in enumerate(zip(gradients, self.trained, strict=True)):
            if settings.weight_decay:
                gradient = gradient.add(w, alpha=settings.weight_decay)
            if self._buffers:
                gradient = gradient if mask is None else gradient * mask
                gradient, mask = self._buffers[0][i].mul_(settings.momentum).add_(gradient), None
            move(w, gradient, mask, rate)

    def _clipped(self, gradients: Sequence[Tensor], clip: float) -> list[Tensor]:
        """Masked gradients, shrunk to a joint norm of at most ``clip``."""
        masked = [
            gradient if mask is None else gradient * mask
            for gradient, (_, mask, _) in zip(gradients, self.trained, strict=True)
        ]
        factor = (clip / (norm_of(masked, self.stacked) + 1e-6)).clamp(max=1.0)
        if not self.stacked:
            return [gradient * factor for gradient in masked]
        return [gradient * factor.view(-1, *[1] * (gradient.dim() - 1)) for gradient in masked]


class MaskedAdam(_Optimiser):
    """Kingma and Ba, ICLR 2015, Algorithm 1, where the mask is true."""

    def __init__(self, settings: Adam, variables: Sequence[Variable]) -> None:
        super().__init__(variables, buffers=2)
        self.settings, self.t = settings, 0

    @torch.no_grad()
    def __call__(self, gradients: Sequence[Tensor]) -> None:
        beta1, beta2, eps = self.settings.beta1, self.settings.beta2, self.settings.eps
        self.t += 1
        # Corrections of the moments' bias towards zero: 1 - beta^t.
        correct1, correct2 = 1.0 - beta1**self.t, 1.0 - beta2**self.t
        every = zip(gradients, self.trained, *self._buffers, strict=True)
        for gradient, (w, mask, rate), first, second in every:
            first.lerp_(gradient, 1.0 - beta1)
            second.mul_(beta2).addcmul_(gradient, gradient, value=1.0 - beta2)
            move(w, (first / correct1) / ((second / correct2).sqrt_() + eps), mask, rate)


def norm_of(gradients: Sequence[Tensor], stacked: bool) -> Tensor:
    """Joint Euclidean norm of the gradients, a scalar; of a stack one for each model [C]."""
    if not stacked:
        norms = [torch.linalg.vector_norm(gradient) for gradient in gradients]
        return torch.linalg.vector_norm(torch.stack(norms))
    # Torch sums a single row in another order than one of several: a stack of one is doubled, so
    # that the result of a model does not depend on whether others are trained beside it.
    if len(gradients[0]) == 1:
        return norm_of([torch.cat([gradient] * 2) for gradient in gradients], stacked)[:1]
    rows = [torch.linalg.vector_norm(gradient.flatten(1), dim=1) for gradient in gradients]
    return torch.linalg.vector_norm(torch.stack(rows), dim=0)


def move(w: Tensor, gradient: Tensor, mask: Tensor | None, rate: float | Tensor) -> None:
    """w -= rate * mask * gradient; a mask of None is all true."""
    if isinstance(rate, Tensor):
        gradient, rate = gradient * rate, 1.0
    if mask is None:
        w.add_(gradient, alpha=-rate)
    else:
        w.addcmul_(gradient, mask, value=-rate)
