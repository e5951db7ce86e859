"""Exact importance of weights: how the loss changes where one of them is zero."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import torch
from torch import Tensor
from torch.func import vmap

from fl.models.architectures import Architecture

CHUNK = 2**20  # numbers that the models of a chunk hold at a time, 8 bytes each


@torch.no_grad()
def loss_changes(
    architecture: Architecture,
    w: Tensor,
    among: Tensor,
    x: Tensor,
    y: Tensor,
    mean_loss: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:
    """F(w | w_j = 0) - F(w) of each weight j; its square is the importance of Liu, eq. (19).

    One forward pass per weight, many at a time, in double precision: most changes are smaller than
    the rounding of a loss in single precision.

    Args:
        architecture: the model.
        w: weights [P].
        among: the weights that are asked for, bool [P].
        x: samples of a batch [B, ...].
        y: their labels or targets.
        mean_loss: (outputs, y) -> mean loss of the batch.

    Returns:
        The changes in the order of the weights, [N] in the type of w.

    Example:
        With outputs w_1 x_1 + w_2 x_2, w = (2, 1), one sample x = (1, 3) with target 4 and the
        squared error, F = 1; without w_1 it is 1, without w_2 it is 4: changes 0 and 3.
    """
    x = x.double() if x.is_floating_point() else x
    y = y.double() if y.is_floating_point() else y
    layout = architecture.layout
    tensors, masks = layout.split(w.double()), layout.split(among)
    widest = len(x) * max(prod(shape) for shape in architecture.input_shapes)

    def loss(number: int, tensor: Tensor) -> Tensor:
        return mean_loss(
            architecture.forward([*tensors[:number], tensor, *tensors[number + 1 :]], x), y
        )

    found = []
    for number, (tensor, mask) in enumerate(zip(tensors, masks, strict=True)):
        places = torch.arange(tensor.numel(), device=w.device).view(tensor.shape)

        def without(j: Tensor, number: int = number, places: Tensor = places) -> Tensor:
            return loss(number, tensors[number] * (places != j))

        if bool(mask.any()):
            chunk = max(1, CHUNK // max(tensor.numel(), widest))
            found.append(vmap(without, chunk_size=chunk)(places[mask]))
    return (torch.cat(found) - loss(0, tensors[0])).to(w.dtype)
