"""FLOPs of a training step, whatever of a module is trained, against torch's counter."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from fl.accounting import step_cost


class TiedToEmbedding(nn.Module):
    """The decoder's weight is that of the look-up."""

    def __init__(self):
        super().__init__()
        self.words, self.hidden = nn.Embedding(20, 6), nn.Linear(6, 6)
        self.decoder = nn.Linear(6, 20)
        self.decoder.weight = self.words.weight

    def forward(self, x):
        return self.decoder(torch.relu(self.hidden(self.words(x))).mean(1))


class TiedToDecoder(TiedToEmbedding):
    """The same, where the decoder is registered first."""

    def __init__(self):
        nn.Module.__init__(self)
        self.decoder, self.hidden = nn.Linear(6, 20), nn.Linear(6, 6)
        self.words = nn.Embedding(20, 6)
        self.words.weight = self.decoder.weight


class TiedLayers(nn.Module):
    """Two dense layers, of which the first reads the samples."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.head(self.second(self.first(x)))


class TwoNames(nn.Module):
    """One layer under two names."""

    def __init__(self):
        super().__init__()
        self.first, self.middle, self.head = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)
        self.again = self.middle

    def forward(self, x):
        return self.head(self.again(self.first(x)))


class LeftOut(TiedToEmbedding):
    """The decoder shares the tensor, but is not called."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 20)

    def forward(self, x):
        return self.head(torch.relu(self.hidden(self.words(x))).mean(1))


class ThreeUses(nn.Module):
    """Three layers share a tensor, with others between them."""

    def __init__(self):
        super().__init__()
        layers = [nn.Linear(6, 6, bias=False) for _ in range(5)]
        for each in layers[2::2]:
            each.weight = layers[0].weight
        self.net = nn.Sequential(*layers, nn.Linear(6, 3, bias=False))

    def forward(self, x):
        return self.net(x)


class ThreeCalls(nn.Module):
    """One layer is called three times, with others between the calls."""

    def __init__(self):
        super().__init__()
        self.first, self.one, self.other = (nn.Linear(6, 6, bias=False) for _ in range(3))
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.first(self.other(self.first(self.one(self.first(x))))))


class BareBranch(nn.Module):
    """A parameter that no layer has multiplies the samples, beside layers."""

    def __init__(self):
        super().__init__()
        self.w, self.first, self.head = (
            nn.Parameter(torch.rand(6, 3)),
            nn.Linear(6, 4),
            nn.Linear(4, 3),
        )

    def forward(self, x):
        return self.head(torch.relu(self.first(x))) + x @ self.w


class BareSum(nn.Module):
    """Two such parameters side by side, and one behind them."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Parameter(torch.rand(6, 4)), nn.Parameter(torch.rand(6, 4))
        self.head = nn.Parameter(torch.rand(4, 3))

    def forward(self, x):
        return (x @ self.one + torch.relu(x @ self.two)) @ self.head


class Projected(nn.Module):
    """Buffers, which are not trained, multiply the samples and what a layer makes of them."""

    def __init__(self):
        super().__init__()
        self.register_buffer("ahead", torch.rand(6, 5))
        self.register_buffer("between", torch.rand(4, 5))
        self.first, self.head = nn.Linear(5, 4), nn.Linear(5, 3)

    def forward(self, x):
        return self.head(torch.relu(self.first(x @ self.ahead)) @ self.between)


class Adapted(nn.Module):
    """A frozen matrix with an adapter of low rank: Hu et al., ICLR 2022."""

    def __init__(self):
        super().__init__()
        self.register_buffer("frozen", torch.rand(6, 6))
        self.down, self.up = nn.Linear(6, 2, bias=False), nn.Linear(2, 6, bias=False)
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(torch.relu(x @ self.frozen + self.up(self.down(x))))


class Cut(nn.Module):
    """What a layer makes reaches the next one without a gradient."""

    def __init__(self):
        super().__init__()
        self.first, self.next, self.head = nn.Linear(6, 4), nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        hidden = self.first(x)
        return self.head(self.next(hidden.detach()) + hidden)


class Gated(nn.Module):
    """A gate by the same layers, through which no gradient goes."""

    def __init__(self):
        super().__init__()
        self.below, self.above = nn.Parameter(torch.rand(6, 8)), nn.Parameter(torch.rand(8, 3))

    def forward(self, x):
        hidden = x @ self.below
        return hidden.relu() @ self.above * (hidden @ self.above).detach().softmax(1)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.LSTM(2, 3, bias=False, batch_first=True), nn.Linear(3, 3)

    def forward(self, x):
        return self.head(self.cell(x.view(len(x), 3, 2))[0][:, -1])


class Positioned(nn.Module):
    """A parameter is added to what a buffer makes of the samples."""

    def __init__(self):
        super().__init__()
        self.register_buffer("basis", torch.rand(6, 5))
        self.place, self.head = nn.Parameter(torch.rand(1, 5)), nn.Linear(5, 3)

    def forward(self, x):
        return self.head(torch.relu(x @ self.basis + self.place))


class ScaledBlock(nn.Module):
    """Attention written out, whose output a parameter scales: LayerScale."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out, self.head = nn.Linear(3, 12), nn.Linear(4, 4), nn.Linear(4, 3)
        self.gamma = nn.Parameter(torch.full((1, 1, 4), 0.1))

    def forward(self, x):
        q, k, v = self.qkv(x.view(len(x), 2, 3)).chunk(3, -1)
        mixed = torch.softmax(q @ k.transpose(1, 2), -1) @ v
        return self.head((v + self.gamma * self.out(mixed)).mean(1))


class OwnProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, given):
        x, w = ctx.saved_tensors
        return given @ w.T, x.T @ given


class OwnGradient(nn.Module):
    """A product with a backward pass of its own, into which autograd does not look."""

    def __init__(self):
        super().__init__()
        self.first, self.head = nn.Linear(6, 4), nn.Linear(4, 3)
        self.w = nn.Parameter(torch.rand(4, 4))

    def forward(self, x):
        return self.head(OwnProduct.apply(self.first(x), self.w))


TEXT = {"shape": (7,), "classes": 20, "text": True}


@pytest.mark.parametrize(
    ("module", "data"),
    [
        (TiedToEmbedding, TEXT),
        (TiedToDecoder, TEXT),
        (LeftOut, TEXT),
        *((make, {}) for make in (TiedLayers, TwoNames)),
        *((make, {}) for make in (ThreeUses, ThreeCalls, BareBranch, BareSum)),
        *((make, {}) for make in (Projected, Adapted, Cut, Gated, Recurrent)),
        *((make, {}) for make in (Positioned, ScaledBlock)),
    ],
)
def test_a_step_costs_what_torch_counts_whatever_is_trained(own, module, data):
    model = own(module, **data)
    slots, x = model.layout.slots, torch.cat([model.sample, model.sample])
    w = model.layout.split(torch.from_numpy(model.initial(np.random.default_rng(0))))
    names = [slot.name for slot in slots]
    for some in chain.from_iterable(combinations(names, n + 1) for n in range(len(names))):
        trained = model.layout.where(lambda slot, some=some: slot.name in some)
        leaves = [v.clone().requires_grad_(s.name in some) for v, s in zip(w, slots, strict=True)]
        plain = torch.backends.mkldnn.flags(enabled=False)  # steps of an LSTM one by one
        with plain, FlopCounterMode(display=False) as counter:
            outputs = model.forward(leaves, x).sum()
            if not outputs.requires_grad:  # what is trained here is not used
                continue
            outputs.backward()
        ours = step_cost(model, trained, ~trained).flops
        assert ours == pytest.approx(counter.get_total_flops() / len(x)), some


def test_a_product_with_a_gradient_of_its_own_costs_both_gradients(own):
    model = own(OwnGradient)
    every = np.ones(model.layout.size, dtype=bool)
    assert step_cost(model, every, ~every).flops == 2 * (3 * (24 + 16 + 12) - 24)


class Attentive(nn.Module):
    """Torch fuses the products of attention where nothing is dropped."""

    def __init__(self, dropout):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(3, 4), nn.Linear(3, 4), nn.Linear(3, 4)
        self.head, self.dropout = nn.Linear(4, 3), dropout

    def forward(self, x):
        q, k, v = (each(x.view(len(x), 1, 2, 3)) for each in (self.q, self.k, self.v))
        dropout = self.dropout if self.training else 0.0
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout)
        return self.head(mixed[:, 0].mean(1))


def test_attention_costs_the_same_whether_torch_fuses_it_or_not(own):
    """Two rows of 4: 2 x 2 x (4 + 4) multiply-adds a sample, which torch's counter does not see
    where it fuses them.
    """
    plain, fused = own(lambda: Attentive(0.1)), own(lambda: Attentive(0.0))
    names = [slot.name for slot in plain.layout.slots]
    for some in chain.from_iterable(combinations(names, n + 1) for n in range(len(names))):
        trained = plain.layout.where(lambda slot, some=some: slot.name in some)
        ours = step_cost(fused, trained, ~trained).flops
        assert ours == pytest.approx(step_cost(plain, trained, ~trained).flops), some
    assert sum(fused.macs.values()) == 2 * 3 * 12 + 2 * 2 * 8 + 12
