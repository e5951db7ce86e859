"""Jobs on random data, for training and evaluation that need no real task."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from edgesim.seeds import Seeds
from fl.contracts import Adam, Job, Payload, Phase, Sgd
from fl.data.samples import Federated
from fl.models.architectures import Architecture, build
from fl.models.layers.learned_layers import Conv, Linear
from fl.models.layers.weightless_layers import Flatten, Relu
from fl.task import LearningTask

OPTIMISERS = [Sgd(), Sgd(0.9), Sgd(0.9, 1e-2, 0.5), Adam()]
MLP, CNN = "mlp", "digits-cnn"
# A stack of these goes through torch.func.vmap: a stride is beyond the batched products.
OTHER = (Conv(1, 8, 3, 1, stride=2), Relu(), Flatten(), Linear(128, 10))


def task_of(model, shape=(1, 8, 8), sizes=(40, 23, 8, 31, 40), batch=8, dtype=np.float32):
    """Random data on one device per size; the last batch of a pass is mostly smaller, device 2 has
    one batch.
    """
    rng = np.random.default_rng(0)
    text, count = len(shape) == 1 and not isinstance(model, tuple), sum(sizes)
    x = rng.integers(0, 10, (count, *shape)) if text else rng.random((count, *shape)).astype(dtype)
    y = rng.integers(0, 10, count)
    each = np.split(np.arange(count), np.cumsum(sizes)[:-1])
    architecture = (
        Architecture("own", shape, 10, model)
        if isinstance(model, tuple)
        else build(model, shape, 10)
    )
    data = Federated(y, y, lambda: (x, x), shape, each, each, tuple("0123456789"))
    return LearningTask(architecture, data, batch, Seeds(0))


def job_of(task, *phases, device=0):
    return Job(device, 0, phases, (), Payload(0.0, 0.0), 0.0)


def job(task, k=0, steps=3, lr=0.1, **more):
    w = task.initial()
    everything = torch.ones(len(w), dtype=torch.bool)
    return job_of(
        task, Phase(**{"start": w, "mask": everything, "steps": steps, "lr": lr} | more), device=k
    )


def same(one, other):
    """Byte for byte, all that training gives."""
    return all(
        torch.equal(a.w, b.w)
        and torch.equal(a.mask, b.mask)
        and np.array([a.loss, a.accuracy]).tobytes() == np.array([b.loss, b.accuracy]).tobytes()
        and (a.collected is b.collected is None or torch.equal(a.collected, b.collected))
        for a, b in zip(one, other, strict=True)
    )


def assert_close(one, other, tolerance=1e-5):
    for a, b in zip(one, other, strict=True):
        assert float((a.w - b.w).abs().max()) <= tolerance * float(b.w.abs().max())
        assert torch.equal(a.mask, b.mask)
        assert a.loss == pytest.approx(
            b.loss, rel=max(tolerance, 1e-6), nan_ok=True
        )  # one by one it is a float32
        assert a.accuracy == pytest.approx(b.accuracy, abs=1e-6, nan_ok=True)
