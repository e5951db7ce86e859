"""Modules of a user's own."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from fl.models.own_modules.module_making import maker
from fl.models.own_modules.own_module import ModuleArchitecture


class DigitsCnn(nn.Module):
    """digits-cnn, as a user would write it."""

    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc1, self.fc2 = nn.Linear(64, 64), nn.Linear(64, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class Residual(nn.Module):
    """Batch norm, a shortcut, dropout, and a layer norm across units."""

    def __init__(self):
        super().__init__()
        self.conv1, self.norm = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.conv2, self.shortcut = nn.Conv2d(4, 6, 3, padding=1), nn.Conv2d(4, 6, 1)
        self.hidden, self.across = nn.Linear(6 * 16, 8), nn.LayerNorm(8)
        self.drop, self.head = nn.Dropout(0.5), nn.Linear(8, 3)

    def forward(self, x):
        x = F.relu(self.norm(self.conv1(x)))
        x = F.relu(self.conv2(x) + self.shortcut(x)).flatten(1)
        return self.head(self.drop(self.across(F.relu(self.hidden(x)))))


class Attention(nn.Module):
    """A text classifier in the manner of Hugging Face: its outputs are an object with logits."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(20, 16), nn.Parameter(torch.zeros(1, 6, 16))
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.classifier = nn.Linear(16, 5)

    def forward(self, codes):
        class Outputs:
            logits = self.classifier(self.layer(self.words(codes) + self.places).mean(1))

        return Outputs


@pytest.fixture
def own():
    """An architecture of a module, or of what makes one."""

    def make(module, shape=(6,), classes=3, text=False, classifier=None):
        made = maker(module, shape, classes)
        return ModuleArchitecture("./net.py:Net", shape, classes, (), made, text, classifier)

    return make


@pytest.fixture
def digits_cnn(own):
    return own(DigitsCnn, (1, 8, 8), 10)


@pytest.fixture
def residual(own):
    return own(Residual, (1, 4, 4))


@pytest.fixture
def attention(own):
    return own(Attention, (6,), 5, text=True)
