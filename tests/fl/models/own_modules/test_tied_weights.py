"""FLOPs of modules in which two layers share a tensor, against torch's counter."""

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


TEXT = {"shape": (7,), "classes": 20, "text": True}


@pytest.mark.parametrize(
    ("module", "data"),
    [
        (TiedToEmbedding, TEXT),
        (TiedToDecoder, TEXT),
        (LeftOut, TEXT),
        (TiedLayers, {}),
        (TwoNames, {}),
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
        with FlopCounterMode(display=False) as counter:
            outputs = model.forward(leaves, x).sum()
            if not outputs.requires_grad:  # what is trained here is not used
                continue
            outputs.backward()
        ours = step_cost(model, trained, ~trained).flops
        assert ours == pytest.approx(counter.get_total_flops() / len(x)), some
