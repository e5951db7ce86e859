"""Layers against torch's."""

import pytest
import torch
from torch import nn

from fl.models.batch_norm import batch_norm
from fl.models.layers.layer import Signal
from fl.models.layers.learned_layers import Conv, Linear, Lstm, Norm
from fl.models.layers.residual_block import Residual


def filled(module, seed=0):
    torch.manual_seed(seed)
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module.double()


def test_the_lstm_is_torchs():
    module = filled(nn.LSTM(3, 4, batch_first=True))
    x = torch.randn(2, 5, 3, dtype=torch.float64)
    ours = Lstm(3, 4).apply(x, tuple(module.parameters()), batch_norm)
    assert torch.allclose(ours, module(x)[0], atol=1e-12)


def test_the_norm_is_torchs_with_the_batchs_statistics():
    module = filled(nn.BatchNorm2d(3, track_running_stats=False))
    x = torch.randn(4, 3, 5, 5, dtype=torch.float64)
    assert torch.allclose(
        Norm().apply(x, tuple(module.parameters()), batch_norm), module(x), atol=1e-12
    )
    one = torch.randn(
        1, 3, dtype=torch.float64
    )  # a batch of one sample: nothing is left but the shift
    assert torch.allclose(
        Norm().apply(one, tuple(module.parameters()), batch_norm)[0], module.bias, atol=1e-12
    )


def test_a_convolution_with_stride_and_without_bias():
    module = filled(nn.Conv2d(2, 3, 3, stride=2, padding=1, bias=False))
    x = torch.randn(1, 2, 5, 5, dtype=torch.float64)
    layer = Conv(2, 3, 3, 1, bias=False, stride=2)
    assert torch.allclose(layer.apply(x, tuple(module.parameters()), batch_norm), module(x))
    parts, out = layer.wire(Signal((2, 5, 5)), "c")
    assert [part.name for part in parts] == ["c.weight"]
    assert out.shape == tuple(module(x).shape[1:]) == (3, 3, 3)


@pytest.mark.parametrize(("inputs", "outputs", "stride"), [(2, 2, 1), (2, 3, 2)])
def test_a_residual_block_is_conv_norm_relu_conv_norm_plus_shortcut(inputs, outputs, stride):
    def conv(i, o, side, s):
        return [
            nn.Conv2d(i, o, side, s, side // 2, bias=False),
            nn.BatchNorm2d(o, track_running_stats=False),
        ]

    body = filled(
        nn.Sequential(*conv(inputs, outputs, 3, stride), nn.ReLU(), *conv(outputs, outputs, 3, 1))
    )
    same = stride == 1
    shortcut = (
        nn.Identity() if same else filled(nn.Sequential(*conv(inputs, outputs, 1, stride)), 1)
    )
    x = torch.randn(3, inputs, 4, 4, dtype=torch.float64)
    tensors = (*body.parameters(), *shortcut.parameters())
    ours = Residual(inputs, outputs, stride).apply(x, tensors, batch_norm)
    assert torch.allclose(ours, torch.relu(body(x) + shortcut(x)), atol=1e-12)


def test_a_layer_without_bias_has_one_tensor():
    assert [p.name for p in Linear(3, 2, bias=False).wire(Signal((3,)), "l")[0]] == ["l.weight"]
