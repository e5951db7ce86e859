"""How a module of the user's own is made, always with the same first values for a seed."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fl.errors import ModelError
from fl.models.layers.layer import Shape


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """The generators of torch, numpy and Python that all code shares start from a seed within."""
    states = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            np.random.seed(seed % 2**32)
            random.seed(seed)
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])


def maker(model: Any, input_shape: Shape, outputs: int) -> Callable[[], nn.Module]:
    """What makes the module: a copy of a module, or a call of a class or function.

    A call has the arguments input_shape and classes, if it takes arguments of these names.
    """
    if isinstance(model, nn.Module):
        return lambda: deepcopy(without_history(model))
    try:
        signature = inspect.signature(model)
    except ValueError:  # of what is written in C, such as dict
        return lambda: without_history(model())
    known = {"input_shape": input_shape, "classes": outputs}
    given = {name: value for name, value in known.items() if name in signature.parameters}
    try:
        signature.bind(**given)
    except TypeError as error:
        allowed = "input_shape and classes are known, all else needs a default"
        raise ModelError(f"it cannot be made ({error}); of its arguments {allowed}") from error
    return lambda: without_history(model(**given))


def without_history(made: Any) -> Any:
    """What was made, if it can be copied.

    Raises:
        ModelError: a module keeps a tensor that follows from its parameters.
    """
    for name, each in made.named_modules() if isinstance(made, nn.Module) else ():
        for key, value in (vars(each) | dict(each.named_buffers(recurse=False))).items():
            if isinstance(value, Tensor) and value.grad_fn is not None:
                found = f"it keeps {f'{name}.{key}'.lstrip('.')}, computed from parameters before"
                raise ModelError(
                    f"{found} the forward pass, as torch.nn.utils.weight_norm and prune do; use "
                    "torch.nn.utils.parametrizations, or compute it in forward"
                )
    return made
