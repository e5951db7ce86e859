"""Arrays, tensors, states and random streams, as the contracts name them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, Any]
Tensor = Any  # a torch tensor; the contracts pass it on and do not import torch
State = Any  # what a method carries from round to round; opaque to the clock


class Streams(Protocol):
    """Named random streams; a name gives the same numbers whatever else was drawn before."""

    def stream(
        self, purpose: str, device: int | None = None, round: int | None = None
    ) -> np.random.Generator: ...
