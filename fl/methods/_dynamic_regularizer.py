"""The terms of FedDyn (Acar et al., ICLR 2021), of use to every method with its regulariser."""

from __future__ import annotations

from fl.contracts import Tensor


def feddyn_penalty(w: Tensor, received: Tensor, linear: Tensor, alpha: float) -> Tensor:
    """-<lam, w> + alpha / 2 |w - w^r|^2; all [P]."""
    return 0.5 * alpha * (w - received).square().sum() - linear @ w


def feddyn_correction(
    mean: Tensor, old: Tensor, drift: Tensor, senders: Tensor, devices: int
) -> tuple[Tensor, Tensor]:
    """The next model and the next drift, both [P]; where nobody sent, both stay.

    Args:
        mean: Of each weight over the devices that sent it [P].
        old: The model that they received [P].
        drift: h / alpha [P], from which alpha has cancelled.
        senders: How many sent each weight [P].
        devices: K, all that there are.
    """
    drift = drift - senders / devices * (mean - old)
    return (mean - drift).where(senders > 0, old), drift
