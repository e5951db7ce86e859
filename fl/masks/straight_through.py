"""Straight-through gradients of masks that are drawn by keep-probabilities p = sigmoid(s)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class StraightThrough(torch.autograd.Function):
    """``value`` [J] in the forward pass, with ``slope`` [J] as its derivative by the logits."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, value: Tensor, slope: Tensor) -> Tensor:
        ctx.save_for_backward(slope)
        return value

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (slope,) = ctx.saved_tensors
        return gradient * slope, None, None


def slope(p: Tensor, draws: int | Tensor, surrogate: str = "fedpm") -> Tensor:
    """d mask / d s [J] of a place that is a candidate in the last of n draws.

    Args:
        p: Keep-probabilities [J].
        draws: n, a number or [J].
        surrogate: fedpm: (p^2 - p^(2n+2)) / (1 + p), FedMAP, (7), (10), (11), where the backward
            pass of a draw with probability q is q; identity: p (1 - p^n), where it is 1.
    """
    if surrogate == "identity":
        return p * (1.0 - p**draws)
    return (p**2 - p ** (2 * draws + 2)) / (1.0 + p)
