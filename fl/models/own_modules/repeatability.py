"""Check that a module's outputs follow from parameters, samples and the draws of torch alone.

A module that remembers its calls carries what one device did to the next, and one that draws from
other generators than torch's gives another result in every run.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fl.errors import ModelError
from fl.models.own_modules.module_making import seeded

REPEATS, TOLERANCE = 3, 1e-5  # the tolerance is relative to the outputs


def check_repeats(module: nn.Module, x: Tensor, name: str) -> None:
    """Refuse a module that gives other outputs when it is called again, in training or not.

    Args:
        module: is not changed.
        x: some samples [BATCH, ...].
        name: of the model, for errors.

    Raises:
        ModelError: it does, or it draws from the generators of numpy or Python.
    """
    module = deepcopy(module)
    if x.is_floating_point():
        # below 1: 0 as an integer, such as a code that is looked up
        x = (torch.arange(x.numel()) / x.numel()).to(x.dtype).reshape(x.shape)
    for training in (True, False):
        module.train(training)
        first, draws = outputs_of(module, x)
        if draws:
            raise ModelError(
                f"model {name} draws random numbers of numpy or of Python's random, which do not "
                "follow from the seed of a run; draw those of torch"
            )
        outputs_of(module, x.flip(0))
        again = (outputs_of(module, x)[0] for _ in range(REPEATS))
        if not all(same(first, each) for each in again):
            raise ModelError(
                f"model {name} gives other outputs when it is called again with the same samples; "
                "keep nothing from one call to the next, and draw random numbers from torch's "
                "default generator"
            )


def outputs_of(module: nn.Module, x: Tensor) -> tuple[Any, bool]:
    """Outputs for samples with the draws of torch's seed 0, and whether others were drawn."""

    def next_draws(call: Callable[[], Any]) -> tuple[Any, float, float]:
        with seeded(0), torch.no_grad():
            return call(), random.random(), np.random.random()

    outputs, *drawn = next_draws(lambda: module(x))
    _, *plain = next_draws(lambda: None)
    return getattr(outputs, "logits", outputs), drawn != plain


def same(one: Any, other: Any) -> bool:
    """Are two outputs equal up to rounding? What is no tensor is not compared."""
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return True
    if one.shape != other.shape:
        return False
    size = max(one.abs().nan_to_num(0.0, 0.0, 0.0).flatten().tolist(), default=0.0)
    return torch.allclose(one, other, rtol=0.0, atol=TOLERANCE * size, equal_nan=True)
