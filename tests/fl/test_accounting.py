"""FLOPs as torch counts them, weights as Liu (8), (24) count them, bits as (25) and the mask's
own.
"""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from fl.accounting import (
    Accounting,
    binary_entropy,
    is_block,
    mask_bits,
    step_cost,
    submodel_cost,
)
from fl.contracts import Phase
from fl.models.architectures import Architecture, build
from fl.models.layers.learned_layers import Conv, Linear
from fl.models.layers.weightless_layers import Flatten, MaxPool
from fl.training.training_step import tensor_step

PARTS = ("features", "classifier", "everything")
SHAPES = [
    ("mlp", (1, 8, 8)),
    ("digits-cnn", (1, 8, 8)),
    ("liu-cnn", (1, 28, 28)),
    ("lenet5-caffe", (3, 32, 32)),
    ("fedlps-cnn", (1, 28, 28)),
    ("spafl-conv4", (3, 32, 32)),
    ("vgg11", (3, 32, 32)),
    ("resnet18", (3, 16, 16)),
]
TINY = Architecture("tiny", (1, 4, 4), 2, (Conv(1, 2, 3, 1), MaxPool(), Flatten(), Linear(8, 2)))


def part_of(layout, part):
    return np.ones(layout.size, dtype=bool) if part == "everything" else layout.role(part)


def counted_by_torch(architecture, trained, x):
    """FLOPs of forward and backward pass as torch counts them, per sample."""
    slots = architecture.layout.slots
    views = architecture.layout.split(torch.randn(architecture.layout.size) * 0.01)
    leaves = [
        v.clone().requires_grad_(bool(trained[s.slice].any()))
        for v, s in zip(views, slots, strict=True)
    ]
    with FlopCounterMode(display=False) as counter:
        loss = cross_entropy(
            architecture.forward(leaves, x), torch.zeros(len(x), dtype=torch.int64)
        )
        torch.autograd.grad(loss, [leaf for leaf in leaves if leaf.requires_grad])
    return counter.get_total_flops() / len(x)


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(("name", "shape"), SHAPES)
def test_flops_are_those_that_torch_counts_in_the_real_step(name, shape, part, bench):
    """A step of the real training loop under torch's counter, on 3 samples."""
    architecture = build(name, shape, 10)
    trained = part_of(architecture.layout, part)
    cost = step_cost(architecture, trained, np.zeros_like(trained))
    w = torch.randn(architecture.layout.size) * 0.01
    step = tensor_step(
        architecture, Phase(w, trained, 1, 0.1), w, torch.from_numpy(trained), architecture.layout
    )
    with FlopCounterMode(display=False) as counter:
        step(torch.rand(3, *shape), torch.tensor([0, 1, 2]))
    assert counter.get_total_flops() == 3 * cost.flops
    assert cost.weights == trained.sum()


@pytest.mark.slow
def test_flops_where_the_first_trained_layer_is_a_residual_block():
    """Inside it, the second convolution passes a gradient on; the first and the shortcut do not."""
    architecture = build("resnet18", (3, 16, 16), 10)
    place = next(
        slot.layer for slot in architecture.layout.slots if slot.name == "block5.conv1.weight"
    )
    trained = architecture.layout.where(lambda slot: slot.layer >= place)
    cost = step_cost(architecture, trained, ~trained)
    assert cost.flops == counted_by_torch(architecture, trained, torch.rand(2, 3, 16, 16))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:TF32")  # torch's, at the switch
@pytest.mark.parametrize(("first", "layers"), [(0, 2), (2, 1)])
def test_flops_of_the_lstm(first, layers):
    """Torch's fused kernel is not counted, so it is switched off. Torch leaves out the gradient
    by the initial state of
    a layer, 4 H H multiply-adds of one time step, which is counted here."""
    architecture = build("shakespeare-lstm", (80,), 90)
    trained = architecture.layout.where(lambda slot: slot.layer >= first)
    cost = step_cost(architecture, trained, ~trained)
    with torch.backends.mkldnn.flags(enabled=False):
        seen = counted_by_torch(architecture, trained, torch.zeros(2, 80, dtype=torch.int64))
    assert cost.flops - seen == layers * 2 * 4 * 256 * 256


def test_a_conv_by_hand():
    """2 filters of 3x3 over 4x4, padded: 16 x 9 x 2 multiply-adds; pooled to 2x2; linear 8 -> 2:
    16.
    """
    features, classifier = TINY.layout.role("features"), TINY.layout.role("classifier")
    nothing = TINY.layout.role("none")
    assert step_cost(TINY, classifier, nothing).flops == 2 * (
        288 + 16 * 2
    )  # forward, and by the weights of the last
    assert step_cost(TINY, features, nothing).flops == 2 * (
        288 * 2 + 16 * 2
    )  # and by the activations of the last
    assert step_cost(TINY, features | classifier, classifier).flops_prunable == 2 * 16 * 3
    assert step_cost(TINY, nothing, nothing).flops == 0


def test_the_conventions_by_hand():
    """The same net: 2 x 304 FLOP forward; its biases are added 2 x 16 and 2 times."""
    classifier, nothing = TINY.layout.role("classifier"), TINY.layout.role("none")
    twice, biases = Accounting(backward="twice"), Accounting(count_biases=True)
    both = Accounting(backward="twice", count_biases=True)
    assert (
        step_cost(TINY, classifier, nothing, twice).flops == 3 * 608
    )  # every layer, trained or not
    assert step_cost(TINY, classifier, nothing, both).flops == 3 * (608 + 34)
    assert step_cost(TINY, classifier, nothing, biases).flops == 2 * (288 + 16 * 2) + 32 + 2 * 2
    assert step_cost(TINY, nothing, nothing, both).flops == 0


def test_coordinates_behind_the_model_cost_nothing():
    everything = np.ones(TINY.layout.size, dtype=bool)
    longer = np.ones(TINY.layout.size + 5, dtype=bool)
    assert step_cost(TINY, longer, longer) == step_cost(TINY, everything, everything)
    assert submodel_cost(TINY, longer) == submodel_cost(TINY, everything)


def test_a_submodel_by_hand():
    """The same net with one filter: 144 multiply-adds of the convolution, 8 of the linear layer."""
    kept = TINY.layout.expand({"conv1": np.array([True, False])})
    cost = submodel_cost(TINY, kept)
    assert cost.flops == 2 * (144 * 2 + 8 * 3)
    assert cost.weights == 9 + 1 + 8 + 2
    assert (cost.weights_prunable, cost.flops_prunable) == (0, 0)
    work = Accounting().work(cost, steps=3, batch=5)
    assert (work.flops, work.weight_steps) == (15 * cost.flops, 3 * 20)
    everything = np.ones_like(kept)
    assert submodel_cost(TINY, everything).flops == step_cost(TINY, everything, ~everything).flops
    head = TINY.layout.role("classifier")
    assert (
        submodel_cost(TINY, head).flops == 2 * 16 * 2
    )  # no filter is left to pass a gradient on to
    assert submodel_cost(TINY, ~everything).flops == 0


def test_forward_and_backward_on_different_submodels():
    """FedMAP: forward with the child, backward with its parent."""
    parent = np.ones(TINY.layout.size, dtype=bool)
    child = TINY.layout.expand({"conv1": np.array([True, False])})
    cost = submodel_cost(TINY, child, Accounting(backward="twice"), backward=parent)
    assert cost.flops == 2 * (144 + 8) + 4 * (288 + 16)
    assert cost.weights == TINY.layout.size


def test_only_a_dense_submodel_saves_everything():
    """Half of the filters are half of the work; half of the weights here and there save
    sparse_efficiency of it.
    """
    half = Accounting(sparse_efficiency=0.5)
    filters = TINY.layout.expand({"conv1": np.array([True, False])})
    assert submodel_cost(TINY, filters, half) == submodel_cost(TINY, filters)
    scattered = np.ones(TINY.layout.size, dtype=bool)
    scattered[[0, 10]] = False  # one weight of each filter, at different places
    full, sparse = (
        submodel_cost(TINY, scattered, Accounting(sparse_efficiency=0.0)),
        submodel_cost(TINY, scattered),
    )
    assert full.flops == submodel_cost(TINY, np.ones_like(scattered)).flops
    assert (
        sparse.flops == full.flops - 2 * 2 * 2 * 16
    )  # two weights, each used 16 times, forward and by the weights
    assert submodel_cost(TINY, scattered, half).flops == full.flops - 2 * 2 * 16
    assert submodel_cost(TINY, scattered, half).weights == TINY.layout.size - 1
    assert [
        is_block(np.array(m)) for m in ([[1, 0], [1, 0]], [[1, 0], [0, 1]], [[0, 0], [0, 0]])
    ] == [
        True,
        False,
        True,
    ]


@pytest.mark.parametrize("kept", [True, False])
def test_a_tensor_of_one_number_is_kept_or_saved(kept):
    """A temperature of a user's module has no dimension."""
    assert Accounting(sparse_efficiency=0.5).charged(np.array(kept)) == kept


def test_liu_24_in_weight_steps(bench):
    """tau_v N_v + tau_hat N_u + (1 - rho) tau_u N_u, stage by stage."""
    method = bench.method("liu", personal_steps=3, warmup_steps=2, global_steps=4)
    v, u = 1248, 4810
    for rho in (0.0, 0.3, 1.0):
        stages = method.stages(0, rho)
        assert [s.name for s in stages] == ["personal", "warm-up", "global"]
        assert [s.work.weight_steps for s in stages] == pytest.approx(
            [3 * v, 2 * u, 4 * (1 - rho) * u], rel=1e-12
        )
        assert method.payload(rho).bits_up == pytest.approx((1 - rho) * 32 * u, rel=1e-12)
        assert method.payload(rho).bits_down == 32 * u


def test_sparse_efficiency_is_the_share_that_is_saved():
    a = build("mlp", (1, 8, 8), 10)
    part = a.layout.role("classifier")
    cost = step_cost(a, part, part)
    for efficiency in (0.0, 0.25, 1.0):
        work = Accounting(sparse_efficiency=efficiency).work(cost, steps=2, batch=5, rho=0.5)
        assert work.weight_steps == 2 * 650 * (1 - efficiency / 2)
        assert work.flops == 2 * 5 * (2 * 64 * 64 + 2 * 640 * 2 * (1 - efficiency / 2))


def test_the_mask_itself():
    assert binary_entropy(0.5) == 1
    assert binary_entropy(0.25) == pytest.approx(2 - 0.75 * np.log2(3))
    assert [binary_entropy(p) for p in (0, 1)] == [0, 0]
    expected = {"none": (0, 0), "bitmap": (100, 100), "entropy": (100 * binary_entropy(0.25), 100)}
    for overhead, (charged, planned) in expected.items():
        accounting = Accounting(mask_overhead=overhead)
        assert accounting.mask_bits(100, 0.25) == pytest.approx(charged)
        assert accounting.mask_bits_bound(100) == planned


@pytest.mark.parametrize(("gamma", "bits"), [(1 / 4, 349_255), (1 / 16, 145_203), (1 / 64, 49_988)])
def test_bits_of_a_mask(gamma, bits):
    share = int(gamma * 430_500) / 430_500
    assert mask_bits(430_500, share, "entropy") == pytest.approx(
        bits, abs=6
    )  # gamma d rounded down: log2(63) = 6 bit
    assert mask_bits(430_500, share, "bitmap") == 430_500
    assert mask_bits(430_500, share, "seed") == 64
    assert mask_bits(430_500, share, "none") == 0


@pytest.mark.filterwarnings("ignore:TF32")  # torch's, at the switch
@pytest.mark.parametrize(("first", "fused"), [(0, 2), (1, 2), (2, 1), (3, 0)])
def test_flops_of_a_tied_decoder_whatever_is_trained_first(first, fused):
    """The gradient reaches the LSTM layers through the decoder, whose weights stand before them."""
    model = build("reddit-lstm", (4,), 7, text=True)
    trained = model.layout.where(lambda slot: slot.layer >= first)
    leaves = [
        v.clone().requires_grad_(bool(trained[s.slice].any()))
        for v, s in zip(
            model.layout.split(torch.zeros(model.layout.size)), model.layout.slots, strict=True
        )
    ]
    with torch.backends.mkldnn.flags(enabled=False), FlopCounterMode(display=False) as counter:
        model.forward(leaves, torch.zeros(2, 4, dtype=torch.int64)).sum().backward()
    first_states = sum((2 * 4 * 256**2, 2 * 4 * 200**2)[-fused:]) if fused else 0
    found = step_cost(model, trained, ~trained).flops - first_states
    assert found == counter.get_total_flops() / 2
