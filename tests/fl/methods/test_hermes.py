"""Hermes: the mean over what all keep, the group lasso, and what is pruned."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fl.contracts import Trained
from fl.models.layers.learned_layers import Linear
from fl.models.layers.weightless_layers import Relu
from tests.fl.conftest import view_of

PLAIN = {"local_steps": 3, "lr": 0.1}


def returned(bench, method, state, results):
    """Updates with these weights and masks, and the state after them."""
    jobs = bench.jobs(method, state, devices=range(len(results)))
    updates = [
        SimpleNamespace(
            job=job,
            result=lambda w=w, m=m: Trained(
                torch.tensor(w), torch.tensor(m, dtype=torch.bool), 0.0
            ),
        )
        for job, (w, m) in zip(jobs, results, strict=True)
    ]
    view = view_of(bench.task, state.g)
    return method.aggregate(method.retain(state, updates), view, updates)


@pytest.fixture(scope="module")
def three(tiny_bench):
    """A bench of one layer with three weights, of two devices."""
    return tiny_bench([Linear(1, 3, bias=False)], [[1.0]] * 2, [0, 1], classes=3)


def test_only_what_both_keep_is_averaged_by_hand(three):
    """(2, 4, .) and (6, ., 8): the first entry becomes 4, all else stays at its device."""
    method = three.method("hermes")
    start = replace(method.start(), w=torch.tensor([1.0, 1.0, 1.0]))
    after = returned(three, method, start, [([2.0, 4, 0], [1, 1, 0]), ([6.0, 0, 8], [1, 0, 1])])
    assert method.personalise(after, 0).tolist() == [4, 4, 0]
    assert method.personalise(after, 1).tolist() == [4, 0, 8]
    assert after.w.tolist() == [4, 1, 1]


def test_disjoint_masks_share_nothing_and_one_device_keeps_its_model(three):
    method = three.method("hermes")
    start = replace(method.start(), w=torch.tensor([1.0, 1.0, 1.0]))
    apart = returned(three, method, start, [([2.0, 4, 0], [1, 1, 0]), ([0.0, 0, 8], [0, 0, 1])])
    assert method.personalise(apart, 0).tolist() == [2, 4, 0] and apart.w.tolist() == [1, 1, 1]
    alone = returned(three, method, start, [([2.0, 4, 0], [1, 1, 0])])
    assert method.personalise(alone, 0).tolist() == [2, 4, 0]
    assert method.personalise(alone, 1).tolist() == [2, 4, 1]  # it was never asked


def test_a_device_that_was_not_there_gets_the_means_when_it_is_asked(three):
    method = three.method("hermes")
    start = replace(method.start(), w=torch.tensor([1.0, 1.0, 1.0]))
    both = returned(three, method, start, [([2.0, 4, 0], [1, 1, 0]), ([6.0, 0, 8], [1, 0, 1])])
    later = returned(three, method, both, [([9.0, 5, 0], [1, 1, 0])])
    assert method.personalise(later, 1).tolist() == [4, 0, 8]
    assert method.received(later, 1).tolist() == [9, 0, 8]


def test_never_pruned_and_without_the_lasso_is_fedavg_to_the_byte(bench):
    _, fedavg = bench.play("fedavg", **PLAIN)
    method, state = bench.play("hermes", accuracy_to_prune=2.0, lasso=0.0, **PLAIN)
    assert torch.equal(state.w, fedavg.w)
    assert all(torch.equal(method.personalise(state, k), state.w) for k in range(4))


def test_the_gradient_of_the_group_lasso(tiny_bench):
    """lasso w / |w| by unit, 0 for a unit of zeros and for the output layer."""
    bench = tiny_bench(
        [Linear(2, 2, bias=False), Relu(), Linear(2, 2, bias=False)], [[1.0, 2.0]], [0]
    )
    method = bench.method("hermes", lasso=0.5)
    w = torch.tensor([3.0, 4.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0], requires_grad=True)
    (gradient,) = torch.autograd.grad(method._group_lasso(w), w)
    assert gradient.tolist() == pytest.approx([0.3, 0.4, 0, 0, 0, 0, 0, 0])


def test_the_units_with_the_smallest_sums_go(tiny_bench):
    layers = [Linear(1, 10, bias=False), Relu(), Linear(10, 2, bias=False)]
    method = tiny_bench(layers, [[1.0]], [0]).method("hermes", prune_share=0.2)
    w = np.concatenate([[3.0, -1, 4, 2, -5, 6, 9, -8, 7, 10], np.ones(20)])
    mask = method.tightened(np.ones(30, dtype=bool), w)
    assert np.flatnonzero(~mask[:10]).tolist() == [1, 3]  # |w| = 1, 2, below 2.8
    assert mask[10:].reshape(2, 10).all(axis=0).tolist() == mask[:10].tolist()
    again = method.tightened(mask, w)
    assert not (again & ~mask).any() and (~again[:10]).sum() == 4  # 3 and 4, below 4.4 of 3..10
    w[3] = np.nan  # a model that diverged has no smallest sums
    assert method.tightened(np.ones(30, dtype=bool), w).all()


def test_it_sends_the_kept_units_and_tests_first(bench):
    method, state = bench.play("hermes", rounds=1, accuracy_to_prune=0.0, **PLAIN)
    (job,) = bench.jobs(method, state, devices=[0])
    old, new = method.held(state, 0), job.phases[0].mask
    assert job.payload.bits_down == 32 * int(old.sum())
    assert job.payload.bits_up == 32 * int(new.sum()) < job.payload.bits_down
    assert [stage.name for stage in job.stages] == ["probe", "train"]
    assert method.measures(state)["kept_weights"] == method.kept_share(old) < 1
