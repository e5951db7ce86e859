"""FLOPs as torch counts them, weights as Liu (8), (24) count them, bits as (25) and the mask's own."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from edgesim.contracts import Phase
from fl.accounting import Accounting, binary_entropy, step_cost
from fl.local import slot_step
from fl.models import Conv, Flatten, Linear, Pool, build

PARTS = ("features", "classifier", "everything")
SHAPES = [("mlp", (1, 8, 8)), ("digits-cnn", (1, 8, 8)), ("liu-cnn", (1, 28, 28)), ("lenet5-caffe", (3, 32, 32))]


def part_of(layout, part):
    return np.ones(layout.size, dtype=bool) if part == "everything" else layout.role(part)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(("name", "shape"), SHAPES)
def test_flops_are_those_that_torch_counts_in_the_real_step(name, shape, part, bench):
    """A step of the real training loop under torch's counter, on 3 samples."""
    architecture = build(name, shape, 10)
    trained = part_of(architecture.layout, part)
    cost = step_cost(architecture, trained, np.zeros_like(trained))
    task = replace(bench.task, architecture=architecture)
    w = torch.randn(architecture.layout.size) * 0.01
    step = slot_step(task, Phase(w, trained, 1, 0.1), w, torch.from_numpy(trained))
    with FlopCounterMode(display=False) as counter:
        step(torch.rand(3, *shape), torch.tensor([0, 1, 2]))
    assert counter.get_total_flops() == 3 * cost.flops
    assert cost.weights == trained.sum()


def test_a_conv_by_hand():
    """2 filters of 3x3 over 4x4, padded: 16 x 9 x 2 multiply-adds; pooled to 2x2; linear 8 -> 2: 16."""
    from fl.models import Architecture

    a = Architecture("tiny", (1, 4, 4), 2, (Conv(1, 2, 3, 1), Pool(), Flatten(), Linear(8, 2)))
    features, classifier = a.layout.role("features"), a.layout.role("classifier")
    nothing = a.layout.role("none")
    assert step_cost(a, classifier, nothing).flops == 2 * (288 + 16 * 2)  # forward, and by the weights of the last
    assert step_cost(a, features, nothing).flops == 2 * (288 * 2 + 16 * 2)  # and by the activations of the last
    assert step_cost(a, features | classifier, classifier).flops_prunable == 2 * 16 * 3
    assert step_cost(a, nothing, nothing).flops == 0


def test_liu_24_in_weight_steps(bench):
    """tau_v N_v + tau_hat N_u + (1 - rho) tau_u N_u, stage by stage."""
    method = bench.method("liu", personal_steps=3, warmup_steps=2, global_steps=4)
    v, u = 1248, 4810
    for rho in (0.0, 0.3, 1.0):
        stages = method.stages(0, rho)
        assert [s.name for s in stages] == ["personal", "warm-up", "global"]
        assert [s.work.weight_steps for s in stages] == pytest.approx([3 * v, 2 * u, 4 * (1 - rho) * u], rel=1e-12)
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
