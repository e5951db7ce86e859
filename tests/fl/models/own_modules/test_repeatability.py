"""Modules whose outputs do not follow from their parameters and samples."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch import nn

from fl.errors import ModelError


class Carried(nn.Module):
    """Goes on from the hidden state of the call before."""

    def __init__(self):
        super().__init__()
        self.cell, self.head, self.state = nn.GRU(1, 4, batch_first=True), nn.Linear(4, 3), None

    def forward(self, x):
        outputs, state = self.cell(x[:, :, None], self.state)
        self.state = state.detach()
        return self.head(outputs[:, -1])


class Warming(nn.Linear):
    """Counts its calls in training; an evaluation uses what it counted."""

    calls = 0

    def forward(self, x):
        self.calls += self.training
        return super().forward(x) * (1.0 + 0.1 * min(self.calls, 100) * self.training)


class Skipping(nn.Linear):
    """Leaves itself out where a generator says so."""

    def __init__(self, draw):
        super().__init__(6, 3)
        self.draw = draw

    def forward(self, x):
        return super().forward(x) * (self.draw() if self.training else 1.0)


class Shown(nn.Linear):
    """Keeps its outputs for whoever wants to look at them."""

    def forward(self, x):
        self.seen = super().forward(x).detach()
        return nn.functional.dropout(super().forward(x), 0.5, self.training)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (Carried, "gives other outputs when it is called again with the same samples"),
        (lambda: Warming(6, 3), "gives other outputs when it is called again"),
        (lambda: Skipping(np.random.default_rng(0).random), "gives other outputs when"),
        (lambda: Skipping(lambda: np.random.random()), "draws random numbers of numpy or of"),
        (lambda: Skipping(lambda: random.random()), "draws random numbers of numpy or of"),
    ],
)
def test_a_module_that_does_not_repeat_itself_is_refused(own, make, sentence):
    with pytest.raises(ModelError, match=sentence):
        _ = own(make).trace


def test_dropout_and_outputs_that_are_kept_are_no_memory(own):
    before = np.random.get_state()[1].tolist(), random.getstate(), torch.get_rng_state().tolist()
    assert own(lambda: Shown(6, 3)).trace.random
    after = np.random.get_state()[1].tolist(), random.getstate(), torch.get_rng_state().tolist()
    assert after == before


class Lookup(nn.Module):
    """Reads the samples as codes, of which it knows one."""

    def __init__(self):
        super().__init__()
        self.codes, self.head = nn.Embedding(1, 4), nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.codes(x.long()).mean(1))


class Nothing(nn.Linear):
    def forward(self, x):
        return super().forward(x)[:, :0]


def test_samples_below_1_are_the_code_0(own):
    assert own(Lookup).trace.outputs == (3,)


def test_a_module_without_outputs_is_refused_for_that(own):
    with pytest.raises(ModelError, match=r"has outputs \[0\] for a sample; the data need \[3\]"):
        _ = own(lambda: Nothing(6, 3)).trace
