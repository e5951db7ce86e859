"""Units of a user's module: groups that a submodel can leave out, and only those."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fl.errors import ModelError
from fl.masks.unit_masks import hidden, prefix
from fl.models.layout import UnitAxis
from fl.models.own_modules import module_units

pytest.importorskip("torch_pruning")


def test_a_flattened_channel_is_one_unit(digits_cnn):
    axes = {slot.name: slot.axes for slot in digits_cnn.layout.slots}
    assert axes["fc1.weight"] == (UnitAxis("fc1"), UnitAxis("conv2", repeat=4))
    assert axes["fc2.bias"] == (UnitAxis("output"),) and digits_cnn.layout.output == "output"
    assert {g.name: g.units for g in hidden(digits_cnn.layout).values()} == {
        "conv1": 8,
        "conv2": 16,
        "fc1": 64,
    }


def test_what_is_added_is_one_group_and_a_layer_norm_is_left_whole(residual):
    axes = {slot.name: slot.axes for slot in residual.layout.slots}
    assert axes["norm.weight"] == (UnitAxis("conv1"),)
    assert axes["shortcut.bias"] == axes["conv2.bias"] == (UnitAxis("conv2"),)
    assert axes["hidden.weight"] == (
        UnitAxis("hidden.weight", cut=False),
        UnitAxis("conv2", repeat=16),
    )
    assert list(hidden(residual.layout)) == ["conv1", "conv2"]


def test_of_a_transformer_layer_the_inner_neurons_are_units(attention):
    assert [(g.name, g.units) for g in hidden(attention.layout).values()] == [("layer.linear1", 32)]


def test_left_out_units_do_not_count(residual):
    """The masked model gives the same outputs whatever the weights into the other units are."""
    layout, rng = residual.layout, np.random.default_rng(1)
    kept = layout.expand(prefix(layout, 0.5))
    w, x = residual.initial(rng), torch.rand(3, 1, 4, 4)
    other = np.where(kept, w, rng.normal(size=layout.size)).astype(np.float32)
    masked = [residual.logits(torch.from_numpy(v * kept), x) for v in (w, other)]
    assert torch.equal(*masked) and 0 < kept.sum() < layout.size


class AcrossWords(nn.Module):
    """What one word counts among the others depends on all hidden units together."""

    def __init__(self):
        super().__init__()
        self.words, self.hidden = nn.Embedding(20, 6), nn.Linear(6, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, codes):
        units = torch.relu(self.hidden(self.words(codes)))
        return self.head((units.sum(2, keepdim=True).softmax(1) * units).sum(1))


def test_words_that_differ_show_units_that_are_seen(own):
    """Where all words were the same one, none counted more than another."""
    model = own(AcrossWords, shape=(5,), classes=3, text=True)
    assert list(hidden(model.layout)) == ["words"]


class AcrossUnits(nn.Module):
    """A softmax across the hidden units, which torch-pruning takes for an operation on each."""

    def __init__(self):
        super().__init__()
        self.hidden, self.second, self.head = nn.Linear(6, 8), nn.Linear(8, 4), nn.Linear(4, 3)

    def forward(self, x):
        return self.head(torch.relu(self.second(self.hidden(x).softmax(1))))


def test_the_check_with_numbers_refuses_what_mixes_units(own):
    assert list(hidden(own(AcrossUnits).layout)) == ["second"]


def centred(h):
    return h - h.mean(1, keepdim=True)


class BelowNarrowLayers(nn.Module):
    """What mixes the units of the first layer lies far from the output."""

    def __init__(self, mix):
        super().__init__()
        self.first, self.mix, self.head = nn.Linear(5, 8), mix, nn.Linear(8, 3)
        self.middle = nn.Sequential(
            *(each for _ in range(8) for each in (nn.Linear(8, 8), nn.ReLU()))
        )

    def forward(self, x):
        return self.head(self.middle(self.mix(self.first(x))))


@pytest.mark.parametrize(
    ("mix", "found"),
    [(torch.relu, {"first"}), (lambda h: h.softmax(1), set()), (centred, set())],
)
def test_the_check_sees_a_mixture_below_many_narrow_layers(own, mix, found):
    names = set(hidden(own(lambda: BelowNarrowLayers(mix), (5,)).layout))
    assert names == found | {f"middle.{place}" for place in range(0, 16, 2)}


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        (lambda: nn.Sequential(nn.Linear(6, 3), nn.ReLU()), "no layer was found"),
        (lambda: nn.Sequential(nn.Linear(6, 9), nn.Unflatten(1, (3, 3)), Sum()), "is no nn.Linear"),
    ],
)
def test_without_units_the_reason_is_one_sentence(own, module, sentence):
    with pytest.raises(ModelError, match=rf"hidden units of model ./net.py:Net.*{sentence}"):
        hidden(own(module).layout)


class Sum(nn.Module):
    def forward(self, x):
        return x.sum(2)


def test_without_the_package_the_sentence_says_how_to_get_it(own, monkeypatch):
    monkeypatch.setattr(module_units, "find_spec", lambda name: None)
    layout = own(AcrossUnits).layout
    assert layout.output == "output"
    with pytest.raises(ModelError, match=r'not installed: pip install "edgesim\[units\]"'):
        hidden(layout)
