"""How what arrives becomes the next global model."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fl.contracts import Sent


def mean_over_holders(old: Tensor, sent: Sequence[Sent], weights: Sequence[float]) -> Tensor:
    """Weighted mean of each coordinate over the devices that sent it: Liu, eq. (26); with full masks, eq. (11).

    A coordinate that nobody sent keeps its old value, which (26) leaves undefined. Sums run in double precision in
    the order of ``sent``.

    Args:
        old: the model before [P].     weights: one positive weight per device (1 each: the plain mean of the paper).
    """
    total = torch.zeros_like(old, dtype=torch.float64)
    held = torch.zeros_like(total)
    for one, weight in zip(sent, weights, strict=True):
        total += torch.where(one.travels, one.values.double() * weight, 0.0)
        held += one.travels.double() * weight
    return torch.where(held > 0, total / held, old.double()).to(old.dtype)


def mean_of_differences(old: Tensor, sent: Sequence[Sent], weights: Sequence[float]) -> Tensor:
    """The old model moved by the weighted mean of the differences that arrived: FedLPS, eq. (13).

    A coordinate that a device did not send counts as a difference of zero: unlike in `mean_over_holders` it moves by
    the senders' share of all weights only. Sums run in double precision in the order of ``sent``.

    Args:
        old: the model before [P].     weights: one positive weight per device, |D_k| in the paper.
    """
    moved = torch.zeros_like(old, dtype=torch.float64)
    for one, weight in zip(sent, weights, strict=True):
        moved += torch.where(one.travels, (one.values.double() - old.double()) * weight, 0.0)
    return (old.double() + moved / sum(weights)).to(old.dtype)
