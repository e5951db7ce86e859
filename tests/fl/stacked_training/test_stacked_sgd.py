"""Steps of stacks: by hand, against one by one, and independent of neighbours to the byte."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from edgesim.seeds import Seeds
from fl.contracts import Adam, Phase
from fl.data.samples import Federated
from fl.executors.batched import Batched
from fl.executors.one_by_one import OneByOne
from fl.masks import unit_masks as masks
from fl.models.architectures import Architecture
from fl.models.layers.learned_layers import Conv, Linear
from fl.models.layers.weightless_layers import Flatten, MaxPool, Relu
from fl.stacked_training import stacked_sgd
from fl.task import LearningTask
from fl.training.optimisers import norm_of
from tests.fl.random_jobs import (
    CNN,
    MLP,
    OPTIMISERS,
    OTHER,
    assert_close,
    job,
    job_of,
    same,
    task_of,
)


def by_hand(w, x, y):
    """Two layers, w = (a [2], b [2], V [2, 2], c [2]) for one input x: loss and gradient, by the
    chain rule.
    """
    a, b, v, c = w[0:2], w[2:4], w[4:8].reshape(2, 2), w[8:10]
    h = np.maximum(a * x + b, 0)
    z = v @ h + c
    p = np.exp(z) / np.exp(z).sum()
    back = p - np.eye(2)[y]
    into = (v.T @ back) * (h > 0)
    return -np.log(p[y]), np.concatenate([into * x, into, np.outer(back, h).ravel(), back])


def two_neurons(samples):
    """Two inputs of one device each: x = 1 of class 0, x = -2 of class 1; or both of one device."""
    x, y = np.array([[1.0], [-2.0]], dtype=np.float64), np.array([0, 1])
    each = [np.array([0]), np.array([1])] if samples == 1 else [np.array([0, 1])]
    architecture = Architecture("two", (1,), 2, (Linear(1, 2, "features"), Relu(), Linear(2, 2)))
    return LearningTask(
        architecture,
        Federated(y, y, lambda: (x, x), (1,), each, each, ("a", "b")),
        samples,
        Seeds(0),
    )


W = np.array([0.5, -1.0, 0.1, 0.2, 0.3, -0.4, 0.6, 0.7, 0.05, -0.05])


def test_a_step_of_two_perceptrons_by_hand():
    """x = 1: h = (0.6, 0), z = (0.23, 0.31), p_0 = 0.48001; the dead neuron and its weights do not
    move.
    """
    task = two_neurons(1)
    start, everything = torch.tensor(W), torch.ones(10, dtype=torch.bool)
    jobs = [job_of(task, Phase(start, everything, 1, 0.5), device=k) for k in (0, 1)]
    first, second = Batched(task).run(jobs)
    for one, x, y in ((first, 1.0, 0), (second, -2.0, 1)):
        loss, gradient = by_hand(W, x, y)
        assert one.w.tolist() == pytest.approx(W - 0.5 * gradient, abs=1e-12)
        assert one.loss == pytest.approx(loss, abs=1e-12)
    assert first.loss == pytest.approx(-np.log(0.4800107), abs=1e-6)
    assert first.accuracy == 0.0 and first.w[1] == W[1] and first.w[5] == W[5]


def test_a_batch_is_the_mean_of_its_samples_and_a_mask_holds_still():
    task, mask = two_neurons(2), torch.tensor([True] * 4 + [False, True, True, True] + [False] * 2)
    (one,) = Batched(task).run([job_of(task, Phase(torch.tensor(W), mask, 1, 0.5))])
    gradient = (by_hand(W, 1.0, 0)[1] + by_hand(W, -2.0, 1)[1]) / 2
    assert one.w.tolist() == pytest.approx(W - 0.5 * mask.numpy() * gradient, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("model", [MLP, CNN, OTHER], ids=["mlp", "cnn", "other"])
@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=str)
@pytest.mark.parametrize("ragged", [False, True])
def test_stacks_agree_with_one_by_one_in_double_precision(model, optimiser, ragged):
    """Different devices, steps, last batches, rates, factors, frozen and scattered weights: all at
    once.
    """
    task = task_of(model, dtype=np.float64)
    size, rng = task.layout.size, np.random.default_rng(1)
    w = task.initial().double()
    some, rates = (
        torch.from_numpy(rng.random(size) < 0.7),
        torch.from_numpy(rng.uniform(0.01, 0.1, size)),
    )
    head = torch.from_numpy(task.layout.role("classifier").copy())
    half = torch.from_numpy(task.layout.expand(masks.prefix(task.layout, 0.5)))
    scale = 1 + torch.from_numpy(rng.random(size))
    lr = 0.001 if isinstance(optimiser, Adam) else 0.05
    base = Phase(w, torch.ones(size, dtype=torch.bool), 4, lr, optimiser=optimiser, ragged=ragged)
    kinds = [
        {},
        {"mask": some, "first": 2},
        {"mask": head, "steps": 7},
        {"lr": rates},
        {"mask": some, "lr": rates},
        {"scale": scale},
        {"submodel": half},
        {"submodel": some, "scale": scale},
        {"submodel": half, "lr": rates, "scale": scale},
    ]
    jobs = [job_of(task, replace(base, **kind), device=k) for kind in kinds for k in range(3)]
    tail = Phase(
        lambda done: done[-1], lambda done: done[-1] != w, 2, lr, "more", optimiser=optimiser
    )
    jobs += [job_of(task, replace(base, steps=2 + k), tail, device=k) for k in range(4)]
    executor = Batched(task)
    assert_close(executor.run(jobs), OneByOne(task).run(jobs), 1e-9)
    assert executor.fallbacks.lines() == []


@pytest.mark.parametrize("model", [MLP, CNN, OTHER], ids=["mlp", "cnn", "other"])
def test_neighbours_and_chunks_change_no_byte(model):
    task = task_of(model)
    mask = torch.rand(task.layout.size, generator=torch.Generator().manual_seed(0)) < 0.5
    jobs = [
        job(task, k, steps=1 + k % 4, ragged=k > 2, mask=mask | (k % 2 == 0))
        for k in (0, 1, 2, 3, 4) * 5
    ]
    together = Batched(task).run(jobs)
    assert same([Batched(task).run([one])[0] for one in jobs[:5]], together[:5])
    assert same(Batched(task).run(jobs[::-1])[::-1], together)
    if model != OTHER:  # which always computes as many models at once
        assert same(Batched(task, memory=1).run(jobs), together)
        assert same(Batched(task, memory=1 << 20).run(jobs), together)


ONE_SOMEWHERE = {
    "one channel": (
        (Conv(1, 1, 3, 1), MaxPool(), Relu(), Conv(1, 5, 1, 0), Flatten(), Linear(80, 10)),
        (1, 8, 8),
    ),
    "one pixel": (
        (Conv(2, 6, 3, 0), Relu(), Conv(6, 1, 2, 0), Flatten(), Linear(1, 10)),
        (2, 4, 4),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=str)
@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize(
    ("widths", "batch"),
    [
        ((33, 16, 10), 1),
        ((33, 1, 10), 8),
        ((1, 16, 10), 8),
        ((1, 10), 1),
        ((64, 33, 1, 10), 1),
        ("one channel", 8),
        ("one pixel", 1),
    ],
)
def test_neighbours_change_no_byte_where_something_is_one(widths, batch, optimiser, ragged):
    """A product with a single row or column is computed in another way where there is a single
    model.
    """
    if isinstance(widths, str):
        layers, shape = ONE_SOMEWHERE[widths]
    else:
        layers, shape = [Linear(*pair) for pair in pairwise(widths)], (widths[0],)
        layers[1:] = [each for layer in layers[1:] for each in (Relu(), layer)]
    task = task_of(tuple(layers), shape, sizes=(17, 9, 12, 17), batch=batch)
    lr = 0.001 if isinstance(optimiser, Adam) else 0.05
    jobs = [
        job(task, k, steps=6 + 2 * k, lr=lr, optimiser=optimiser, ragged=ragged) for k in range(4)
    ]
    together, executor = Batched(task).run(jobs), Batched(task)
    assert same([executor.run([one])[0] for one in jobs], together)
    assert same(executor.run(jobs[:2]) + executor.run(jobs[2:]), together)
    assert same(Batched(task, 2, memory=1).run(jobs), together)


def test_the_norm_of_a_models_gradients_does_not_know_its_neighbours():
    generator = torch.Generator().manual_seed(0)
    for shapes in ([(3,), (33, 100)], [(1,), (10, 1)], [(8, 3, 5, 5), (8,), (10, 200)]):
        together = [torch.randn(7, *shape, generator=generator) for shape in shapes]
        norms = norm_of(together, stacked=True)
        assert all(
            torch.equal(norm_of([g[i : i + 1] for g in together], True), norms[i : i + 1])
            for i in range(7)
        )
        assert norms[0] == pytest.approx(
            sum(float(g[0].square().sum()) for g in together) ** 0.5, rel=1e-6
        )


@pytest.mark.parametrize("ragged", [False, True])
def test_what_a_device_does_not_hold_cannot_spoil_it(ragged):
    """The samples of device 0 are no numbers; smaller batches and shorter jobs are filled up with
    something.
    """
    task, spoilt = task_of(MLP), task_of(MLP)
    images = spoilt.data.x_train.copy()
    images[spoilt.data.train_index[0]] = np.nan
    spoilt = replace(spoilt, data=replace(spoilt.data, images=lambda: (images, images)))
    jobs = [job(task, k, steps=3 + k, ragged=ragged) for k in range(5)]
    assert same(Batched(spoilt).run(jobs)[1:], Batched(task).run(jobs)[1:])
    assert not torch.isfinite(Batched(spoilt).run(jobs)[0].w).all()


@pytest.mark.parametrize("devices", [(0,), (0, 1, 3)])
def test_a_common_start_stays_as_it_is_and_every_model_has_memory_of_its_own(devices):
    task = task_of(MLP)
    w, everything = task.initial(), torch.ones(4810, dtype=torch.bool)
    jobs = [job_of(task, Phase(w, everything, 2, 0.1), device=k) for k in devices]
    trained = Batched(task).run(jobs)
    assert torch.equal(w, task.initial())
    apart = [replace(one, phases=(replace(one.phases[0], start=w.clone()),)) for one in jobs]
    assert same(Batched(task).run(apart), trained)
    assert all(one.w.untyped_storage().nbytes() == 4 * 4810 for one in trained)


def test_how_many_steps_are_fetched_at_once_changes_no_byte(monkeypatch):
    task = task_of(MLP)
    jobs = [job(task, k, steps=2 + k, ragged=k > 2) for k in (0, 1, 2, 3, 4)]
    together = Batched(task).run(jobs)
    for size in (1, 30_000):  # bytes: a picture has 256
        monkeypatch.setattr(stacked_sgd, "SAMPLE_BYTES", size)
        assert same(Batched(task).run(jobs), together)


@pytest.mark.parametrize(
    ("model", "lr"), [(CNN, 1e20), ((Linear(33, 1), Relu(), Linear(1, 10)), 1e30)]
)
def test_what_is_shown_of_a_model_that_diverged_does_not_know_how_long_others_go_on(model, lr):
    task = task_of(model, (33,) if isinstance(model, tuple) else (1, 8, 8))
    short, long = job(task, 0, steps=1, lr=lr), job(task, 1, steps=3, lr=lr)
    alone, beside = Batched(task).run([short]), Batched(task).run([short, long])[:1]
    assert same(alone, beside) and np.isfinite(alone[0].loss)
