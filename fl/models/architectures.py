"""Architectures as plain data.

An architecture is a chain of layers (`fl.models.layers`). Wiring them gives the layout of the flat
model, the groups of units, and how often each weight is used; torch is not needed for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from fl.contracts import Array, Tensor
from fl.errors import ModelError, did_you_mean
from fl.models.layers.layer import Layer, LayerTensor, Shape, Signal
from fl.models.layers.learned_layers import Norm
from fl.models.layers.residual_block import Residual
from fl.models.layers.sequence_layers import TiedDecoder
from fl.models.layout import Layout, Slot
from fl.models.named_models import MODELS, SEQUENCES, TEXT

YOURS = "a model of yours is ./file.py:name"

if TYPE_CHECKING:
    from fl.models.batch_norm import Norms


@dataclass(frozen=True)
class Architecture:
    """A feed-forward model, [B, *input_shape] -> logits [B, classes], or [B, classes, T]."""

    name: str
    input_shape: Shape
    classes: int
    layers: tuple[Layer, ...]

    @cached_property
    def _wired(self) -> tuple[tuple[tuple[LayerTensor, ...], Signal], ...]:
        """Tensors and output of each layer; ModelError where a layer has no output."""
        wired, signal, seen = [], Signal(self.input_shape), dict[str, int]()
        for layer in self.layers:
            seen[layer.kind] = seen.get(layer.kind, 0) + 1
            parts, signal = layer.wire(signal, f"{layer.kind}{seen[layer.kind]}")
            if min(signal.shape) < 1:
                raise ModelError(
                    f"model {self.name} does not fit images of {size_of(self.input_shape)}: "
                    f"nothing is left behind a {layer.kind} layer; choose a smaller model, such as "
                    "mlp"
                )
            wired.append((parts, signal))
        return tuple(wired)

    @cached_property
    def input_shapes(self) -> tuple[Shape, ...]:
        """The shape that each layer receives, without the batch."""
        return self.input_shape, *(signal.shape for _, signal in self._wired[:-1])

    @cached_property
    def parts(self) -> tuple[LayerTensor, ...]:
        """One per slot of the layout."""
        until = {
            layer.borrows: place
            for place, layer in enumerate(self.layers)
            if isinstance(layer, TiedDecoder)
        }
        every = (part for parts, _ in self._wired for part in parts)
        return tuple(replace(part, until=until.get(part.name, part.until)) for part in every)

    @property
    def in_layers(self) -> bool:
        """Is it a chain of this package's layers, which can be cut, stacked and rearranged?"""
        return True

    def in_training(self, seeds: Iterable[int]) -> Architecture:
        """The model as it computes in training steps, each of which draws by one of the seeds."""
        return self

    def digest(self) -> bytes:
        """SHA-256 of what the name of the model does not say: nothing."""
        return b""

    @property
    def normalises(self) -> bool:
        """Does it contain batch norm?"""
        return any(isinstance(layer, Norm | Residual) for layer in self.layers)

    @cached_property
    def macs(self) -> dict[str, float]:
        """Multiply-adds of a forward pass of one sample, by the name of the weight."""
        weights = (
            part for part in self.parts if part.kind in ("weight", "embedding") and part.uses
        )
        return {weight.name: weight.uses * prod(weight.shape) for weight in weights}

    @cached_property
    def layout(self) -> Layout:
        slots, offset = [], 0
        for place, (parts, _) in enumerate(self._wired):
            for part in parts:
                slots.append(
                    Slot(part.name, part.shape, offset, part.kind, part.role, place, part.axes)
                )
                offset += prod(part.shape)
        units = self._wired[-1][1].units
        return Layout(tuple(slots), None if units is None else units.group)

    def forward(self, tensors: Sequence[Tensor], x: Tensor, norms: Norms | None = None) -> Tensor:
        """Logits of a batch.

        Args:
            tensors: one per slot, or narrower ones of a submodel; further tensors are ignored.
            x: [B, *input_shape].
            norms: collects or supplies the statistics of batch norm; None: those of this batch.

        Returns:
            Logits [B, classes], or [B, classes, T].
        """
        return self.features(tensors, x, norms)[1]

    def features(
        self, tensors: Sequence[Tensor], x: Tensor, norms: Norms | None = None
    ) -> tuple[Tensor, Tensor]:
        """What the last layer receives [B, ...], and the logits [B, classes], as `forward`."""
        normalise = batch_norm if norms is None else norms.begin(len(x))
        rest, before = iter(tensors), x
        for layer, (parts, _) in zip(self.layers, self._wired, strict=True):
            own = tuple(next(rest) for _ in parts)
            if isinstance(layer, TiedDecoder):
                names = [slot.name for slot in self.layout.slots]
                own = (tensors[names.index(layer.borrows)], *own)
            before, x = x, layer.apply(x, own, normalise)
        return before, x

    @property
    def at_every_step(self) -> bool:
        """Does it predict a code at every step of a text, and not one for all of it?"""
        return any(isinstance(layer, TiedDecoder) for layer in self.layers)

    def logits(self, w: Tensor, x: Tensor, norms: Norms | None = None) -> Tensor:
        """Logits [B, classes] of the flat model w [P or more]."""
        return self.forward(self.layout.split(w), x, norms)

    def initial(self, rng: np.random.Generator) -> Array:
        """Initial weights, float32 [P]."""
        w = np.empty(self.layout.size, dtype=np.float32)
        for slot, part in zip(self.layout.slots, self.parts, strict=True):
            w[slot.slice] = part.initial(rng)
        return w


def batch_norm(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """`fl.models.batch_norm.batch_norm`, imported only when something is computed."""
    from fl.models import batch_norm as norms

    return norms.batch_norm(x, scale, shift)


def size_of(shape: Shape) -> str:
    return "x".join(map(str, shape))


def samples_and_models(shape: Shape, text: bool) -> str:
    """What the samples are taken for, and which models fit them: the end of an error sentence."""
    others = ", ".join(name for name in MODELS if (name in TEXT) == text)
    if not text:
        return f"images of {size_of(shape)}; choose one of {others}"
    what = "give them as float32, pictures as uint8"
    if len(shape) > 1:
        return f"{size_of(shape)} codes, for which whole numbers are taken; {what}"
    return f"texts of {shape[0]} codes; choose one of {others}; where they are no codes, {what}"


def build(
    name: str,
    input_shape: Shape,
    classes: int,
    text: bool | None = None,
    at_every_step: bool | None = None,
) -> Architecture:
    """The architecture of a name.

    Args:
        name: one of `fl.models.named_models.MODELS`.
        input_shape: of images [channels, height, width], of texts [T].
        classes: number of them.
        text: samples are codes of characters or words; None: where they have one dimension.
        at_every_step: a code is to be predicted at every step; None: whatever the model does.

    Raises:
        ModelError: there is no such model, or it does not fit the input.
    """
    if name not in MODELS:
        problem = f'there is no model "{name}" (there are {", ".join(MODELS)}; {YOURS})'
        raise ModelError(problem + did_you_mean(name, MODELS))
    shape = tuple(input_shape)
    text = len(shape) == 1 if text is None else text
    if not text and len(shape) != 3 and name not in (*TEXT, "mlp"):
        problem = "only mlp, or a model of your own, does"
        raise ModelError(
            f"model {name} does not fit samples of {size_of(shape)} numbers; {problem}"
        )
    if text != (name in TEXT):
        raise ModelError(f"model {name} does not fit {samples_and_models(shape, text)}")
    architecture = Architecture(name, shape, classes, tuple(MODELS[name][0](shape, classes)))
    architecture.layout  # noqa: B018 - raises where the images are too small
    if at_every_step not in (None, architecture.at_every_step):
        fits = " or ".join(sorted(SEQUENCES if at_every_step else TEXT - SEQUENCES))
        what = "at every step" if at_every_step else "behind each text"
        problem = f"does not fit data that ask for a code {what}; choose {fits}"
        raise ModelError(f"model {name} {problem}")
    return architecture
