"""Blocks, heads and their distillation."""

from math import exp, log

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from fl.errors import ModelError
from fl.methods.depthfl.exits import Exit, mutual_loss, ramp, with_exits
from fl.models.architectures import Architecture, build
from fl.models.batch_norm import Collected
from fl.models.layers.learned_layers import Linear
from fl.models.layers.weightless_layers import Relu
from fl.models.memory_format import pool_before_relu
from fl.models.named_models import MODELS, SEQUENCES
from fl.timing_only import NATURAL

DEPTHS = {
    "mlp": 1,
    "digits-cnn": 3,
    "liu-cnn": 3,
    "fedlps-cnn": 3,
    "lenet5-caffe": 3,
    "spafl-conv4": 4,
    "vgg11": 5,
    "vgg13": 5,
    "vgg16": 5,
    "resnet18": 4,  # the stages, as the authors
    "shakespeare-lstm": 2,
    "vit": 1,
}


def branched(name):
    return with_exits(build(name, *NATURAL[name]))


@pytest.fixture(scope="module")
def cnn(bench):
    """DepthFL on the digits with its three blocks."""
    return bench.method("depthfl", local_steps=2)


TWO = Architecture(
    "two",
    (1,),
    2,
    (Linear(1, 1, bias=False), Relu(), Linear(1, 1, bias=False), Relu(), Linear(1, 2)),
)


def test_every_model_has_a_depth_here():
    assert set(DEPTHS) == set(MODELS) - SEQUENCES


def test_a_model_with_a_label_at_every_step_has_no_exits():
    with pytest.raises(ModelError, match="model reddit-lstm predicts one at every step; use anoth"):
        branched("reddit-lstm")


@pytest.mark.parametrize("name", DEPTHS)
def test_blocks_heads_and_what_stays_of_the_model(name):
    plain, model = build(name, *NATURAL[name]), branched(name)
    assert model.depths == DEPTHS[name]
    assert tuple(layer for layer in model.layers if not isinstance(layer, Exit)) == plain.layers
    heads = [slot for slot in model.layout.slots if slot.name.startswith("exit")]
    assert len(heads) == 2 * (model.depths - 1) and all(
        slot.shape[0] == model.classes for slot in heads
    )
    assert [slot.role for slot in heads] == ["classifier"] * len(heads)
    assert sorted({model.depth_of(slot) for slot in model.layout.slots}) == list(
        range(1, model.depths + 1)
    )
    assert with_exits(model) is model


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("digits-cnn", ["pool", "pool"]),
        ("fedlps-cnn", ["relu", "relu"]),  # which follow the pools
        ("spafl-conv4", ["pool", "pool", "relu"]),
        ("resnet18", ["block", "block", "block"]),
        ("shakespeare-lstm", ["lstm"]),
    ],
)
def test_what_a_block_ends_with(name, before):
    kinds = [layer.kind for layer in branched(name).layers]
    assert [kinds[i - 1] for i, kind in enumerate(kinds) if kind == "exit"] == before


def test_the_heads_of_the_digits_model():
    assert {p.name: p.shape for p in branched("digits-cnn").parts if p.name.startswith("exit")} == {
        "exit1.weight": (10, 8),
        "exit1.bias": (10,),
        "exit2.weight": (10, 16),
        "exit2.bias": (10,),
    }


def test_without_its_heads_the_model_starts_as_ever():
    plain, model = build("digits-cnn", (1, 8, 8), 10), branched("digits-cnn")
    named = model.layout.named(model.initial(np.random.default_rng(5)))
    for name, values in plain.layout.named(plain.initial(np.random.default_rng(5))).items():
        assert np.array_equal(named[name], values), name
    assert 0 < np.abs(named["exit2.weight"]).max() <= 16**-0.5


def test_exits_by_hand():
    """x = 2: h = 1.5 x = 3, head [1, -1] h + [0, 1] = [3, -2]; h' = 2 h = 6, classifier [0.5, 1] h'
    = [3, 6].
    """
    model = with_exits(TWO)
    w = torch.tensor([1.5, 1.0, -1.0, 0.0, 1.0, 2.0, 0.5, 1.0, 0.0, 0.0])
    first, second = model.exits(model.split(w), torch.tensor([[2.0]]))
    assert first.tolist() == [[3.0, -2.0]] and second.tolist() == [[3.0, 6.0]]
    assert model.logits(w, torch.tensor([[2.0]])).tolist() == [[3.0, 2.0]]


def test_deeper_blocks_are_not_computed(cnn):
    model, kept = cnn.task.architecture, cnn.nested[1][: cnn.task.layout.size]
    w = torch.from_numpy(model.initial(np.random.default_rng(0)))
    x = torch.rand(3, 1, 8, 8)
    broken = w.where(torch.from_numpy(kept), torch.nan)
    assert len(model.exits(model.split(broken), x, 2)) == 2
    for one, other in zip(
        model.exits(model.split(broken), x, 2), model.exits(model.split(w), x), strict=False
    ):
        assert torch.equal(one, other)
    assert model.logits(broken, x).isnan().all()


@pytest.mark.parametrize("name", ["digits-cnn", "fedlps-cnn", "spafl-conv4"])
def test_the_lean_order_of_layers_leaves_every_exit_as_it_is(name):
    model = branched(name)
    w = torch.from_numpy(model.initial(np.random.default_rng(0)))
    x = torch.rand(4, *model.input_shape)
    each = zip(
        model.exits(model.split(w), x),
        pool_before_relu(model).exits(model.split(w), x),
        strict=True,
    )
    assert all(torch.equal(one, other) for one, other in each)
    assert name == "fedlps-cnn" or pool_before_relu(model).layers != model.layers


def test_batch_norm_meets_its_layers_in_their_order():
    model, norms = branched("spafl-conv4"), Collected()
    w = torch.from_numpy(model.initial(np.random.default_rng(0)))
    x = torch.rand(6, 3, 32, 32)
    model.logits(w, x, norms)
    assert [len(mean) for mean, _ in norms.frozen().statistics] == [64, 64, 128, 128, 128, 128]
    assert len(model.exits(model.split(w), x, 1, norms.frozen())) == 1


def test_the_ramp():
    assert [ramp(g, 300) for g in (0, 300, 301, 5000)] == pytest.approx(
        [0.0067379, 1, 1, 1], abs=5e-8
    )
    assert ramp(150, 300) == pytest.approx(exp(-1.25))


def test_two_classifiers_by_hand():
    """softmax [1/2, 1/2] and [3/4, 1/4], label 0: CE log 2, log 4/3; KL(2 || 1), KL(1 || 2)."""
    logits = torch.tensor([[0.0, 0.0], [log(3), 0.0]], requires_grad=True)
    loss = mutual_loss([logits[:1], logits[1:]], torch.tensor([0]), 0.5)
    onto_first, onto_second = 0.75 * log(1.5) + 0.25 * log(0.5), 0.5 * log(2 / 3) + 0.5 * log(2)
    assert loss.item() == pytest.approx(
        log(2) + log(4 / 3) + 0.5 * (onto_first + onto_second), abs=1e-6
    )
    # a teacher gets no gradient: softmax - label + 0.5 (softmax - that of the other)
    loss.backward()
    assert logits.grad.tolist() == [pytest.approx([-0.625, 0.625]), pytest.approx([-0.125, 0.125])]


def test_each_of_three_classifiers_has_the_mean_of_two_teachers():
    logits = torch.zeros(3, 1, 2, requires_grad=True)
    with torch.no_grad():
        logits[1, 0, 0] = log(3)
    mutual_loss(list(logits), torch.tensor([1]), 1.0).backward()
    assert logits.grad[0, 0].tolist() == pytest.approx(
        [0.5 + (0.5 - 0.75) / 2, -0.5 - (0.5 - 0.75) / 2]
    )
    assert logits.grad[1, 0].tolist() == pytest.approx([0.75 + 2 * 0.25 / 2, -0.75 - 2 * 0.25 / 2])


def test_one_classifier_has_nobody_to_learn_from():
    logits, y = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1])
    assert mutual_loss([logits], y, 1.0) == cross_entropy(logits, y)
