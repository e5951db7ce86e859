"""FedDyn's regulariser: Acar et al., "Federated Learning Based on Dynamic Regularization", ICLR 2021.

A device adds -<lam, w> + alpha / 2 |w - w^r|^2 to its loss, and afterwards lam <- lam - alpha (w - w^r). The server
corrects the mean: h <- h - alpha n / K (mean - w^r), w = mean - h / alpha. It keeps drift = h / alpha, from which alpha
has cancelled.
"""

from __future__ import annotations

import torch
from torch import Tensor


def penalty(w: Tensor, received: Tensor, linear: Tensor, alpha: float) -> Tensor:
    """-<lam, w> + alpha / 2 |w - w^r|^2; all [P]."""
    return 0.5 * alpha * (w - received).square().sum() - linear @ w


def corrected(
    mean: Tensor, old: Tensor, drift: Tensor, senders: Tensor, devices: int
) -> tuple[Tensor, Tensor]:
    """The next model and the next drift, both [P]; where nobody sent, both stay.

    Args:
        mean: of each weight over the devices that sent it.     old: the model that they received.
        senders: how many sent each weight.     devices: K, all that there are.
    """
    drift = drift - senders / devices * (mean - old)
    return torch.where(senders > 0, mean - drift, old), drift
