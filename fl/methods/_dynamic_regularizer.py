"""The terms of FedDyn (Acar et al., ICLR 2021), of use to every method with its regulariser."""

from __future__ import annotations

from collections.abc import Sequence

from fl.contracts import Sent, Tensor
from fl.method_base.aggregation import mean_over_holders


def feddyn_penalty(w: Tensor, received: Tensor, linear: Tensor, alpha: float) -> Tensor:
    """-<lam, w> + alpha / 2 |w - w^r|^2; all [P]."""
    return 0.5 * alpha * (w - received).square().sum() - linear @ w


def feddyn_drift(drift: Tensor, old: Tensor, sent: Sequence[Sent], devices: int) -> Tensor:
    """The next h / alpha [P], which the server takes off the mean: - 1 / K sum (y - x).

    Args:
        drift: h / alpha [P], from which alpha has cancelled.
        old: The server's model [P].
        sent: Of each device its whole change y - x, applied to the server's model.
        devices: K, all that there are.
    """
    mean = mean_over_holders(old, sent, [1.0] * len(sent))
    senders = sum(one.travels.to(old.dtype) for one in sent)
    return drift - senders / devices * (mean - old)
