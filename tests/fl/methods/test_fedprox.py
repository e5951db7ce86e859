"""FedProx: the pull of its penalty."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fl.contracts import Grant, Job, Payload
from fl.training import local_sgd as local

LR = 0.1


def job_of(*phases, device=0):
    return Job(device, 0, phases, (), Payload(0.0, 0.0), 0.0)


def test_fedprox_pulls_by_the_distance(tiny_bench):
    """One weight a class, logits (w0, w1), w = (1, 0), received (0, 0): the pull is mu times the
    distance.
    """
    from fl.models.layers.learned_layers import Linear

    bench = tiny_bench((Linear(1, 2, bias=False),), [[1.0]], [0])
    method = bench.method("fedprox", mu=0.5, local_steps=1, lr=LR)
    anchor = torch.zeros(2)
    (phase,) = method.local_update(method.start(), 0, anchor, Grant(0, 1.0, 0.0, 1.0, 1.0))
    p1 = 1 / (1 + np.exp(1.0))
    for distance in (1.0, 2.0):
        pull = local.run(
            bench.task, job_of(replace(phase, start=torch.tensor([distance, distance - 1.0])))
        ).w
        expected = [
            distance - LR * (-p1 + 0.5 * distance),
            distance - 1 - LR * (p1 + 0.5 * (distance - 1)),
        ]
        assert pull.tolist() == pytest.approx(expected, abs=1e-6)
