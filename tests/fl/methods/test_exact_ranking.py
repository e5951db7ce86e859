"""Pruning by the exact importance of Liu, eq. (19), as part of a round."""

from dataclasses import replace

import pytest
import torch

from fl.errors import MethodError
from fl.executors.batched import Batched
from fl.executors.one_by_one import OneByOne
from fl.models.architectures import build
from fl.models.layers.learned_layers import Linear
from fl.objective import ERRORS, Objective
from tests.fl.conftest import Bench

SQUARED = Objective(ERRORS["squared-error"], plain=False, labels=False)
WHOLE = {"personal_part": "none", "global_steps": 1, "global_lr": 1e-6, "rho": 0.5}


@pytest.fixture
def linear(tiny_bench):
    """Makes a bench with w_1 x_1 + w_2 x_2, the squared error, and one device."""

    def make(x, y):
        made = tiny_bench((Linear(2, 1, bias=False),), x, y, classes=1, per_device=len(y))
        return Bench(replace(made.task, objective=SQUARED, batch_size=1))

    return make


def kept(bench, w, **params):
    """Which weights a device keeps, of the received w."""
    method = bench.method("liu", **WHOLE, **params)
    state = replace(method.start(), w=torch.tensor(w))
    (job,) = bench.jobs(method, state, rho=0.5)
    return OneByOne(bench.task).run([job])[0].mask.tolist()


def test_the_two_rankings_by_hand(linear):
    """w = (3, 0.1), x = (1, 3), target 0: the gradient is 6.6 x, so that (20) keeps w_2.

    F = 10.89; without w_1 it is 0.09, without w_2 it is 9: (19) keeps w_1.
    """
    bench = linear([[1, 3]], [0])
    assert kept(bench, [3.0, 0.1]) == [False, True]
    assert kept(bench, [3.0, 0.1], importance="exact") == [True, False]


def test_several_batches_rank_by_their_mean_loss(linear):
    """w = (1, 1). x = (1, 1), target 0: 4, without either 1. x = (1, 0), target 3: 4, 9 and 4.

    The mean changes by 1 and -1.5, so that w_2 stays; the mean of absolute changes is 4 and 1.5.
    """
    bench = linear([[1, 1], [1, 0]], [0, 3])
    assert kept(bench, [1.0, 1.0], importance="exact", warmup_steps=2) == [False, True]


def test_weights_of_equal_size_rank_alike_to_first_order(linear):
    """|g_j w_j| and |g_j| have one order where all |w_j| are equal and small."""
    bench = linear([[1, 3]], [1])
    for w in ([1e-3, 1e-3], [-1e-3, 1e-3]):
        assert kept(bench, w, importance="exact") == kept(bench, w) == [False, True]


def test_a_batch_costs_a_forward_pass_for_each_weight_and_one_more(linear):
    """2 weights: 3 passes of 4 FLOP; a step has 8, so that it is 1.5 steps on 2 weights."""
    method = linear([[1, 3]], [0]).method("liu", importance="exact", warmup_steps=2, **WHOLE)
    (warmup,) = [stage for stage in method.stages(0, 0.5) if stage.name == "warm-up"]
    assert (warmup.work.flops, warmup.work.weight_steps) == (2 * 12.0, 2 * 1.5 * 2)


@pytest.mark.slow
def test_received_weights_are_pruned_and_executors_agree(bench):
    method = bench.method("liu", importance="exact", rho=0.7)
    state = method.start()
    jobs = bench.jobs(method, state, rho=0.7, devices=[0, 1])
    alone = OneByOne(bench.task).run(jobs)
    for one, stacked, threaded in zip(
        alone, Batched(bench.task).run(jobs), OneByOne(bench.task, 2).run(jobs), strict=True
    ):
        assert len(one.w) == method.layout.size
        assert int((one.mask & method.shared_mask).sum()) == round(0.3 * 4810)
        for other in (stacked, threaded):
            assert torch.equal(one.w, other.w) and torch.equal(one.mask, other.mask)


def test_a_large_model_is_refused(bench):
    task = replace(bench.task, architecture=build("liu-cnn", (1, 28, 28), 10))
    with pytest.raises(MethodError, match=r"each of 402,826 prunable weights.* 50,000 at most"):
        Bench(task).method("liu", importance="exact")
