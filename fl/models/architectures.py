"""Architectures as plain data, and the table of models.

An architecture is a chain of layers (`fl.models.layers`, `fl.models.weightless_layers`). Wiring
them gives the layout of the flat model, the groups of units, and how often each weight is used;
torch is not needed for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from fl.contracts import Array, Tensor
from fl.errors import ModelError
from fl.models.layers import (
    Conv,
    Embedding,
    Layer,
    LayerTensor,
    Linear,
    Lstm,
    Norm,
    Residual,
    Shape,
    Signal,
)
from fl.models.layout import Layout, Slot
from fl.models.sequence_layers import (
    ClassToken,
    LayerNorm,
    Patches,
    TiedDecoder,
    TransformerBlock,
)
from fl.models.weightless_layers import Flatten, Last, MaxPool, MeanPool, Relu

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
        return tuple(part for parts, _ in self._wired for part in parts)

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


def flat(shape: Shape, layers: Sequence[Layer]) -> int:
    """Length of the flattened output of ``layers``."""
    signal = Signal(shape)
    for layer in layers:
        signal = layer.wire(signal, layer.kind)[1]
    return prod(max(size, 0) for size in signal.shape)


def normalised(inputs: int, plan: str, side: int, padding: int, bias: bool) -> list[Layer]:
    """Convolution, norm and ReLU for every number of filters in the plan, a pool for every M."""
    layers: list[Layer] = []
    for word in plan.split():
        if word == "M":
            layers.append(MaxPool())
        else:
            layers += [Conv(inputs, int(word), side, padding, bias=bias), Norm(), Relu()]
            inputs = int(word)
    return layers


def mlp(shape: Shape, classes: int) -> Sequence[Layer]:
    return Flatten(), Linear(prod(shape), 64, "features"), Relu(), Linear(64, classes)


def digits_cnn(shape: Shape, classes: int) -> Sequence[Layer]:
    features = Conv(shape[0], 8, 3, 1), Relu(), MaxPool(), Conv(8, 16, 3, 1), Relu(), MaxPool()
    return *features, Flatten(), Linear(flat(shape, features), 64), Relu(), Linear(64, classes)


def liu_cnn(shape: Shape, classes: int) -> Sequence[Layer]:
    features = Conv(shape[0], 32, 5, 2), Relu(), MaxPool(), Conv(32, 64, 5, 2), Relu(), MaxPool()
    return *features, Flatten(), Linear(flat(shape, features), 128), Relu(), Linear(128, classes)


def fedlps_cnn(shape: Shape, classes: int) -> Sequence[Layer]:
    features = Conv(shape[0], 10, 5, 0), MaxPool(), Relu(), Conv(10, 20, 5, 0), MaxPool(), Relu()
    return *features, Flatten(), Linear(flat(shape, features), 50), Relu(), Linear(50, classes)


def lenet5_caffe(shape: Shape, classes: int) -> Sequence[Layer]:
    first, second = Conv(shape[0], 20, 5, 0, bias=False), Conv(20, 50, 5, 0, bias=False)
    features = first, MaxPool(), Relu(), second, MaxPool(), Relu()
    hidden = Linear(flat(shape, features), 500, bias=False)
    return *features, Flatten(), hidden, Relu(), Linear(500, classes, bias=False)


def spafl_conv4(shape: Shape, classes: int) -> Sequence[Layer]:
    features = normalised(shape[0], "64 64 M 128 128 M", side=5, padding=0, bias=False)
    first = Linear(flat(shape, features), 128, bias=False), Norm("classifier"), Relu()
    second = Linear(128, 128, bias=False), Norm("classifier"), Relu()
    return *features, Flatten(), *first, *second, Linear(128, classes, bias=False)


def vgg11(shape: Shape, classes: int) -> Sequence[Layer]:
    features = normalised(
        shape[0], "64 M 128 M 256 256 M 512 512 M 512 512 M", side=3, padding=1, bias=True
    )
    return *features, Flatten(), Linear(flat(shape, features), classes)


def vgg13(shape: Shape, classes: int) -> Sequence[Layer]:
    plan = "64 64 M 128 128 M 256 256 M 512 512 M 512 512 M"
    features = normalised(shape[0], plan, side=3, padding=1, bias=True)
    return *features, Flatten(), Linear(flat(shape, features), classes)


def vgg16(shape: Shape, classes: int) -> Sequence[Layer]:
    plan = "64 64 M 128 128 M 256 256 256 M 512 512 512 M 512 512 512 M"
    features = normalised(shape[0], plan, side=3, padding=1, bias=True)
    return *features, Flatten(), Linear(flat(shape, features), classes)


def resnet18(shape: Shape, classes: int) -> Sequence[Layer]:
    stages = (64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)
    blocks = [
        block for i, o, stride in stages for block in (Residual(i, o, stride), Residual(o, o))
    ]
    stem = Conv(shape[0], 64, 3, 1, bias=False), Norm(), Relu()
    return *stem, *blocks, MeanPool(), Linear(512, classes)


def shakespeare_lstm(shape: Shape, classes: int) -> Sequence[Layer]:
    return Embedding(classes, 8), Lstm(8, 256), Lstm(256, 256), Last(), Linear(256, classes)


def reddit_lstm(shape: Shape, classes: int) -> Sequence[Layer]:
    # What the second layer gives is multiplied by the embedding: they share their units.
    words, second = Embedding(classes, 200, tied=True), Lstm(256, 200, group="embedding1")
    return words, Lstm(200, 256), second, TiedDecoder(classes, 200, "embedding1.weight")


def vit(shape: Shape, classes: int) -> Sequence[Layer]:
    blocks = [TransformerBlock(128, heads=8, head_size=64, hidden=256)] * 6
    return Patches(shape[0], 128, 4), *blocks, ClassToken(), LayerNorm(), Linear(128, classes)


Builder = Callable[[Shape, int], Sequence[Layer]]
# models of codes, int [T]; all others: of images
TEXT = frozenset({"shakespeare-lstm", "reddit-lstm"})
SEQUENCES = frozenset({"reddit-lstm"})  # those of them that predict a code at every step

# name -> builder, description, source
MODELS: dict[str, tuple[Builder, str, str]] = {
    "mlp": (mlp, "one hidden layer of 64 (features), output layer (classifier)", "our choice"),
    "digits-cnn": (
        digits_cnn,
        "3x3 conv 8, 3x3 conv 16 (features), FC 64, output (classifier)",
        "our choice",
    ),
    "liu-cnn": (
        liu_cnn,
        "5x5 conv 32, 5x5 conv 64 (features), FC 128, output (classifier)",
        "Liu et al., Section V; the side of 5 is ours",
    ),
    "fedlps-cnn": (
        fedlps_cnn,
        "5x5 conv 10, 5x5 conv 20, FC 50, output: 21,840 parameters on MNIST",
        "FedLPS, MNIST",
    ),
    "lenet5-caffe": (
        lenet5_caffe,
        "5x5 conv 20, 5x5 conv 50, FC 500, output, no biases",
        "Caffe, as in SpaFL, FMNIST",
    ),
    "spafl-conv4": (
        spafl_conv4,
        "5x5 conv 64, 64, 128, 128, FC 128, 128, output, batch norm",
        "SpaFL, CIFAR-10",
    ),
    "vgg11": (vgg11, "VGG-11 with batch norm and one classifier", "FedLPS, CIFAR-10"),
    "vgg13": (vgg13, "VGG-13 with batch norm and one classifier", "FedLPS, CIFAR-100"),
    "vgg16": (vgg16, "VGG-16 with batch norm and one classifier", "FedLPS, Tiny-ImageNet"),
    "resnet18": (
        resnet18,
        "ResNet-18 of width 64 for 32x32 pictures, static batch norm",
        "SpaFL, CIFAR-100; FedMAP",
    ),
    "shakespeare-lstm": (
        shakespeare_lstm,
        "embedding 8, two LSTM layers of 256, output",
        "LEAF; FedMAP, Shakespeare",
    ),
    "reddit-lstm": (
        reddit_lstm,
        "embedding 200, LSTM layers of 256 and 200, decoder tied to the embedding",
        "FedLPS, Reddit",
    ),
    "vit": (
        vit,
        "transformer on patches of 4x4: 6 blocks of 8 heads of 64, size 128, hidden 256",
        "SpaFL, Table 4",
    ),
}


def build(
    name: str,
    input_shape: Shape,
    classes: int,
    text: bool | None = None,
    at_every_step: bool | None = None,
) -> Architecture:
    """The architecture of a name.

    Args:
        name: one of MODELS.
        input_shape: of images [channels, height, width], of texts [T].
        classes: number of them.
        text: samples are codes of characters or words; None: where they have one dimension.
        at_every_step: a code is to be predicted at every step; None: whatever the model does.

    Raises:
        ModelError: there is no such model, or it does not fit the input.
    """
    if name not in MODELS:
        near = get_close_matches(name, MODELS, n=1)
        hint = f'; did you mean "{near[0]}"?' if near else ""
        raise ModelError(f'there is no model "{name}" (there are {", ".join(MODELS)}){hint}')
    shape = tuple(input_shape)
    text = len(shape) == 1 if text is None else text
    if not text and len(shape) != 3 and name not in (*TEXT, "mlp"):
        problem = "only mlp, or a model of your own, does"
        raise ModelError(
            f"model {name} does not fit samples of {size_of(shape)} numbers; {problem}"
        )
    if text != (name in TEXT):
        given = f"texts of {shape[0]} codes" if text else f"images of {size_of(shape)}"
        others = ", ".join(other for other in MODELS if (other in TEXT) == text)
        raise ModelError(f"model {name} does not fit {given}; choose one of {others}")
    architecture = Architecture(name, shape, classes, tuple(MODELS[name][0](shape, classes)))
    architecture.layout  # noqa: B018 - raises where the images are too small
    if at_every_step not in (None, architecture.at_every_step):
        fits = " or ".join(sorted(SEQUENCES if at_every_step else TEXT - SEQUENCES))
        what = "at every step" if at_every_step else "behind each text"
        problem = f"does not fit data that ask for a code {what}; choose {fits}"
        raise ModelError(f"model {name} {problem}")
    return architecture
