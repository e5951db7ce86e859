"""Orders of layers and of numbers in memory: what is faster must be the same."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from edgesim.seeds import Seeds
from fl.contracts import Job, Payload, Phase
from fl.data.samples import Federated
from fl.masks import unit_masks as masks
from fl.models import memory_format
from fl.models.architectures import build
from fl.models.dense_submodel import dense_submodel
from fl.task import LearningTask
from fl.training import local_sgd as local


def task_of(model, shape=(1, 8, 8), sizes=(40, 23, 8, 31)):
    """Random images on one device per size, in batches of 8."""
    rng, count = np.random.default_rng(0), sum(sizes)
    x, y = rng.random((count, *shape)).astype(np.float32), rng.integers(0, 10, count)
    each = np.split(np.arange(count), np.cumsum(sizes)[:-1])
    data = Federated(y, y, lambda: (x, x), shape, each, each, tuple("0123456789"))
    return LearningTask(build(model, shape, 10), data, 8, Seeds(0))


def job(task, k=0, steps=3, **more):
    w = task.initial()
    everything = torch.ones(len(w), dtype=torch.bool)
    phase = Phase(**{"start": w, "mask": everything, "steps": steps, "lr": 0.1} | more)
    return Job(k, 0, (phase,), (), Payload(0.0, 0.0), 0.0)


def assert_same(one, other):
    assert torch.equal(one.w, other.w) and torch.equal(one.mask, other.mask)
    assert (one.loss, one.accuracy) == (other.loss, other.accuracy)


def assert_close(one, other, tolerance=1e-5):
    assert float((one.w - other.w).abs().max()) <= tolerance * float(other.w.abs().max())
    assert torch.equal(one.mask, other.mask)
    assert one.loss == pytest.approx(other.loss, rel=max(tolerance, 1e-6))
    assert one.accuracy == pytest.approx(other.accuracy, abs=1e-6, nan_ok=True)


def pictures(channels, side, batch=9):
    """Pictures on an empty ground, as drawings are: many windows hold the same value four times."""
    x = torch.rand(batch, channels, side, side, generator=torch.Generator().manual_seed(0)) - 0.3
    x[:, :, : side // 2], x[..., : side // 3] = 0.0, 0.0
    return x, torch.arange(batch) % 10


def loss_and_gradients(architecture, w, x, y):
    leaves = [v.clone().requires_grad_() for v in architecture.layout.split(w)]
    loss = cross_entropy(architecture.forward(leaves, x), y)
    return [loss, *torch.autograd.grad(loss, leaves)]


def assert_same_bits(one, other, w, x, y):
    pairs = zip(loss_and_gradients(one, w, x, y), loss_and_gradients(other, w, x, y), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def initial(architecture):
    return torch.from_numpy(architecture.initial(np.random.default_rng(0)))


@pytest.mark.parametrize("side", [12, 13, 28])
def test_pooling_before_relu_is_the_same_to_the_bit(side):
    architecture = build("liu-cnn", (1, side, side), 10)
    quicker = memory_format.pool_before_relu(architecture)
    kinds = [layer.kind for layer in quicker.layers]
    assert (
        kinds[:6] == ["conv", "pool", "relu", "conv", "pool", "relu"]
        and quicker.layout == architecture.layout
    )
    assert_same_bits(architecture, quicker, initial(architecture), *pictures(1, side))


@pytest.mark.parametrize(("channels", "side"), [(1, 28), (3, 32), (1, 13)])
@pytest.mark.parametrize("name", ["liu-cnn", "lenet5-caffe", "fedlps-cnn"])
def test_the_blocks_of_onednn_give_the_bits_of_torch(name, channels, side):
    """With windows of equal values too: both send the gradient to the first of them."""
    architecture = build(name, (channels, max(side, 16), max(side, 16)), 10)
    x, y = pictures(channels, max(side, 16))
    kinds = [layer.kind for layer in memory_format.in_onednn_order(architecture).layers]
    assert kinds[0] == "to-onednn" and kinds[kinds.index("flatten") - 1] == "from-onednn"
    assert_same_bits(
        memory_format.pool_before_relu(architecture),
        memory_format.in_onednn_order(architecture),
        initial(architecture),
        x,
        y,
    )


def test_who_computes_in_blocks():
    """Channels in sixteens, convolutions up to the dense layers, 32 bits, a CPU."""

    def fills(name, shape=(1, 28, 28), width=1.0, dtype=torch.float32, device="cpu"):
        architecture = build(name, shape, 10)
        layout = architecture.layout
        smaller = dense_submodel(
            layout, torch.from_numpy(layout.expand(masks.prefix(layout, width)))
        )
        images = torch.zeros(1, *shape, dtype=dtype, device=device)
        return memory_format.suits_onednn(
            architecture, layout if smaller is None else smaller.layout, images
        )

    assert fills("liu-cnn") and fills("liu-cnn", width=0.5)
    assert not fills("liu-cnn", width=0.25)  # 8 channels
    assert not fills("lenet5-caffe") and not fills("mlp") and not fills("digits-cnn")
    assert not fills("vgg11", (3, 32, 32)) and not fills(
        "resnet18", (3, 32, 32)
    )  # norms lie between
    assert not fills("liu-cnn", dtype=torch.float64) and not fills("liu-cnn", device="meta")


def test_training_in_blocks_gives_the_bits_of_training_without(monkeypatch):
    task = task_of("liu-cnn", shape=(1, 12, 12))
    half = torch.from_numpy(task.layout.expand(masks.prefix(task.layout, 0.5)))
    more = [
        {},
        {"submodel": half},
        {"penalty": lambda w: 0.01 * w.square().sum()},
        {"steps": 5, "ragged": True},
    ]
    jobs = [job(task, k, **each) for k, each in enumerate(more)]
    assert memory_format.fastest_memory_format(task.architecture, task.layout, task.train[0], 8)[
        0
    ] == memory_format.in_onednn_order(task.architecture)
    fast = [local.run(task, one) for one in jobs]
    monkeypatch.setattr(memory_format, "suits_onednn", lambda *_: False)
    monkeypatch.setattr(memory_format, "suits_channels_last", lambda *_: False)
    for before, one in zip(fast, jobs, strict=True):
        assert_same(before, local.run(task, one))


def test_a_loss_of_the_methods_own_sees_channels_last_and_no_blocks():
    """It computes with the architecture itself, which would not enter the blocks."""
    task = task_of("liu-cnn", shape=(1, 28, 28))

    def loss(w, x, y):
        assert x.layout == torch.strided and x.stride() == (784, 1, 28, 1)
        return cross_entropy(task.architecture.logits(w, x), y)

    assert_close(
        local.run(task, job(task, loss=loss)),
        replace(local.run(task, job(task)), accuracy=np.nan),
    )


def test_the_order_of_pixels_and_channels_is_a_matter_of_speed_only(monkeypatch):
    task = task_of("digits-cnn")
    fast = local.run(task, job(task))
    assert (
        memory_format.fastest_memory_format(task.architecture, task.layout, task.train[0], 8)[1]
        is memory_format.channels_last
    )
    assert memory_format.suits_channels_last(
        task.architecture, 8
    ) and not memory_format.suits_channels_last(build("vgg11", (3, 32, 32), 10), 8)
    assert not memory_format.suits_channels_last(build("mlp", (1, 8, 8), 10), 8)
    monkeypatch.setattr(memory_format, "suits_channels_last", lambda architecture, batch: False)
    assert_close(fast, local.run(task, job(task)), 1e-6)
    for channels in (1, 3):
        x = torch.rand(2, channels, 4, 5)
        ordered = memory_format.channels_last(x)
        assert torch.equal(ordered, x) and ordered.stride() == (
            20 * channels,
            1,
            5 * channels,
            channels,
        )
