"""Layers on sequences as plain data: patches, transformer block, layer norm, tied decoder.

A sample is a sequence [T, features]. What flows along the residual
connections of a transformer is whole: its features are no units, since layer norm mixes them. The
units of a block are its heads and its hidden neurons.
"""

from __future__ import annotations

from dataclasses import dataclass

from fl.contracts import Tensor
from fl.models.layers.layer import LayerTensor, Normalise, Shape, Signal
from fl.models.layers.weightless_layers import StatelessLayer
from fl.models.layout import UnitAxis

Axes = tuple[UnitAxis | None, ...]
EPS = 1e-5  # torch's default
STREAM = UnitAxis("tokens", cut=False)  # the features of a token


@dataclass(frozen=True)
class Patches:
    """Squares of a picture as tokens behind a class token, with positions.

    Dosovitskiy et al., ICLR 2021, eq. (1). [inputs, H, W] -> [1 + (H // side) (W // side), size].
    """

    inputs: int
    size: int
    side: int
    role: str = "features"
    kind: str = "patches"

    def wire(self, given: Signal, name: str) -> tuple[tuple[LayerTensor, ...], Signal]:
        height, width = (length // self.side for length in given.shape[1:])
        patches, spread = height * width, (self.inputs * self.side**2) ** -0.5
        tokens = 1 + patches if patches else 0
        shape = (self.size, self.inputs, self.side, self.side)
        parts: tuple[tuple[str, Shape, str, float, float | str], ...] = (
            ("weight", shape, "weight", patches, spread),
            ("bias", (self.size,), "bias", patches, spread),
            ("class_token", (self.size,), "embedding", 0, "normal"),
            ("positions", (tokens, self.size), "embedding", 0, "normal"),
        )
        return tuple(
            LayerTensor(f"{name}.{word}", shape, (None,) * len(shape), kind, self.role, uses, first)
            for word, shape, kind, uses, first in parts
        ), Signal((tokens, self.size), STREAM)

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        from torch import cat
        from torch.nn.functional import conv2d

        weight, bias, class_token, positions = tensors
        patches = conv2d(x, weight, bias, stride=self.side).flatten(2).transpose(1, 2)
        first = class_token.expand(len(x), 1, -1)
        return cat((first, patches), dim=1) + positions


@dataclass(frozen=True)
class TransformerBlock:
    """Self-attention and two linear layers, each behind a layer norm and added to its input.

    Dosovitskiy et al., ICLR 2021, eqs. (2), (3). [T, size] -> [T, size]. Queries, keys and values
    have no biases. The T T products of attention are counted with the rows of keys (scores) and of
    values (mixing), which share them equally.

    Args:
        size: of a token.
        heads: number of them.
        head_size: of a query, a key and a value.
        hidden: neurons between the two linear layers.
    """

    size: int
    heads: int
    head_size: int
    hidden: int
    role: str = "features"
    kind: str = "transformer"

    def wire(self, given: Signal, name: str) -> tuple[tuple[LayerTensor, ...], Signal]:
        tokens, inner = given.shape[0], self.heads * self.head_size
        heads = UnitAxis(f"{name}.heads", repeat=self.head_size)
        neurons = UnitAxis(f"{name}.neurons")
        mixing = tokens + tokens**2 / self.size  # of each of the inner * size weights
        wide, one = (inner, self.size), (self.size,)

        def weight(word: str, shape: Shape, axes: Axes, uses: float = tokens) -> LayerTensor:
            spread = shape[1] ** -0.5
            return self._tensor(name, word, shape, axes, "weight", uses, spread)

        def bias(word: str, size: int, axis: UnitAxis, inputs: int) -> LayerTensor:
            return self._tensor(name, word, (size,), (axis,), "bias", tokens, inputs**-0.5)

        def norm(word: str) -> tuple[LayerTensor, LayerTensor]:
            scale = self._tensor(name, f"{word}.scale", one, (STREAM,), "norm", 0, "ones")
            return scale, self._tensor(name, f"{word}.shift", one, (STREAM,), "norm", 0, "zeros")

        return (
            *norm("norm1"),
            weight("query", wide, (heads, STREAM)),
            weight("key", wide, (heads, STREAM), mixing),
            weight("value", wide, (heads, STREAM), mixing),
            weight("out.weight", wide[::-1], (STREAM, heads)),
            bias("out.bias", self.size, STREAM, inner),
            *norm("norm2"),
            weight("linear1.weight", (self.hidden, self.size), (neurons, STREAM)),
            bias("linear1.bias", self.hidden, neurons, self.size),
            weight("linear2.weight", (self.size, self.hidden), (STREAM, neurons)),
            bias("linear2.bias", self.size, STREAM, self.hidden),
        ), given

    def _tensor(
        self,
        name: str,
        word: str,
        shape: Shape,
        axes: Axes,
        kind: str,
        uses: float,
        spread: float | str,
    ) -> LayerTensor:
        # The norm in front is trained too, so that every gradient by activations is needed.
        full = f"{name}.{word}"
        return LayerTensor(full, shape, axes, kind, self.role, uses, spread, inner=1.0)

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        from torch.nn.functional import gelu, layer_norm, linear

        scale, shift, query, key, value, out, out_bias, *rest = tensors
        second_scale, second_shift, inner, inner_bias, outer, outer_bias = rest

        def heads(weight: Tensor) -> Tensor:
            """[B, heads, T, head_size]."""
            return linear(y, weight).unflatten(-1, (-1, self.head_size)).transpose(1, 2)

        y = layer_norm(x, x.shape[-1:], scale, shift, EPS)
        scores = heads(query) @ heads(key).transpose(-1, -2) * self.head_size**-0.5
        mixed = scores.softmax(dim=-1) @ heads(value)
        x = x + linear(mixed.transpose(1, 2).flatten(2), out, out_bias)
        y = layer_norm(x, x.shape[-1:], second_scale, second_shift, EPS)
        return x + linear(gelu(linear(y, inner, inner_bias)), outer, outer_bias)


@dataclass(frozen=True)
class LayerNorm:
    """Layer norm over the features, [..., size] -> the same; the statistics are each sample's."""

    role: str = "features"
    kind: str = "layernorm"

    def wire(self, given: Signal, name: str) -> tuple[tuple[LayerTensor, ...], Signal]:
        shape, axes = given.shape[-1:], (given.units,)
        scale = LayerTensor(f"{name}.scale", shape, axes, "norm", self.role, 0, "ones")
        shift = LayerTensor(f"{name}.shift", shape, axes, "norm", self.role, 0, "zeros")
        return (scale, shift), given

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        from torch.nn.functional import layer_norm

        scale, shift = tensors
        return layer_norm(x, x.shape[-1:], scale, shift, EPS)


@dataclass(frozen=True)
class ClassToken(StatelessLayer):
    """The first token of a sequence, [T, features] -> [features]."""

    kind: str = "class-token"

    def output(self, given: Signal) -> Signal:
        return Signal(given.shape[1:], given.units)

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        return x[:, 0]


@dataclass(frozen=True)
class TiedDecoder:
    """Scores of every symbol at every step by the vectors of an embedding: x E^T + bias.

    Press and Wolf, EACL 2017. [T, size] -> [symbols, T], the order in which torch's cross entropy
    takes the classes of a sequence. E is one tensor of the model, used twice: it is pruned and sent
    once, and its gradient is the sum of both uses.

    Args:
        symbols: number of them.
        borrows: name of E [symbols, size], which `apply` receives in front of its own tensors.
        size: of a vector.
    """

    symbols: int
    size: int
    borrows: str
    role: str = "classifier"
    kind: str = "decoder"

    def wire(self, given: Signal, name: str) -> tuple[tuple[LayerTensor, ...], Signal]:
        out, steps = UnitAxis(name), given.shape[0]
        spread = self.size**-0.5
        bias = LayerTensor(
            f"{name}.bias", (self.symbols,), (out,), "bias", self.role, steps, spread
        )
        return (bias,), Signal((self.symbols, steps), out)

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        from torch.nn.functional import linear

        return linear(x, *tensors).transpose(1, 2)
