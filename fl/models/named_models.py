"""The models that a scenario can name: the layers of each, its description and its source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from fl.models.layers.layer import Layer, Shape, Signal
from fl.models.layers.learned_layers import Conv, Embedding, Linear, Lstm, Norm
from fl.models.layers.residual_block import Residual
from fl.models.layers.sequence_layers import (
    ClassToken,
    LayerNorm,
    Patches,
    TiedDecoder,
    TransformerBlock,
)
from fl.models.layers.weightless_layers import Flatten, Last, MaxPool, MeanPool, Relu


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
