"""One step of an optimiser, in place, on some tensors with their masks and rates."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fl.contracts import Adam, Sgd

Trained = tuple[
    Tensor, Tensor | None, float | Tensor
]  # a leaf, its mask (None: all true), its rate


def descent(
    optimiser: Sgd | Adam, trained: Sequence[Trained], stacked: bool = False
) -> Descent | AdamDescent:
    """Moves the leaves by their gradients; what it remembers (velocities) begins at zero.

    stacked: the first dimension of every tensor counts models, each of which moves by itself.
    """
    if isinstance(optimiser, Adam):
        return AdamDescent(optimiser, trained)
    return Descent(optimiser, trained, stacked)


class Descent:
    """leaf -= rate v, v = momentum v + mask (gradient + weight_decay leaf), the gradients clipped to a joint norm."""

    def __init__(self, sgd: Sgd, trained: Sequence[Trained], stacked: bool = False) -> None:
        self.sgd, self.trained, self.stacked = sgd, trained, stacked
        self._velocity = (
            [torch.zeros_like(leaf) for leaf, _, _ in trained] if sgd.momentum else None
        )

    def velocity(self, i: int) -> Tensor | None:
        return None if self._velocity is None else self._velocity[i]

    def narrow(self, count: int) -> None:
        """From now on only the first ``count`` models of a stack move."""
        self.trained = narrowed(self.trained, count)
        self._velocity = None if self._velocity is None else [v[:count] for v in self._velocity]

    @torch.no_grad()
    def __call__(self, gradients: Sequence[Tensor]) -> None:
        sgd = self.sgd
        if sgd.clip is not None:
            masked = [
                g if m is None else g * m
                for g, (_, m, _) in zip(gradients, self.trained, strict=True)
            ]
            shrink = (sgd.clip / (norm_of(masked, self.stacked) + 1e-6)).clamp(max=1.0)
            gradients = [
                g * shrink.view(-1, *[1] * (g.dim() - 1)) if self.stacked else g * shrink
                for g in masked
            ]
        for i, (gradient, (leaf, mask, rate)) in enumerate(
            zip(gradients, self.trained, strict=True)
        ):
            if sgd.weight_decay:
                gradient = gradient.add(leaf, alpha=sgd.weight_decay)
            if self._velocity is not None:
                gradient = gradient if mask is None else gradient * mask
                gradient, mask = self._velocity[i].mul_(sgd.momentum).add_(gradient), None
            descend(leaf, gradient, mask, rate)


class AdamDescent:
    """Kingma and Ba, ICLR 2015, Algorithm 1, where the mask is true."""

    def __init__(self, adam: Adam, trained: Sequence[Trained]) -> None:
        self.adam, self.trained, self.t = adam, trained, 0
        self._first = [torch.zeros_like(leaf) for leaf, _, _ in trained]
        self._second = [torch.zeros_like(leaf) for leaf, _, _ in trained]

    def velocity(self, i: int) -> Tensor:
        return self._first[i]

    def narrow(self, count: int) -> None:
        """From now on only the first ``count`` models of a stack move."""
        self.trained = narrowed(self.trained, count)
        self._first, self._second = (
            [v[:count] for v in memory] for memory in (self._first, self._second)
        )

    @torch.no_grad()
    def __call__(self, gradients: Sequence[Tensor]) -> None:
        adam = self.adam
        self.t += 1
        ahead, scale = 1.0 - adam.beta1**self.t, 1.0 - adam.beta2**self.t
        for i, (gradient, (leaf, mask, rate)) in enumerate(
            zip(gradients, self.trained, strict=True)
        ):
            first = self._first[i].lerp_(gradient, 1.0 - adam.beta1)
            second = (
                self._second[i]
                .mul_(adam.beta2)
                .addcmul_(gradient, gradient, value=1.0 - adam.beta2)
            )
            descend(leaf, (first / ahead) / ((second / scale).sqrt_() + adam.eps), mask, rate)


def norm_of(gradients: Sequence[Tensor], stacked: bool) -> Tensor:
    """The norm of all gradients together; of a stack that of every model [C].

    A single row is summed in another order than one of several, and no model of a stack may know whether it is alone.
    """
    if stacked and len(gradients[0]) == 1:
        return norm_of([torch.cat([g, g]) for g in gradients], stacked)[:1]
    if stacked:
        norms = torch.stack([torch.linalg.vector_norm(g.flatten(1), dim=1) for g in gradients])
        return torch.linalg.vector_norm(norms, dim=0)
    return torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in gradients]))


def narrowed(trained: Sequence[Trained], count: int) -> list[Trained]:
    """The first ``count`` models of a stack."""
    return [
        (
            leaf[:count],
            None if mask is None else mask[:count],
            rate[:count] if isinstance(rate, Tensor) else rate,
        )
        for leaf, mask, rate in trained
    ]


def descend(leaf: Tensor, gradient: Tensor, mask: Tensor | None, rate: float | Tensor) -> None:
    """leaf -= rate * mask * gradient; a mask of None is all true."""
    if isinstance(rate, Tensor):
        gradient, rate = gradient * rate, 1.0
    if mask is None:
        leaf.add_(gradient, alpha=-rate)
    else:
        leaf.addcmul_(gradient, mask, value=-rate)
