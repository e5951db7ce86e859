"""Training of SpaFL's thresholds: Kim et al., NeurIPS 2024, eqs. (5), (6), (8), (9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fl.masks.thresholds import ThresholdRows

SURROGATES = {  # dS/dQ of the unit step
    "identity": torch.ones_like,  # (9)
    "inverted-clip": lambda q: (q.abs() > 1.0).to(q.dtype),
    "piecewise": lambda q: torch.where(q.abs() <= 0.4, 2.0 - 4.0 * q.abs(), 0.4 * (q.abs() <= 1.0)),
}


@dataclass(eq=False)
class Pruner:
    """The hooks of one phase that trains weights and thresholds, w [P + T].

    Three of them ask for the mean |w| of all rows, which is computed once per version of w.

    Args:
        rows: The rows that have thresholds.
        penalty: alpha of the penalty on the loss, alpha sum_i exp(-tau_i), eq. (5).
        surrogate: The derivative dS/dQ of the unit step.
        mask_path: Weights get the gradient through mu, too.
    """

    rows: ThresholdRows
    penalty: float = 0.0
    surrogate: str = "identity"
    mask_path: bool = False

    def __post_init__(self) -> None:
        self._means: Tensor | None = None
        self._state: tuple[int, int] | None = None

    def effective(self, w: Tensor, rng: np.random.Generator | None = None) -> Tensor:
        """The weights that compute, w~ [P]."""
        return Masking.apply(w, self)

    def collect(self, w: Tensor) -> Tensor:
        """1 for every row that lives, [T]."""
        return (self.margins(w) > 0).to(w.dtype)

    def project(self, w: Tensor, velocity: Tensor | None = None) -> None:
        """Weights and thresholds back into their ranges; layers that died begin anew."""
        self.rows.clamp_(w)
        self._means = self.rows.means(w)
        self.rows.revive_(w, self._means > self.rows.thresholds(w), velocity)
        self._state = state_of(w)

    def margins(self, w: Tensor) -> Tensor:
        """Q = mu - tau [T]."""
        if self._state != state_of(w):
            self._means, self._state = self.rows.means(w), state_of(w)
        return self._means - self.rows.thresholds(w)


def state_of(w: Tensor) -> tuple[int, int]:
    """Address and version of a tensor: distinguishes the states of the one w of a phase."""
    return w.data_ptr(), w._version


class Masking(torch.autograd.Function):
    """w [P + T] -> w~ [P], with the gradients of thresholds and weights.

    Thresholds get h_i = -(dS/dQ)_i sum_j g_ij w_ij, weights g p. The thresholds also get the
    gradient of the penalty, (6): as a term of the loss it would make autograd add up two gradients
    of the whole model. With ``mask_path`` weights get what reaches them through mu,
    -h_i sign(w_ij) / n_in.
    """

    @staticmethod
    def forward(ctx: Any, w: Tensor, pruner: Pruner) -> Tensor:
        margins = pruner.margins(w)
        ctx.save_for_backward(w, margins)
        ctx.pruner = pruner
        return pruner.rows.cut(w, margins > 0, w.new_empty(pruner.rows.size))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        (w, margins), pruner, rows = ctx.saved_tensors, ctx.pruner, ctx.pruner.rows
        g, tau = g.contiguous(), rows.thresholds(w)
        pairs = zip(rows.tensors(g), rows.tensors(w), strict=True)
        h = -SURROGATES[pruner.surrogate](margins) * torch.cat(
            [torch.linalg.vecdot(a, b) for a, b in pairs]
        )
        gradient = rows.cut(g, margins > 0, torch.empty_like(w))
        rows.thresholds(gradient).copy_(h - pruner.penalty * torch.exp(-tau))
        if pruner.mask_path:
            each = zip(
                rows.tensors(gradient),
                rows.tensors(w),
                h.split(rows.counts),
                rows.widths,
                strict=True,
            )
            for to_weights, x, part, n in each:
                to_weights.addcmul_(torch.sign(x), (-part / n).unsqueeze(1))
        return gradient, None
