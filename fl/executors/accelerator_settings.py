"""Settings of torch for accelerators: the same run gives the same bytes, in full float32.

Otherwise cuDNN may choose an algorithm that adds in the order in which threads happen to end, and
rounds what it multiplies to the 10 bits of TF32. Nothing of it touches the CPU.
"""

from __future__ import annotations

import os

import torch
from torch.utils import deterministic

CUBLAS_WORKSPACE = ":4096:8"  # of the two with which cuBLAS repeats itself, the faster one


def repeat_on_accelerators() -> None:
    """Applies the settings to this process, before its first product on an accelerator.

    An operation of a user's model that cannot repeat itself is computed all the same, and torch
    warns of it by name.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", CUBLAS_WORKSPACE)
    torch.backends.cudnn.allow_tf32 = False
    torch.use_deterministic_algorithms(True, warn_only=True)
    # Else every empty tensor is filled with nan. mypy does not see the property.
    deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
