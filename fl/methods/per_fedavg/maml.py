"""The gradient of a loss after one gradient step: Fallah, Mokhtari, Ozdaglar, NeurIPS 2020, eqs. (4) to (6)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Loss = Callable[[Tensor], Tensor]  # w [P] -> scalar


def after_a_step(w: Tensor, inner: Loss, outer: Loss, alpha: float, exact: bool = False) -> Tensor:
    """outer(w - alpha grad inner(w)), to be differentiated by w [P].

    exact: the derivative is (I - alpha Hessian of inner) times the gradient of outer; otherwise the Hessian is left out
    and it is the gradient of outer at the new place (FO).
    """
    (gradient,) = torch.autograd.grad(inner(w), [w], create_graph=exact)
    return outer(w - alpha * gradient)


def halves(x: Tensor, y: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """The samples D of the inner step and D' of the outer one; a single sample is both."""
    half = len(y) // 2
    return (x[: max(1, half)], y[: max(1, half)]), (x[half:], y[half:])
