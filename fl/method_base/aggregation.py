"""Means of what arrives, from which the next global model is made."""

from __future__ import annotations

from collections.abc import Sequence

from fl.contracts import Sent, Tensor


def mean_over_holders(old: Tensor, sent: Sequence[Sent], weights: Sequence[float]) -> Tensor:
    """Weighted mean of each coordinate over the devices that sent it: Liu, eq. (26).

    With full masks it is eq. (11). A coordinate that nobody sent keeps its old value, which (26)
    leaves undefined. Sums run in double precision in the order of ``sent``.

    Args:
        old: The model before [P].
        sent: What arrived, in the order of the devices; the old model where nothing did.
        weights: One positive weight per device; 1 each is the plain mean of the paper.

    Returns:
        The mean [P].
    """
    if not sent:
        return old
    total, held = old.new_zeros((2, len(old))).double()
    for one, weight in zip(sent, weights, strict=True):
        total += (one.values.double() * weight).where(one.travels, 0.0)
        held += one.travels.double() * weight
    return (total / held).where(held > 0, old.double()).to(old.dtype)


def mean_of_differences(old: Tensor, sent: Sequence[Sent], weights: Sequence[float]) -> Tensor:
    """The old model moved by the weighted mean of the differences that arrived: FedLPS, eq. (13).

    A coordinate that a device did not send counts as a difference of zero: unlike in
    `mean_over_holders` it moves by the senders' share of all weights only. Sums run in double
    precision in the order of ``sent``.

    Args:
        old: The model before [P].
        sent: What arrived, in the order of the devices; the old model where nothing did.
        weights: One positive weight per device, |D_k| in the paper.

    Returns:
        The moved model [P].
    """
    if not sent:
        return old
    moved = old.new_zeros(len(old)).double()
    for one, weight in zip(sent, weights, strict=True):
        moved += ((one.values.double() - old.double()) * weight).where(one.travels, 0.0)
    return (old.double() + moved / sum(weights)).to(old.dtype)
