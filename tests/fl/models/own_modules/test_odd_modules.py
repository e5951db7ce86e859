"""Modules that are legal, but rare: other first weights, norms, parametrizations and parameters."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from fl.accounting import step_cost
from fl.errors import ModelError
from fl.masks.unit_masks import hidden


class DrawnElsewhere(nn.Linear):
    """First weights from the generators of numpy and Python."""

    def __init__(self):
        super().__init__(6, 3)
        self.weight.data = torch.from_numpy(np.random.normal(size=(3, 6))).float()
        self.bias.data.fill_(random.random())


def test_first_weights_follow_from_the_seed_whatever_draws_them(own):
    model = own(DrawnElsewhere)

    def weights(seed):
        return model.initial(np.random.default_rng(seed))

    before = np.random.get_state()[1].tolist(), random.getstate()
    assert np.array_equal(weights(1), weights(1))
    assert (weights(1) != weights(2)).all()
    assert own(DrawnElsewhere).digest() == model.digest()
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before


class Centred(nn.BatchNorm1d):
    def forward(self, x):
        return (x - x.mean(0)) * self.weight + self.bias


class Counted(nn.BatchNorm1d):
    def forward(self, x):
        return super().forward(2 * x)


class Renamed(nn.BatchNorm1d):
    pass


def test_a_batch_norm_with_a_forward_of_its_own_computes_as_it_says(own):
    module, x = nn.Sequential(nn.Linear(6, 3), Centred(3)), torch.rand(5, 6)
    model = own(module)
    w = torch.from_numpy(model.initial(np.random.default_rng(0)))
    assert torch.equal(model.logits(w, x), module(x)) and not model.normalises
    assert own(lambda: nn.Sequential(nn.Linear(6, 3), Renamed(3))).normalises
    with pytest.raises(ModelError, match=r"changes its buffer 1\.running_mean while it trains"):
        _ = own(lambda: nn.Sequential(nn.Linear(6, 3), Counted(3))).trace


class TwoNames(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.head = nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Linear(6, 3)
        self.again = self.norm

    def forward(self, x):
        return self.head(self.again(self.norm(self.first(x))))


def test_a_batch_norm_under_two_names_is_one(own):
    model = own(TwoNames)
    names = [slot.name for slot in model.layout.slots]
    assert names[2:4] == ["norm.weight", "norm.bias"] and len(names) == 6 and model.normalises
    w = torch.from_numpy(model.initial(np.random.default_rng(0)))
    assert model.logits(w, torch.rand(4, 6)).shape == (4, 3)


class LastIsParametrized(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(6, 4), weight_norm(nn.Linear(4, 3))

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


def test_parts_of_a_parametrized_layer_belong_to_it(own):
    slots = own(LastIsParametrized).layout.slots
    classifier = {slot.name for slot in slots if slot.role == "classifier"}
    assert classifier == {slot.name for slot in slots if slot.name.startswith("head.")}
    assert len(classifier) == 3
    model = own(lambda: weight_norm(nn.Linear(6, 3)))
    assert {slot.role for slot in model.layout.slots} == {"classifier"}
    with pytest.raises(ModelError, match=r"its last layer head is no nn\.Linear"):
        hidden(own(LastIsParametrized).layout)


class Product(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(6))

    def forward(self, x):
        return x @ self.w


class LookedUp(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 3)

    def forward(self, codes):
        return self.words(codes).mean(1)


@pytest.mark.parametrize(
    ("make", "text", "last"), [(Product, False, ""), (LookedUp, True, "words")]
)
def test_a_module_needs_no_layer_with_weights(own, make, text, last):
    model = own(make, classes=3 if text else 1, text=text)
    assert model.trace.last == last
    assert {slot.role for slot in model.layout.slots} == {"classifier"}


def test_what_has_no_signature_is_called_without_arguments(own):
    with pytest.raises(ModelError, match=r"is dict, no torch\.nn\.Module"):
        _ = own(dict).trace


def test_a_code_beyond_the_embedding_is_one_sentence(own):
    model = own(LookedUp, text=True)
    w = torch.from_numpy(model.initial(np.random.default_rng(0)))
    assert model.logits(w, torch.tensor([[0, 19]])).shape == (1, 3)
    with pytest.raises(ModelError, match=r"model \./net\.py:Net looks up .* one here is 21"):
        model.logits(w, torch.tensor([[0, 21], [20, 3]]))


class Scaled(nn.Module):
    """A temperature of the logits, which no layer's input depends on."""

    def __init__(self):
        super().__init__()
        self.t, self.first, self.head = (
            nn.Parameter(torch.ones(())),
            nn.Linear(6, 4),
            nn.Linear(4, 3),
        )

    def forward(self, x):
        return self.t * self.head(torch.relu(self.first(x)))


class Shifted(Scaled):
    """What is added in front of the first layer: this one needs the gradient by its inputs."""

    def forward(self, x):
        return self.head(torch.relu(self.first(x + self.t)))


class Positions(Scaled):
    """Positions behind the first layer, as of a vision transformer's patches."""

    def forward(self, x):
        return self.head(torch.relu(self.first(x)) + self.t)


class Unused(Scaled):
    """A matrix beside the first layer, which no pass uses."""

    def __init__(self):
        super().__init__()
        self.spare, self.used = (nn.Parameter(torch.rand(shape)) for shape in ((5, 7), (6, 4)))
        del self.first

    def forward(self, x):
        return self.t * self.head(torch.relu(x @ self.used))


class Aside(Scaled):
    """A layer in front, and one behind, whose outputs go nowhere, as of an auxiliary classifier."""

    def __init__(self):
        super().__init__()
        self.ahead, self.behind = nn.Linear(6, 5), nn.Linear(4, 2)

    def forward(self, x):
        self.ahead(x)
        hidden = torch.relu(self.first(x))
        self.behind(hidden)
        return self.t * self.head(hidden)


class Twice(Scaled):
    """A first layer that is called again with what it made, as in a recurrent network."""

    def __init__(self):
        super().__init__()
        self.first, self.head = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.first(torch.relu(self.first(x))))


class OfPairs(Twice):
    """A first layer that is called with two parts of a sample."""

    def forward(self, x):
        return self.head(self.first(x) * self.first(x.flip(1)))


class Branches(Scaled):
    """Two layers side by side that both read the sample."""

    def __init__(self):
        super().__init__()
        self.wide, self.deep = nn.Linear(6, 3), nn.Linear(4, 4)

    def forward(self, x):
        hidden = torch.relu(self.deep(torch.relu(self.first(x))))
        return self.head(hidden) + self.wide(x)


class AsideRoot(nn.Linear):
    """A layer that reads the sample beside those within it."""

    def __init__(self):
        super().__init__(6, 3)
        self.first, self.head = nn.Linear(6, 4), nn.Linear(4, 3)

    def forward(self, x):
        return self.head(torch.relu(self.first(x))) + super().forward(x)


class NormedBranch(Branches):
    def __init__(self):
        super().__init__()
        self.wide = weight_norm(self.wide)


def weight_normed():
    return nn.Sequential(weight_norm(nn.Linear(6, 4)), nn.ReLU(), nn.Linear(4, 3))


@pytest.mark.parametrize(
    ("make", "flops"),
    [
        *((Scaled, 168), (Positions, 168), (Shifted, 216), (Unused, 168), (weight_normed, 168)),
        *((Twice, 468), (OfPairs, 396), (Aside, 244), (Branches, 336)),
        *((AsideRoot, 240), (NormedBranch, 336)),
    ],
)
def test_the_backward_pass_is_counted_from_where_a_parameter_is_used(own, make, flops):
    """36 multiply-adds: three passes of 72 FLOP, but no gradient by the samples of 48.

    Called twice, 90: of the first layer the gradient by the inputs of the second call, or of none.
    Layers of 38 aside compute forward only. Of branches, 70, no gradient by 42 inputs of samples;
    of a root beside its layers, 54, none by 42.
    """
    from torch.utils.flop_counter import FlopCounterMode

    model = own(make)
    every = np.ones(model.layout.size, dtype=bool)
    w = torch.from_numpy(model.initial(np.random.default_rng(0))).requires_grad_()
    with FlopCounterMode(display=False) as counter:
        torch.autograd.grad(model.logits(w, torch.rand(1, 6)).sum(), w)
    assert step_cost(model, every, ~every).flops == counter.get_total_flops() == flops


class ThroughNumpy(nn.Linear):
    """Outputs that autograd does not follow to the parameters."""

    def __init__(self):
        super().__init__(6, 3)

    def forward(self, x):
        return torch.from_numpy(super().forward(x).detach().numpy())


def test_a_module_whose_outputs_have_no_gradient_is_refused(own):
    with pytest.raises(ModelError, match="gives outputs without a gradient; compute them from"):
        own(ThroughNumpy).layout  # noqa: B018


class Squeezed(nn.Linear):
    def forward(self, x):
        return super().forward(x).squeeze()


@pytest.mark.parametrize("classes", [1, 3])
def test_outputs_without_the_dimension_of_a_single_sample_have_it_again(own, classes):
    model, x = own(lambda: Squeezed(6, classes), classes=classes), torch.rand(4, 6)
    w = torch.from_numpy(model.initial(np.random.default_rng(0)))
    each = torch.cat([model.logits(w, row) for row in x.split(1)])
    assert each.shape == (4, classes)
    assert torch.allclose(each, model.logits(w, x))
