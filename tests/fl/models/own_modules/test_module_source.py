"""Changes of a user's code that a digest of the module notices, and those that it need not."""

from __future__ import annotations

import importlib
import sys
from functools import partial
from types import SimpleNamespace

import pytest
import torch

LAYERS = """
from functools import lru_cache
import torch
from torch.nn import functional as F
SLOPE = 0.5
OFFSET = torch.tensor([0.5])
@lru_cache
def exponent():
    return 1
@torch.no_grad()
def gate(x):
    return opened(x)
def opened(x):
    return torch.sigmoid(x)
class Scale:
    def __init__(self, by):
        self.by = by
    def __call__(self, x):
        return self.by * x
scale = Scale(3)
CHOICE = {"relu": lambda x: torch.relu(x)}
def act(x):
    return SLOPE * scale(CHOICE["relu"](x) ** exponent()) * gate(x) + OFFSET
def shown(x):
    print(x)
"""
NET = """
import layers
from torch import nn
from torch.nn import functional as F
def twice(x):
    return 2 * x
class Head(nn.Linear):
    def forward(self, x):
        return -super().forward(x)
class Base(nn.Module):
    def last(self, x):
        return self.head(x) + 1
class Net(Base):
    def __init__(self, power=1, squash=F.relu):
        super().__init__()
        self.power, self.squash, self.head = power, squash, Head(6, 3)
    def forward(self, x):
        return self.last(self.squash(layers.act([twice(each) for each in [x]][0]))) ** self.power
"""


def kept(net, **values):
    """The net with other attributes."""
    made = net.Net()
    vars(made).update(values)
    return made


@pytest.fixture
def digest(own, tmp_path, monkeypatch):
    """Digest of the module that ``make`` builds, with the files as they are after a change."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def found(before="", after="", make=lambda net: net.Net()):
        for name, text in (("layers", LAYERS), ("net", NET)):
            (tmp_path / f"{name}.py").write_text(text.replace(before, after) if before else text)
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        net = importlib.import_module("net")
        return own(lambda: make(net)).digest()

    yield found
    for name in ("layers", "net"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.relu(x)", "torch.tanh(x)"),  # a function of a module beside it
        ("SLOPE = 0.5", "SLOPE = 0.25"),  # a value that this function reads
        ("tensor([0.5])", "tensor([0.75])"),
        ("return 1", "return 2"),  # behind a cache
        ("torch.sigmoid(x)", "torch.tanh(x)"),  # named by what is behind a decorator of torch
        ("Scale(3)", "Scale(4)"),  # an object that is called
        ("self.by * x", "self.by + x"),
        ("2 * x", "3 * x"),  # a function that is named within a comprehension
        ("(x) + 1", "(x) + 2"),  # a base class
    ],
)
def test_what_a_forward_pass_names_is_part_of_the_module(digest, before, after):
    assert digest() == digest()
    assert digest(before, after) != digest()


def test_values_that_a_module_keeps_are_part_of_it(digest):
    assert digest(make=lambda net: net.Net(power=2)) != digest()
    assert digest(make=lambda net: net.Net(squash=net.F.tanh)) != digest()
    assert digest(make=lambda net: kept(net, _power=2)) != digest(make=lambda net: kept(net))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 23}, {"a": 12, "b": 3}),
        ({"a": 1}, {"b": 1}),
        ({"squash": partial(torch.clamp, min=1)}, {"squash": partial(torch.clamp, min=2)}),
        ({"config": SimpleNamespace(gate=True)}, {"config": SimpleNamespace(gate=False)}),
        ({"table": torch.zeros(2)}, {"table": torch.ones(2)}),
    ],
    ids=["values", "names", "partial", "configuration", "tensor"],
)
def test_values_that_differ_are_not_run_together(digest, one, other):
    found = [digest(make=lambda net, held=held: kept(net, **held)) for held in (one, one, other)]
    assert found[0] == found[1] != found[2]


def test_a_class_below_one_of_torch_is_part_of_it(digest):
    def normed(net):
        return torch.nn.utils.parametrizations.weight_norm(net.Head(6, 3))

    assert digest(make=normed) == digest(make=normed)
    assert digest("return -super()", "return super()", normed) != digest(make=normed)


def test_code_that_a_forward_pass_does_not_name_is_no_part(digest):
    assert digest("print(x)", "print(x, x)") == digest()
