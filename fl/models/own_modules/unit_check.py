"""The check with numbers: units that are left out cannot be seen in the outputs of a module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import torch
from torch import Tensor, nn

from fl.contracts import Array
from fl.models.layout import Layout, Slot, UnitAxis
from fl.models.own_modules.counted_call import LOOKED_UP

OUTPUT = "output"
DRAWS, TOLERANCE = 3, 1e-5  # the tolerance is relative to the outputs
# (name of a tensor, dimension) -> units
Axes = dict[tuple[str, int], UnitAxis]


@dataclass(frozen=True)
class UnitSearch:
    """A module whose units are looked for.

    Args:
        name: of the model, for errors.
        module: with weights, and batch norm of torch.
        last: name of its last layer.
        outputs: how many there are.
        sample: a batch of samples.
        logits: weights [P] and a batch -> outputs.
    """

    name: str
    module: nn.Module
    last: str
    outputs: int
    sample: Tensor
    logits: Callable[[Tensor, Tensor], Tensor]


def divided(plain: Layout, axes: Axes) -> Layout:
    """The layout with these axes in place of its own."""
    slots = tuple(
        replace(slot, axes=tuple(axes.get((slot.name, i), own) for i, own in enumerate(slot.axes)))
        for slot in plain.slots
    )
    return Layout(slots, OUTPUT)


def checked(model: UnitSearch, plain: Layout, groups: list[Axes]) -> list[Axes]:
    """The groups whose left out units cannot be seen in the output: all at once, else each."""
    if invisible(model, plain, groups):
        return groups
    return [axes for axes in groups if invisible(model, plain, [axes])]


def invisible(model: UnitSearch, plain: Layout, groups: list[Axes]) -> bool:
    """Is the output the same whatever leads into units whose outgoing weights are zero?"""
    layout = divided(plain, {place: axis for axes in groups for place, axis in axes.items()})
    kept = {
        name: np.arange(group.units) % 2 == 0
        for name, group in layout.groups.items()
        if group.hidden and group.units > 1
    }
    outgoing = Layout(tuple(incoming_only(slot) for slot in layout.slots), OUTPUT)
    known = {name: units for name, units in kept.items() if name in outgoing.groups}
    masks = layout.expand(kept), outgoing.expand(known)
    rng = np.random.default_rng(0)
    return all(same_outputs(model, plain, masks, rng) for _ in range(DRAWS))


def same_outputs(
    model: UnitSearch, plain: Layout, masks: tuple[Array, Array], rng: np.random.Generator
) -> bool:
    """Are the outputs of weights and samples drawn at random the same under both masks [P]?"""
    w, x = np.concatenate([drawn(slot, rng) for slot in plain.slots]), samples(model, rng)
    first, second = (logits(model, w * mask, x) for mask in masks)
    largest = (first - second).abs().max()
    return bool(torch.isfinite(first).all() and largest <= TOLERANCE * first.abs().max())


def drawn(slot: Slot, rng: np.random.Generator) -> Array:
    """Values [size] with which a signal keeps its size from layer to layer: it never fades."""
    mean = 1.0 if slot.kind == "norm" else 0.0
    inputs = prod(slot.shape[1:])
    spread = {"weight": (2.0 / inputs) ** 0.5, "embedding": 1.0}.get(slot.kind, 0.1)
    return rng.normal(mean, spread, slot.size)


def incoming_only(slot: Slot) -> Slot:
    """A slot with the axes of its inputs alone."""
    weight = slot.kind == "weight"
    return replace(slot, axes=(None, *slot.axes[1:]) if weight else (None,) * len(slot.shape))


def samples(model: UnitSearch, rng: np.random.Generator) -> Tensor:
    """A batch of samples that differ, as do the codes of one, which every look-up has."""
    x = model.sample
    if not x.is_floating_point():
        looked_up = (each for each in model.module.modules() if isinstance(each, LOOKED_UP))
        codes = min((each.num_embeddings for each in looked_up), default=1)
        return torch.from_numpy(rng.integers(codes, size=tuple(x.shape)))
    return torch.from_numpy(rng.uniform(-1.0, 1.0, tuple(x.shape)).astype(np.float32))


@torch.no_grad()
def logits(model: UnitSearch, w: Array, x: Tensor) -> Tensor:
    """Outputs for a batch of samples."""
    return model.logits(torch.from_numpy(w.astype(np.float32)), x)
