"""Masks bool [P]: which weights are kept."""

from __future__ import annotations

import torch
from torch import Tensor


def largest(score: Tensor, among: Tensor, keep: int) -> Tensor:
    """The ``keep`` largest scores [P] among the coordinates where ``among`` bool [P] is true: Liu, eq. (21).

    Of equal scores the one with the lower index is kept. A score that is not a number counts as the largest.
    """
    values = torch.nan_to_num(score[among], nan=torch.inf, posinf=torch.inf)
    size = len(values)
    chosen = torch.full_like(values, keep >= size, dtype=torch.bool)
    if 0 < keep < size:
        threshold = values.kthvalue(size - keep + 1).values
        chosen = values > threshold
        ties = (values == threshold).nonzero().flatten()
        chosen[ties[: keep - int(chosen.sum())]] = True
    mask = torch.zeros_like(among)
    mask[among] = chosen
    return mask


def importance(before: Tensor, after: Tensor) -> Tensor:
    """Cheap importance |u_hat - u| [P] of every weight after a warm-up: Liu, eq. (20)."""
    return (after - before).abs()


def kept_count(rho: float, prunable: int) -> int:
    """How many of N_u weights stay at ratio rho: (1 - rho) N_u, rounded (Liu, eq. (21))."""
    return round((1.0 - rho) * prunable)
