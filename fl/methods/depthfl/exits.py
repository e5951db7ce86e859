"""Models with several exits: a classifier behind every block, for DepthFL (Kim et al., ICLR 2023).

The first d blocks are a model of their own. A block ends behind a pool (and the ReLU that follows
it), behind an LSTM layer, behind the ReLU of a hidden dense layer, and where ResNet begins a stage:
in front of a layer with a stride. The last block ends in the model's own classifier. Every other
one gets a head: the mean of each channel over the picture (of a sequence the last step), then one
dense layer. Heads are tensors of the model like any other, so that layout, initial weights, bits
and FLOPs know them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from math import exp
from typing import TYPE_CHECKING, Any

import numpy as np

from fl.contracts import Array
from fl.errors import ModelError
from fl.models.architectures import Architecture, Tensor, batch_norm
from fl.models.layers.layer import Layer, LayerTensor, Normalise, Shape, Signal
from fl.models.layers.learned_layers import Linear, Lstm
from fl.models.layers.weightless_layers import Last, MaxPool, MeanPool, Relu, StatelessLayer
from fl.models.layout import Slot

if TYPE_CHECKING:
    from fl.models.batch_norm import Norms

POOLING: dict[int, tuple[Last | MeanPool, ...]] = {
    1: (),
    2: (Last(),),
    3: (MeanPool(),),
}  # by number of dimensions


@dataclass(frozen=True)
class Exit:
    """A head: ``apply`` gives its logits; what flows through the model goes on as it came."""

    classes: int
    role: str = "classifier"
    kind: str = "exit"

    def wire(self, given: Signal, name: str) -> tuple[tuple[LayerTensor, ...], Signal]:
        """Its outputs are no units: a submodel leaves out no class."""
        signal = given
        for layer in POOLING[len(given.shape)]:
            signal = layer.output(signal)
        parts, _ = Linear(signal.shape[0], self.classes, self.role).wire(signal, name)
        return tuple(replace(part, axes=(None, *part.axes[1:])) for part in parts), given

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        from torch.nn.functional import linear

        for layer in POOLING[x.dim() - 1]:
            x = layer.apply(x, (), normalise)
        return linear(x, *tensors)


@dataclass(frozen=True)
class Branched(Architecture):
    """An architecture with exits among its layers; its logits are the mean over classifiers."""

    @cached_property
    def depths(self) -> int:
        """D: how many blocks, and classifiers, it has."""
        return 1 + sum(isinstance(layer, Exit) for layer in self.layers)

    def depth_of(self, slot: Slot) -> int:
        """The block, 1 to D, that a tensor belongs to; a head belongs to its own."""
        return 1 + sum(isinstance(layer, Exit) for layer in self.layers[: slot.layer])

    def exits(
        self,
        tensors: Sequence[Tensor],
        x: Tensor,
        depth: int | None = None,
        norms: Norms | None = None,
    ) -> list[Tensor]:
        """The logits [B, classes] of the first ``depth`` classifiers, None: of all.

        Deeper blocks are not computed.
        """
        normalise = batch_norm if norms is None else norms.begin(len(x))
        rest, found = iter(tensors), []
        for layer, (parts, _) in zip(self.layers, self._wired, strict=True):
            out = layer.apply(x, tuple(islice(rest, len(parts))), normalise)
            if not isinstance(layer, Exit):
                x = out
                continue
            found.append(out)
            if len(found) == depth:
                return found
        return [*found, x]

    def forward(self, tensors: Sequence[Tensor], x: Tensor, norms: Norms | None = None) -> Tensor:
        import torch

        return torch.stack(self.exits(tensors, x, None, norms)).mean(0)

    def split(self, w: Tensor) -> list[Tensor]:
        """As `Layout.split`, in one operation.

        The gradient through it costs one pass over w, not one per tensor.
        """
        slots = self.layout.slots
        pieces = w[: self.layout.size].split([slot.size for slot in slots])
        return [piece.view(slot.shape) for piece, slot in zip(pieces, slots, strict=True)]

    def initial(self, rng: np.random.Generator) -> Array:
        """Those of the model without heads, then those of the heads."""
        w = np.empty(self.layout.size, dtype=np.float32)
        heads = [isinstance(self.layers[slot.layer], Exit) for slot in self.layout.slots]
        for wanted in (False, True):
            for slot, part, head in zip(self.layout.slots, self.parts, heads, strict=True):
                if head == wanted:
                    w[slot.slice] = part.initial(rng)
        return w


def with_exits(architecture: Architecture) -> Branched:
    """The same model with a head behind every block but the last."""
    if isinstance(architecture, Branched):
        return architecture
    if not architecture.in_layers:
        raise ModelError(
            f"depthfl does not know the blocks of model {architecture.name}, a module of your own; "
            "use a model of edgesim list models"
        )
    if architecture.at_every_step:
        raise ModelError(
            f"depthfl has heads for one label of a text, and model {architecture.name} predicts "
            "one at every step; use another model or method"
        )
    layers, shapes = architecture.layers, architecture.input_shapes
    branched: list[Any] = []
    for i, layer in enumerate(layers):
        # More than the model's own classifier is still to come.
        hidden = sum(not isinstance(later, StatelessLayer) for later in layers[i:]) > 1
        if i > 0 and hidden and block_ends(layers, shapes, i):
            branched.append(Exit(architecture.classes))
        branched.append(layer)
    return Branched(
        architecture.name, architecture.input_shape, architecture.classes, tuple(branched)
    )


def block_ends(layers: Sequence[Layer], shapes: Sequence[Shape], i: int) -> bool:
    """Does a block end in front of layer i, which receives signals of shape ``shapes[i]``?"""
    before = layers[i - 1]
    source = next((each for each in reversed(layers[:i]) if not isinstance(each, Relu)), None)
    dense = isinstance(before, Relu) and len(shapes[i]) == 1
    stage = getattr(layers[i], "stride", 1) > 1
    return not isinstance(layers[i], Relu) and (
        dense or stage or isinstance(source, MaxPool | Lstm)
    )


# --- what their classifiers learn from each other ------------------------------------------------


def ramp(g: int, rounds: int) -> float:
    """Weight of mutual distillation, exp(-5 (1 - g / rounds)^2), from round ``rounds`` on 1."""
    return exp(-5.0 * (1.0 - min(g, rounds) / rounds) ** 2)


def mutual_loss(logits: Sequence[Tensor], y: Tensor, weight: float) -> Tensor:
    """Cross entropies of d classifiers, and their distillation from each other.

    sum_i CE(o_i, y) + weight sum_i sum_{j != i} KL(softmax o_j || softmax o_i) / (d - 1), means
    over the batch. No gradient goes through o_j, the teacher. A single classifier has no teacher.

    Args:
        logits: o_i, d times [B, classes].
        y: Labels, int [B].
        weight: Of the distillation.
    """
    from torch.nn.functional import cross_entropy, kl_div

    loss = sum(cross_entropy(each, y) for each in logits)
    if len(logits) == 1:
        return loss
    chances = [each.log_softmax(1) for each in logits]
    pairs = [(p, q.detach()) for p in chances for q in chances if p is not q]
    apart = sum(kl_div(p, q, log_target=True, reduction="batchmean") for p, q in pairs)
    return loss + weight * apart / (len(logits) - 1)
