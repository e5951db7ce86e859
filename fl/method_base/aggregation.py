"""Means of what arrives, from which the next global model is made."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fl.contracts import Sent


def mean_over_holders(old: Tensor, sent: Sequence[Sent], weights: Sequence[float]) -> Tensor:
    """Weighted mean of each coordinate over the devices that sent it: Liu, eq. (26).

    With full masks it is eq. (11). A coordinate that nobody sent keeps its old value, which (26)
    leaves undefined. Sums run in double precision in the order of ``sent``.

    Args:
        old: The model before [P].
        sent: What arrived, in the order of the devices.
        weights: One positive weight per device; 1 each is the plain mean of the paper.

    Returns:
        The mean [P].
    """
    total = torch.zeros_like(old, dtype=torch.float64)
    held = torch.zeros_like(total)
    for one, weight in zip(sent, weights, strict=True):
        total += torch.where(one.travels, one.values.double() * weight, 0.0)
        held += one.travels.double() * weight
    return torch.where(held > 0, total / held, old.double()).to(old.dtype)


def mean_of_differences(old: Tensor, sent: Sequence[Sent], weights: Sequence[float]) -> Tensor:
    """The old model moved by the weighted mean of the differences that arrived: FedLPS, eq. (13).

    A coordinate that a device did not send counts as a difference of zero: unlike in
    `mean_over_holders` it moves by the senders' share of all weights only. Sums run in double
    precision in the order of ``sent``.

    Args:
        old: The model before [P].
        sent: What arrived, in the order of the devices.
        weights: One positive weight per device, |D_k| in the paper.

    Returns:
        The moved model [P].
    """
    moved = torch.zeros_like(old, dtype=torch.float64)
    for one, weight in zip(sent, weights, strict=True):
        moved += torch.where(one.travels, (one.values.double() - old.double()) * weight, 0.0)
    return (old.double() + moved / sum(weights)).to(old.dtype)
