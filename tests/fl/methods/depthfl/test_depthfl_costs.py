"""The depth rule of DepthFL, and what a depth costs."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from fl.contracts import Grant
from fl.errors import MethodError
from fl.method_base.method import check
from fl.methods import resolve
from fl.training import local_sgd as local
from tests.fl.conftest import view_of


def sized(task, capability=1.0, budget=1.0, g=0):
    """A view in which all devices have that capability and model budget."""
    ones = np.ones(task.devices)
    return replace(view_of(task, g), capability=capability * ones, model_budget=budget * ones)


def job_of(method, state, k=0, g=0, **sizes):
    return method.configure(state, sized(method.task, g=g, **sizes), Grant(k, 0.1, 0.0, 1.0, 1.0))


@pytest.fixture(scope="module")
def cnn(bench):
    """DepthFL on the digits with its three blocks."""
    return bench.method("depthfl", local_steps=2)


# multiply-adds, 2 FLOP each: conv1 (forward, by the weights), head, conv2, head, dense, output (by
# the signals too)
STEP = np.cumsum([4 * 4608 + 6 * 80, 6 * (18432 + 160), 6 * (4096 + 640)])


WEIGHTS = np.cumsum([80 + 90, 16 * 72 + 16 + 170, 64 * 65 + 650])


def test_flops_and_weights_of_each_depth(cnn):
    assert STEP.tolist() == [18_912, 130_464, 158_880] and WEIGHTS.tolist() == [170, 1_508, 6_318]
    assert cnn.shares.tolist() == (np.stack([STEP / STEP[-1], WEIGHTS / WEIGHTS[-1]], 1)).tolist()


@pytest.mark.parametrize(
    ("capability", "budget", "depth"),
    [
        (1.0, 1.0, 3),
        (0.999, 1.0, 2),
        (130_464 / 158_880, 1.0, 2),
        (0.82, 1.0, 1),
        (1 / 16, 1.0, 1),  # at least one block
        (1.0, 0.24, 2),
        (1.0, 0.23, 1),
        (0.5, 0.24, 1),
    ],
)
def test_the_depth_rule(cnn, capability, budget, depth):
    view = sized(cnn.task, capability, budget)
    assert cnn.depth(view, 0) == depth
    assert cnn.kept(None, view, 0).sum() == WEIGHTS[depth - 1]


@given(st.floats(0.01, 1), st.floats(0.01, 1))
def test_nobody_computes_more_than_its_share_unless_one_block_is_more(cnn, z, more):
    depths = [cnn.depth(sized(cnn.task, capability), 0) for capability in (z, max(z, more))]
    assert depths[0] <= depths[1]
    assert depths[0] == 1 or STEP[depths[0] - 1] <= z * STEP[-1]


@pytest.mark.slow
@pytest.mark.parametrize(("capability", "depth"), [(0.5, 1), (0.9, 2), (1.0, 3)])
def test_a_device_is_charged_its_blocks_and_heads(bench, capability, depth):
    method = bench.method("depthfl", local_steps=2, alpha=0)
    job = job_of(method, method.start(), capability=capability)
    (stage,) = job.stages
    assert (
        stage.work.flops == 2 * 16 * STEP[depth - 1]
        and stage.work.weight_steps == 2 * WEIGHTS[depth - 1]
    )
    assert job.payload.bits_up == job.payload.bits_down == 32 * WEIGHTS[depth - 1]
    with FlopCounterMode(display=False) as counter:
        done = local.run(method.task, job)
    assert counter.get_total_flops() == stage.work.flops  # torch's own count of what was trained
    kept = torch.from_numpy(method.nested[depth - 1])
    moved = done.w != method.received(method.start(), 0)
    assert not (moved & ~kept).any() and moved[kept].float().mean() > 0.5
    assert torch.equal(method.encode(job, done).travels, kept)


def test_the_demand_is_what_the_job_costs(cnn):
    view = replace(sized(cnn.task), capability=np.array([1.0, 0.9, 0.5, 0.1]))
    demand = cnn.demand(cnn.start(), view, np.arange(4))
    for place, depth in enumerate((3, 2, 1, 1)):
        left = 1 - demand.rho_min[place]
        assert left * demand.bits_prunable[place] == pytest.approx(32 * WEIGHTS[depth - 1])
        assert left * demand.work_prunable.flops[place] == pytest.approx(2 * 16 * STEP[depth - 1])


def test_there_is_no_width():
    with pytest.raises(MethodError, match="width is no parameter of this method"):
        check(resolve("depthfl"), {"width": 0.5})
