"""The basic block of a ResNet."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fl.contracts import Tensor
from fl.models.layers.layer import LayerTensor, Normalise, Signal
from fl.models.layers.learned_layers import Conv, Norm


@dataclass(frozen=True)
class Residual:
    """Basic block of ResNet: conv - norm - ReLU - conv - norm, added to the input, ReLU; no biases.

    Where the shape changes, the input goes through a convolution of side 1 and a norm. What is
    added together belongs to one group of units: the input's own, or the second convolution's.
    """

    inputs: int
    outputs: int
    stride: int = 1
    role: str = "features"
    kind: str = "block"

    @property
    def convolutions(self) -> tuple[Conv, ...]:
        """The first, the second, and where the shape changes the shortcut."""
        first = Conv(self.inputs, self.outputs, 3, 1, self.role, False, self.stride)
        second = Conv(self.outputs, self.outputs, 3, 1, self.role, False)
        shortcut = Conv(self.inputs, self.outputs, 1, 0, self.role, False, self.stride)
        same = self.stride == 1 and self.inputs == self.outputs
        return (first, second) if same else (first, second, shortcut)

    def wire(self, given: Signal, name: str) -> tuple[tuple[LayerTensor, ...], Signal]:
        norm = Norm(self.role)
        first, second, *shortcut = self.convolutions
        joint = f"{name}.conv2" if shortcut or given.units is None else given.units.group
        parts, hidden = first.wire(given, f"{name}.conv1")
        parts += norm.wire(hidden, f"{name}.norm1")[0]
        for place, (conv, source) in enumerate(
            [(second, hidden), *((conv, given) for conv in shortcut)], start=2
        ):
            (weight,), out = conv.wire(source, f"{name}.conv{place}", joint)
            parts += (
                replace(weight, inner=float(source is hidden)),
                *norm.wire(out, f"{name}.norm{place}")[0],
            )
        return parts, out

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        from torch import relu

        first, second, *shortcut = self.convolutions
        inner = relu(normalise(first.apply(x, tensors[:1], normalise), *tensors[1:3]))
        outer = normalise(second.apply(inner, tensors[3:4], normalise), *tensors[4:6])
        for conv in shortcut:
            x = normalise(conv.apply(x, tensors[6:7], normalise), *tensors[7:9])
        return relu(outer + x)
