"""Random weights that stay as they are, and the masks that choose among them: Isik et al., ICLR 2023 (FedPM)."""

from __future__ import annotations

from collections.abc import Sequence
from math import e, prod
from typing import Any

import numpy as np

from fl.contracts import Tensor
from fl.masks.posterior import Beta
from fl.models.layout import Layout

Array = np.ndarray
Values = Any  # [P], a numpy array or a torch tensor
CERTAIN = (
    104.0  # in float32 its sigmoid is 1 and that of -CERTAIN 0; of an infinity decay would make nan
)


def signed_constants(layout: Layout, rng: np.random.Generator) -> Array:
    """+c or -c at random [P], c = e / sqrt(inputs of the unit); a bias has the c of the weights before it."""
    c, inputs = np.empty(layout.size), 1
    for slot in layout.slots:
        inputs = inputs if slot.kind == "bias" else prod(slot.shape[1:])
        c[slot.slice] = e / inputs**0.5
    return np.where(rng.random(layout.size) < 0.5, -c, c)


def logits(theta: Tensor) -> Tensor:
    """The scores s [P] of probabilities theta [P], finite also where these are 0 or 1."""
    return theta.logit().clamp(-CERTAIN, CERTAIN)


def counted(prior: Beta, masks: Sequence[Values], softening: float = 0.0) -> Beta:
    """The posterior of the probabilities [P] after some masks [P] of 0 and 1: Isik et al., Algorithm 2.

    softening: a mask counts as softening and 1 - softening instead of 0 and 1, which keeps the mode inside (0, 1).
    """
    used = sum(softening + (1.0 - 2.0 * softening) * mask for mask in masks)
    return Beta(prior.alpha + used, prior.beta + (len(masks) - used))
