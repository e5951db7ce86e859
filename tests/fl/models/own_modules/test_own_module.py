"""A module of the user's own computes, trains and costs as the same shipped model does."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
import torch
from torch import nn

from fl.accounting import Accounting, step_cost, submodel_cost
from fl.contracts import Phase
from fl.errors import ModelError
from fl.models.architectures import build
from fl.models.batch_norm import Collected
from fl.models.own_modules.operation_flops import flop_counter
from fl.training.training_step import tensor_step

SHIPPED = build("digits-cnn", (1, 8, 8), 10)


def weights(architecture, seed=0):
    return torch.from_numpy(architecture.initial(np.random.default_rng(seed)))


def mlp():
    return nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3))


def test_it_computes_as_the_shipped_model(digits_cnn):
    w, x = weights(SHIPPED), torch.rand(5, 1, 8, 8)
    assert torch.equal(digits_cnn.logits(w, x), SHIPPED.logits(w, x))
    assert len(weights(digits_cnn)) == digits_cnn.layout.size == SHIPPED.layout.size


@pytest.mark.parametrize("trained", ["all", "conv2", "linear2"])
@pytest.mark.parametrize("biases", [False, True])
def test_it_costs_what_the_shipped_model_costs(digits_cnn, trained, biases):
    """conv1 8x8 places x 72, conv2 4x4 x 1152, fc1 4096, fc2 640 multiply-adds: by hand."""
    assert list(digits_cnn.macs.values()) == [4608, 18432, 4096, 640]
    wanted = SHIPPED.layout.where(lambda slot: trained == "all" or slot.name.startswith(trained))
    accounting = Accounting(count_biases=biases)
    both = [step_cost(each, wanted, ~wanted, accounting) for each in (digits_cnn, SHIPPED)]
    assert both[0] == both[1]


def test_a_step_costs_what_torch_counts(digits_cnn):
    """Forward and backward of one sample, by the counter of torch."""
    from torch.utils.flop_counter import FlopCounterMode

    every = np.ones(digits_cnn.layout.size, dtype=bool)
    w = weights(digits_cnn).requires_grad_()
    with FlopCounterMode(display=False) as counter:
        torch.autograd.grad(digits_cnn.logits(w, torch.rand(1, 1, 8, 8)).sum(), w)
    assert step_cost(digits_cnn, every, ~every).flops == counter.get_total_flops()


OPERATIONS = {
    "convolutions": (lambda: nn.Conv2d(4, 6, 3, groups=2), (4, 5, 5)),
    "transposed": (lambda: nn.ConvTranspose2d(3, 4, 3), (3, 5, 5)),
    "attention": (lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), (5, 16)),
    "lstm": (lambda: nn.LSTM(4, 8, 2), (5, 4)),
    "gru": (lambda: nn.GRU(4, 8), (5, 4)),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("trains", [False, True])
def test_operations_are_counted_as_torch_counts_them(name, trains):
    from torch.utils.flop_counter import FlopCounterMode

    make, shape = OPERATIONS[name]
    module, x = make().train(trains), torch.rand(2, *shape)
    with flop_counter() as ours:
        module(x)
    module.train()  # with dropout, else attention is one operation that torch does not count
    with torch.backends.mkldnn.flags(enabled=False), FlopCounterMode(display=False) as theirs:
        module(x)
    assert sum(flops for flops, _ in ours.products) == theirs.get_total_flops() > 0


M, V, B = torch.ones(7, 5), torch.ones(5), torch.ones(3, 7, 5)


@pytest.mark.parametrize(
    ("product", "flops"),
    [
        (lambda: torch.mv(M, V), 2 * 7 * 5),
        (lambda: B @ V, 2 * 3 * 7 * 5),
        (lambda: nn.functional.linear(M, V), 2 * 7 * 5),
        (lambda: torch.addmv(torch.ones(7), M, V, beta=0.5), 2 * 7 * 5),
        (lambda: V @ V, 2 * 5),
        (lambda: torch.addbmm(torch.ones(7, 7), B, B.mT), 2 * 3 * 7 * 5 * 7),
        (lambda: M @ M.T, 2 * 7 * 5 * 7),
        (lambda: torch.ones(7, 7).addmm_(M, M.T), 2 * 7 * 5 * 7),
        (lambda: torch.ones(3, 7, 7).baddbmm_(B, B.mT), 2 * 3 * 7 * 5 * 7),
    ],
)
def test_products_that_torch_leaves_out_are_counted_too(product, flops):
    """A matrix times a vector cost nothing, the same matrix times a matrix of one column did."""
    with flop_counter() as counter:
        product()
    assert sum(counted for counted, _ in counter.products) == flops


@pytest.mark.slow
def test_an_own_module_does_not_import_the_compiler_of_torch():
    """It takes longer than all else that a run of one round imports."""
    code = (
        "import sys, torch, numpy as np\n"
        "from fl.models.own_modules.module_trace import trace\n"
        "trace(torch.nn.Linear(3, 2), torch.rand(2, 3), 'net')\n"
        "assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_half_of_the_units_cost_what_they_cost_of_the_shipped_model(digits_cnn):
    from fl.masks.unit_masks import prefix

    kept = digits_cnn.layout.expand(prefix(digits_cnn.layout, 0.5))
    assert np.array_equal(kept, SHIPPED.layout.expand(prefix(SHIPPED.layout, 0.5)))
    assert submodel_cost(digits_cnn, kept) == submodel_cost(SHIPPED, kept)


def test_first_weights_follow_from_the_seed_or_are_those_of_the_module(own):
    model, module = own(mlp), mlp()
    assert torch.equal(weights(model, 1), weights(model, 1))
    assert not torch.equal(weights(model, 1), weights(model, 2))
    given = torch.cat([each.detach().flatten() for each in module.parameters()])
    assert torch.equal(weights(own(module), 1), given)
    before = torch.get_rng_state()
    weights(model)
    assert torch.equal(torch.get_rng_state(), before)


def test_batch_norm_is_static(residual):
    """Training uses the statistics of the batch, evaluation those that were collected."""
    w, x = weights(residual), torch.rand(8, 1, 4, 4)
    assert residual.normalises and not any("running" in n for n in residual.layout.named(w))
    collected = Collected()
    residual.logits(w, x, collected)
    frozen = collected.frozen()
    torch.testing.assert_close(residual.logits(w, x, frozen)[:3], residual.logits(w, x[:3], frozen))
    assert not torch.allclose(residual.logits(w, x)[:3], residual.logits(w, x[:3]))


def test_dropout_follows_from_the_seed_of_the_step(residual):
    w, x = weights(residual), torch.rand(8, 1, 4, 4)
    training = residual.in_training([1, 2, 1])
    one, two, again = (training.logits(w, x) for _ in range(3))
    assert torch.equal(one, again) and not torch.equal(one, two)
    assert torch.equal(residual.logits(w, x), residual.logits(w, x))


class Meeting(nn.Linear):
    """Two passes at a time: each goes on only when the other one has its weights too."""

    meet = None

    def forward(self, x):
        if self.meet is not None:
            self.meet.wait(timeout=60)
        return super().forward(x)


def test_passes_on_several_threads_do_not_mix(own, monkeypatch):
    model, x = own(lambda: Meeting(6, 3)), torch.rand(4, 6)
    each = [weights(model, seed) for seed in range(2)]
    alone = [model.logits(w, x) for w in each]
    monkeypatch.setattr(Meeting, "meet", Barrier(2))
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda w: model.logits(w, x), each))
    assert all(map(torch.equal, together, alone))


@pytest.mark.parametrize(
    ("classifier", "names"),
    [
        (None, ["2.weight", "2.bias"]),
        (("2.bias",), ["2.bias"]),
        (("0",), ["0.weight", "0.bias"]),
    ],
)
def test_roles_follow_a_rule_or_the_users_list(own, classifier, names):
    slots = own(mlp, classifier=classifier).layout.slots
    assert [slot.name for slot in slots if slot.role == "classifier"] == names
    assert {slot.role for slot in slots} == {"features", "classifier"}


def test_an_object_with_logits_and_text(attention):
    codes = torch.randint(0, 20, (3, 6))
    assert attention.logits(weights(attention), codes).shape == (3, 5)
    assert attention.trace.last == "classifier"


def test_tied_weights_are_one_part_of_the_model(own):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.head = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)
            self.second.weight = self.first.weight

        def forward(self, x):
            return self.head(self.second(self.first(x)))

    model = own(Tied)
    w = weights(model)
    assert model.layout.size == 36 + 6 + 6 + 21
    assert not torch.allclose(
        model.logits(0 * w, torch.ones(1, 6)), model.logits(w, torch.ones(1, 6))
    )
    assert model.macs == {"first.weight": 72, "head.weight": 18}


def test_a_layer_that_a_pass_leaves_out_stays_as_it_is(own):
    """Pairs with a sum above 0 go through one layer, the others through the other."""

    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.above, self.below, self.unused = (nn.Linear(6, 3) for _ in range(3))

        def forward(self, x):
            return self.above(x) if x.sum() > 0 else self.below(x)

    model = own(Branches)
    for sign, moved in ((1.0, "above"), (-1.0, "below")):
        w = weights(model)
        phase = Phase(w, torch.ones(len(w), dtype=torch.bool), 1, 0.1)
        step = tensor_step(model, phase, w, phase.mask, model.layout)
        before = model.layout.named(w.clone())
        step(sign * torch.ones(2, 6), torch.tensor([0, 1]))
        changed = {
            name for name, part in model.layout.named(w).items() if (part != before[name]).any()
        }
        assert changed == {f"{moved}.weight", f"{moved}.bias"}


class Counting(nn.Linear):
    def __init__(self):
        super().__init__(6, 3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return super().forward(x)


class NoGroups(nn.Linear):
    """A table with a row for each of no groups."""

    def __init__(self):
        super().__init__(6, 3)
        self.empty = nn.Parameter(torch.zeros(0, 3))


class Sampling(nn.Linear):
    def forward(self, x):
        return super().forward(x + torch.randn_like(x))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: nn.Linear(6, 4), r"has outputs \[4\] for a sample; the data need \[3\]"),
        (lambda: nn.Flatten(), "has no parameters"),
        (lambda: 5, "is int, no torch.nn.Module"),
        (
            lambda width: nn.Linear(6, width),
            r"cannot be made \(missing .*: 'width",
        ),
        (lambda: nn.Linear(6, 3).double(), "weight is torch.float64; parameters are float32"),
        (lambda: nn.Linear(6, 3).requires_grad_(False), "weight requires no gradient"),
        (lambda: NoGroups(), r"empty has shape \[0, 3\], which holds no number; leave it out"),
        (lambda: nn.LSTM(6, 3), "gives tuple; give a tensor"),
        (lambda: Counting(), "changes its buffer calls while it trains"),
        (lambda: Sampling(6, 3), "draws random numbers when it is evaluated"),
        (
            lambda: nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3, eps=0.1)),
            "has a batch norm with eps 0.1; batch norm adds 1e-05",
        ),
    ],
)
def test_what_cannot_be_a_model_is_one_sentence(own, make, sentence):
    with pytest.raises(ModelError, match=rf"net\.py:Net.* {sentence}|{sentence}"):
        _ = own(make).trace


@pytest.mark.parametrize(
    ("classifier", "sentence"),
    [(("fc",), "no module or parameter fc; there are 0, 2"), (("0", "2"), "leave features")],
)
def test_a_wrong_classifier_is_one_sentence(own, classifier, sentence):
    with pytest.raises(ModelError, match=sentence):
        _ = own(mlp, classifier=classifier).layout
