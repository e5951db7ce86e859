"""LotteryFL: what is pruned and when, the rewind, and what travels."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fl.accounting import Accounting
from fl.executors.deferred_training import Trainer
from fl.models.layers.learned_layers import Linear
from tests.fl.conftest import Bench, view_of

PLAIN = {"local_steps": 3, "lr": 0.1}
ALWAYS = {"accuracy_to_prune": 0.0}


@pytest.fixture(scope="module")
def wide(tiny_bench):
    """Makes the method on one layer of so many weights."""
    return lambda inputs, **params: tiny_bench(
        [Linear(inputs, 2, bias=False)], [[1.0] * inputs], [0]
    ).method("lotteryfl", **params)


@pytest.mark.parametrize(("share", "pruned"), [(0.2, [1, 2]), (0.1, [1])])
def test_the_percentile_by_hand(wide, share, pruned):
    """|w| = 1..10 are left: below 2.8 are {1, 2}, below 1.9 is {1}."""
    method = wide(5, prune_share=share)
    w = np.array([3.0, -1, 4, 2, -5, 6, 9, -8, 7, 10])
    mask = method.tightened(np.ones(10, dtype=bool), w)
    assert sorted(np.abs(w[~mask])) == pruned
    assert not (method.tightened(mask, w) & ~mask).any()


def test_of_equal_weights_none_is_pruned(wide):
    assert wide(5).tightened(np.ones(10, dtype=bool), np.full(10, 0.3)).all()


def test_a_model_that_diverged_is_not_pruned(wide):
    """It has no smallest weights; where one is no number all of its layer would go at once."""
    w = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, np.nan])
    assert wide(5).tightened(np.ones(10, dtype=bool), w).all()


@pytest.mark.parametrize(
    ("share", "least", "times", "left"),
    [(0.1, 0.5, 7, 0.478297), (0.2, 0.5, 4, 0.4096), (0.2, 0.1, 11, 0.085899)],
)
def test_how_often_it_prunes_until_too_few_are_left(wide, share, least, times, left):
    method = wide(50_000, prune_share=share, least_rate=least)
    w, mask = np.random.default_rng(0).normal(size=100_000), np.ones(100_000, dtype=bool)
    count = 0
    while method.kept_share(mask) > least:
        mask, count = method.tightened(mask, w * mask), count + 1
    assert count == times and method.kept_share(mask) == pytest.approx(left, abs=1e-4)


def test_never_pruned_is_fedavg_to_the_byte(bench):
    _, fedavg = bench.play("fedavg", **PLAIN)
    method, state = bench.play("lotteryfl", accuracy_to_prune=2.0, **PLAIN)
    assert torch.equal(state.w, fedavg.w)
    assert method.measures(state) == {"kept_weights": 1.0}


def test_a_pruned_device_begins_at_the_initial_values_and_masks_only_shrink(bench):
    method, before = bench.play("lotteryfl", rounds=2, **ALWAYS, **PLAIN)
    (job,) = bench.jobs(method, before, devices=[1])
    (phase,) = job.phases
    initial = bench.task.initial()
    assert torch.equal(phase.start, initial.where(phase.mask, 0.0))
    old = before.local[1]
    assert not (phase.mask & ~old).any() and int(phase.mask.sum()) < int(old.sum())
    still = bench.method("lotteryfl", accuracy_to_prune=2.0, **PLAIN)
    (phase,) = bench.jobs(still, before, devices=[1])[0].phases
    assert torch.equal(phase.mask, old)
    assert torch.equal(phase.start, before.w.where(old, 0.0))


def test_what_nobody_keeps_stays_at_the_server(bench):
    method, state = bench.play("lotteryfl", rounds=1, **ALWAYS, **PLAIN)
    nobody = ~torch.stack(list(state.local.values())).any(dim=0)
    assert nobody.any() and torch.equal(state.w[nobody], method.start().w[nobody])
    pruned = ~state.local[0]
    assert (method.personalise(state, 0)[pruned] == 0).all()


def test_held_out_samples_are_tested_and_without_them_those_that_are_trained_with(bench):
    method = bench.method("lotteryfl")
    assert method.tested_samples(1).tolist() == bench.task.data.train_index[1].tolist()
    held = [index[:3] for index in bench.task.data.train_index]
    apart = Bench(replace(bench.task, data=replace(bench.task.data, validation_index=held)))
    method = apart.method("lotteryfl")
    assert method.tested_samples(1).tolist() == held[1].tolist()
    probe, _ = bench.jobs(method, method.start(), devices=[1])[0].stages
    assert probe.name == "probe"
    assert probe.work.flops == 3 * 2 * sum(bench.task.architecture.macs.values())


def test_down_goes_the_old_submodel_and_up_the_new_one_with_its_mask_once(bench):
    task = replace(bench.task, accounting=Accounting(mask_overhead="bitmap"))
    counted = Bench(task)
    method = counted.method("lotteryfl", **ALWAYS, **PLAIN)
    state = counted.round(method, method.start())
    (job,) = counted.jobs(method, state, devices=[0])
    demand = method.demand(state, view_of(task, 1), np.array([0]))
    places = int(method.weight_places.sum())
    old, new = int(state.local[0].sum()), int(job.phases[0].mask.sum())
    assert job.payload.bits_down == 32 * old == demand.bits_down[0]
    assert job.payload.bits_up == 32 * new + places
    planned = (1 - demand.rho_min[0]) * demand.bits_prunable[0]
    assert planned == pytest.approx(job.payload.bits_up)
    (update,) = Trainer(task).submit([job])
    assert int(method.encode(job, update.result()).travels.sum()) == new
    quiet = counted.method("lotteryfl", accuracy_to_prune=2.0, **PLAIN)
    assert counted.jobs(quiet, state, devices=[0])[0].payload.bits_up == 32 * old
