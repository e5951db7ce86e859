"""PruneFL: the choice of a mask, the gradients that it needs, and what they cost."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch

from fl.accounting import Accounting
from fl.errors import MethodError
from fl.executors.deferred_training import Trainer
from fl.methods.prunefl import PruneFL, largest_ratio
from fl.training.local_sgd import samples
from tests.fl.conftest import Bench, view_of

PLAIN = {"local_steps": 3, "lr": 0.1}


def test_gamma_by_hand():
    """c = 2, kept g^2 6 in time 1; candidates 4, 3, 2, 1: 2, 2.5, 2.6, then 2 < 2.6."""
    chosen = largest_ratio(np.array([2.0, 4.0, 1.0, 3.0]), np.ones(4), 6.0, 3.0)
    assert chosen.tolist() == [1, 3]


def test_a_long_fixed_time_keeps_all_that_has_a_gradient_and_none_the_best_alone():
    gains, times = np.array([4.0, 0.0, 2.0]), np.array([1.0, 1.0, 2.0])
    assert largest_ratio(gains, times, 0.0, 1e12).tolist() == [0, 2]
    assert largest_ratio(gains, times, 0.0, 0.0).tolist() == [0]


def test_the_greedy_choice_is_the_best_of_all_subsets():
    rng = np.random.default_rng(0)
    for _ in range(100):
        gains, times = rng.exponential(size=7), rng.exponential(size=7)
        gain, time = rng.exponential(size=2)

        def ratio(each, g=gains, t=times, gain=gain, time=time):
            return (gain + g[list(each)].sum()) / (time + t[list(each)].sum())

        best = max(ratio(c) for n in range(8) for c in combinations(range(7), n))
        assert ratio(largest_ratio(gains, times, gain, time)) == pytest.approx(best)


def test_the_share_of_candidates_halves(bench):
    method = bench.method("prunefl")
    assert method.share_of_candidates(50) == pytest.approx(0.298962, abs=1e-6)
    assert method.share_of_candidates(5000) == pytest.approx(0.212132, abs=1e-6)


def test_a_method_made_of_it_may_choose_its_devices(bench):
    class Chooses(PruneFL):
        def select(self, state, view):
            return view.idle[:2]

    assert bench.method("prunefl").leaves_choice_open()
    assert not Chooses(task=bench.task).leaves_choice_open()


def test_a_full_mask_is_fedavg_to_the_byte(bench):
    _, fedavg = bench.play("fedavg", **PLAIN)
    method, state = bench.play("prunefl", **PLAIN)
    assert torch.equal(state.w, fedavg.w) and not state.memo
    assert torch.equal(method.personalise(state, 0), state.w)


@pytest.fixture(scope="module")
def pruned(bench):
    """The method, and the state after two rounds, of which each chose a mask."""
    return bench.play("prunefl", rounds=2, reconfigure_every=1, **PLAIN)


def test_what_is_left_out_computes_nothing_and_is_kept_at_the_server(bench, pruned):
    method, state = pruned
    mask = state.memo["mask"]
    assert 0.5 < method.measures(state)["kept_weights"] < 1
    assert (state.w[~mask] != 0).any() and (method.personalise(state, 1)[~mask] == 0).all()
    after = bench.round(method, state)
    assert torch.equal(after.w[~mask], state.w[~mask])
    assert not torch.equal(after.memo["mask"], mask)


def test_the_gradient_of_one_step_also_where_the_mask_leaves_out(bench, pruned):
    method, state = pruned
    once = bench.method("prunefl", reconfigure_every=1, local_steps=1, lr=0.1)
    (job,) = bench.jobs(once, state, devices=[0])
    (update,) = Trainer(bench.task).submit([job])
    w = method.personalise(state, 0).clone().requires_grad_(True)
    images, labels = bench.task.train
    index = torch.from_numpy(samples(bench.task, job.phases[0], job)[0])
    loss = torch.nn.functional.cross_entropy(
        bench.task.architecture.logits(w, images[index]), labels[index]
    )
    (gradient,) = torch.autograd.grad(loss, w)
    found = torch.from_numpy(once._summed_gradient(update))
    left_out = ~state.memo["mask"]
    assert torch.allclose(found.float(), gradient, atol=1e-5)
    assert gradient[left_out].abs().max() > 1e-3


def test_the_next_mask_follows_from_the_squares_of_summed_gradients_by_weight(bench, pruned):
    method = bench.method("prunefl", reconfigure_every=1, weighting="samples", **PLAIN)
    state, view = pruned[1], view_of(bench.task, 2)
    updates = Trainer(bench.task).submit(bench.jobs(method, state))
    after = method.aggregate(state, view, updates)
    w = method.personalise(state, 0).double()
    squares = sum(
        float(view.samples[u.job.device]) * ((w - u.result().w.double()) / 0.1).square()
        for u in updates
    )
    times = method.times(view, [u.job.device for u in updates])
    mask = method.reconfigured(
        state.memo["mask"].numpy(), after.w.numpy(), squares.numpy(), times, 2
    )
    assert np.array_equal(after.memo["mask"].numpy(), mask)


def test_between_reconfigurations_only_the_mask_is_trained_and_charged(bench, pruned):
    _, state = pruned
    task = replace(bench.task, accounting=Accounting(mask_overhead="bitmap"))
    counted = Bench(task)
    method = counted.method("prunefl", reconfigure_every=2, **PLAIN)
    kept, size = int(state.memo["mask"].sum()), bench.task.layout.size
    after_change, later = replace(state, g=2), replace(state, g=3)
    (plain,) = counted.jobs(method, after_change, devices=[0])
    places = int(method.weight_places.sum())
    assert (plain.payload.bits_down, plain.payload.bits_up) == (32 * kept + places, 32 * kept)
    (due,) = counted.jobs(method, later, devices=[0])
    assert due.payload.bits_down == 32 * kept
    assert due.payload.bits_up == 32 * kept + 32 * size
    assert due.stages[0].work.flops > plain.stages[0].work.flops
    for job, state_of in ((plain, after_change), (due, later)):
        demand = method.demand(state_of, view_of(task, state_of.g), np.array([0]))
        planned = (1 - demand.rho_min[0]) * demand.bits_prunable[0]
        assert planned == pytest.approx(job.payload.bits_up)
    (update,) = Trainer(task).submit([plain])
    assert int(method.encode(plain, update.result()).travels.sum()) == kept


def test_a_mask_is_sent_only_where_it_has_changed(bench):
    """Where nobody arrives in a round in which a mask is due, the old one stays."""
    task = replace(bench.task, accounting=Accounting(mask_overhead="bitmap"))
    method = Bench(task).method("prunefl", reconfigure_every=1, **PLAIN)
    state = method.start()
    silent = method.aggregate(state, view_of(task), [])
    (job,) = Bench(task).jobs(method, silent, devices=[0])
    assert job.payload.bits_down == 32 * task.layout.size
    pruned = Bench(task).round(method, state)
    again = method.aggregate(pruned, view_of(task, 1), [])
    for each, places in ((pruned, int(method.weight_places.sum())), (again, 0)):
        (job,) = Bench(task).jobs(method, each, devices=[0])
        assert job.payload.bits_down == 32 * int(pruned.memo["mask"].sum()) + places


def test_an_older_mask_is_sent_again_after_a_failure_of_the_server(bench):
    task = replace(bench.task, accounting=Accounting(mask_overhead="bitmap"))
    method = Bench(task).method("prunefl", reconfigure_every=2, **PLAIN)
    states = [method.start()]
    for _ in range(5):  # masks are chosen at the end of rounds 1 and 3
        states.append(Bench(task).round(method, states[-1]))
    weights = 32 * int(states[3].memo["mask"].sum())
    places = int(method.weight_places.sum())
    for now, sent in ((states[3], 0), (states[5], places)):
        (job,) = Bench(task).jobs(method, method.recovered(states[2], now), devices=[0])
        assert job.payload.bits_down == weights + sent


def test_a_slower_link_makes_every_weight_dearer(bench):
    method, view = bench.method("prunefl"), view_of(bench.task)
    slow = replace(view, rate_bps=view.rate_bps / 2)
    here, there = (method.times(each, [0, 1]) for each in (view, slow))
    assert np.allclose(there - here, 2 * 32 * 2)  # both ways, shared by two, 1 bit/s less


def test_one_device_prunes_alone_at_first(bench):
    method = bench.method("prunefl", rounds_alone=2, **PLAIN)
    state, masks = method.start(), []
    for _ in range(3):
        chosen = method.select(state, view_of(bench.task, state.g))
        masks.append((chosen.tolist(), method.measures(state)["kept_weights"]))
        state = bench.round(method, state, devices=chosen.tolist())
    assert [chosen for chosen, _ in masks] == [[0], [0], [0, 1, 2, 3]]
    assert masks[0][1] == 1 > masks[1][1] > masks[2][1] == method.measures(state)["kept_weights"]


def test_momentum_is_refused(bench):
    with pytest.raises(
        MethodError, match=r"momentum is 0\.9, but sums of gradients need plain SGD"
    ):
        bench.method("prunefl", momentum=0.9)
