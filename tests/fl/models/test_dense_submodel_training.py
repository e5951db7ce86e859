"""Submodels trained as smaller dense models."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from edgesim.seeds import Seeds
from fl.contracts import Grant, Job, Payload, Phase, Sgd
from fl.data.datasets import load, spread
from fl.masks import unit_masks as masks
from fl.models.architectures import build
from fl.models.dense_submodel import dense_submodel
from fl.task import LearningTask
from fl.training import local_sgd as local
from tests.fl.conftest import Bench, view_of

LR = 0.1


def job_of(*phases, device=0):
    return Job(device, 0, phases, (), Payload(0.0, 0.0), 0.0)


@pytest.mark.parametrize("width", [0.25, 0.5, 0.7])
@pytest.mark.parametrize("optimiser", [Sgd(), Sgd(0.9, 1e-3, 1.0)])
def test_the_cut_out_model_trains_as_the_masked_one(bench, width, optimiser):
    """fl.training.local_sgd trains slices; with a hook that does nothing it must train the whole
    masked model instead.
    """
    layout, w = bench.task.layout, bench.task.initial()
    mask = torch.from_numpy(layout.expand(masks.random(layout, width, np.random.default_rng(1))))
    assert dense_submodel(layout, mask) is not None
    phase = Phase(w, mask, 5, LR, submodel=mask, optimiser=optimiser)
    sliced = local.run(bench.task, job_of(phase))
    masked = local.run(bench.task, job_of(replace(phase, project=lambda w, velocity: None)))
    assert torch.allclose(sliced.w, masked.w, atol=1e-6)
    assert sliced.loss == pytest.approx(masked.loss, rel=1e-5) and sliced.accuracy == pytest.approx(
        masked.accuracy
    )
    assert torch.equal(sliced.w[~mask], w[~mask]) and not torch.allclose(sliced.w[mask], w[mask])


def test_only_structured_masks_are_cut_out(bench):
    layout = bench.task.layout
    whole = torch.ones(layout.size, dtype=torch.bool)
    scattered = torch.from_numpy(np.random.default_rng(0).random(layout.size) < 0.5)
    rows = torch.from_numpy(layout.expand(masks.prefix(layout, 0.5), rows=True))
    half = dense_submodel(layout, torch.from_numpy(layout.expand(masks.prefix(layout, 0.5))))
    assert (
        dense_submodel(layout, whole) is None
        and dense_submodel(layout, scattered) is None
        and dense_submodel(layout, rows) is None
    )
    assert (
        half.layout.size == len(half.index) == int(layout.expand(masks.prefix(layout, 0.5)).sum())
    )


@pytest.mark.parametrize(
    "name", ["shakespeare-lstm", "resnet18", "vgg11", "spafl-conv4", "lenet5-caffe", "vit"]
)
def test_prefixes_of_every_model_are_cut_out(name):
    """Embeddings and shortcuts too: the dense_submodel has the very coordinates of the mask."""
    text, shape = (
        name == "shakespeare-lstm",
        (1, 28, 28) if name == "lenet5-caffe" else (3, 32, 32),
    )
    layout = build(name, (80,) if text else shape, 65 if text else 10).layout
    mask = layout.expand(masks.prefix(layout, 0.5, rounding="up"))
    smaller = dense_submodel(layout, torch.from_numpy(mask))
    assert smaller is not None and np.array_equal(
        np.sort(smaller.index.numpy()), np.flatnonzero(mask)
    )


def test_a_scattered_submodel_trains_where_it_is_and_computes_with_nothing_else(tiny_bench):
    """Logits W x with x = (1, 2), W = [[1, 2], [3, 4]]; without w_01: logits (1, 11), p_1 =
    0.9999546.
    """
    from fl.models.layers.learned_layers import Linear

    task = tiny_bench((Linear(2, 2, bias=False),), [[1.0, 2.0]], [0]).task
    submodel = torch.tensor([True, False, True, True])
    done = local.run(
        task, job_of(Phase(torch.tensor([1.0, 2.0, 3.0, 4.0]), submodel, 1, LR, submodel=submodel))
    )
    p1 = 1 / (1 + np.exp(-10))
    assert done.w.tolist() == pytest.approx(
        [1 + LR * p1, 2.0, 3 - LR * p1, 4 - 2 * LR * p1], abs=1e-5
    )
    assert done.accuracy == 0.0


def test_half_the_width_trains_in_less_time_than_the_whole():
    """Not a benchmark: the smaller model must do a fraction of the work, counted by
    torch itself.
    """
    from torch.utils.flop_counter import FlopCounterMode

    data = spread(load("digits"), 2, Seeds(0), kind="iid")
    bench = Bench(LearningTask(build("digits-cnn", data.input_shape, 10), data, 32, Seeds(0)))
    counted = {}
    for width in (1.0, 0.5):
        method = bench.method("heterofl", width=width, local_steps=1)
        job = method.configure(method.start(), view_of(bench.task), Grant(0, 0.5, 0.0, 1.0, 1.0))
        with FlopCounterMode(display=False) as counter:
            local.run(bench.task, job)
        counted[width] = counter.get_total_flops()
        assert counted[width] == pytest.approx(sum(stage.work.flops for stage in job.stages))
    assert counted[0.5] < 0.35 * counted[1.0]
