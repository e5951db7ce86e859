"""Liu, Algorithm 1: what is trained, sent, kept."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fl.contracts import Trained, View
from fl.executors.deferred_training import Trainer
from tests.fl.conftest import view_of
from tests.fl.two_neurons import Done

PARTIAL = {"personal_steps": 3, "global_steps": 3, "personal_lr": 0.2, "global_lr": 0.1}


@pytest.mark.parametrize("update", ["alternating", "simultaneous"])
def test_kept_weights_travel_and_personal_ones_are_all_trained(bench, update):
    method = bench.method("liu", update=update, **PARTIAL)
    state = method.start()
    (job,) = bench.jobs(method, state, rho=0.7, devices=[2])
    done = Trainer(bench.task).submit([job])[0].result()
    personal, sent = torch.from_numpy(method.personal()), method.encode(job, done)
    assert int(sent.travels.sum()) == round(0.3 * 4810)
    assert not (sent.travels & personal).any()
    assert (done.w[~sent.travels & ~personal] == 0).all()
    assert (
        done.w[personal] != state.w[personal]
    ).float().mean() > 0.5  # 0.3 if pruned too; dead units do not move


def test_a_warm_up_has_batches_of_its_own(bench):
    method = bench.method("liu")
    (job,) = bench.jobs(method, method.start(), rho=0.5, devices=[0])
    assert [phase.batches for phase in job.phases] == ["personal", "warm-up", "train"]


def test_every_device_starts_from_the_unpruned_model(bench):
    """A weight that device 0 prunes in one round may be kept by it in the next: u is received
    whole.
    """
    method, state = bench.play("liu", rounds=1, rho=0.9, global_lr=0.1, personal_lr=0.1)
    shared = torch.from_numpy(method.shared)
    assert (state.w[shared] != 0).float().mean() > 0.99
    assert torch.equal(method.personalise(state, 1)[shared], state.w[shared])


def test_late_devices_keep_their_personal_part(bench):
    method = bench.method("liu", **PARTIAL)
    state = method.start()
    updates = Trainer(bench.task).submit(bench.jobs(method, state, rho=0.5, devices=[0, 1]))
    view = View(0, 0.0, np.arange(4), np.ones(4), np.ones(4), bench.task.samples, 1.0, None, None)
    after = method.aggregate(method.retain(state, updates), view, updates[:1])
    assert sorted(after.local) == [0, 1]
    assert after.g == 1
    later = method.retain(
        after, Trainer(bench.task).submit(bench.jobs(method, after, rho=0.5, devices=[3]))
    )
    assert sorted(later.local) == [0, 1, 3]
    nobody = method.aggregate(method.retain(state, updates[:1]), view, [])
    assert torch.equal(nobody.w, state.w)
    assert nobody.g == 1


def test_means_of_a_weight_that_some_devices_have_pruned(bench):
    """Old value 1; 3 devices; one keeps the weight and sends 4, two have pruned it: 4, 2 or 4/3.

    A weight that nobody kept is 1, 1 or 0, and the personal part is left alone.
    """
    expected = {"holders": (4, 1), "all": (2, 1), "zeros": (4 / 3, 0)}
    for rule, (kept_once, kept_never) in expected.items():
        method = bench.method("liu", pruned_counts=rule)
        first, second = np.flatnonzero(method.shared)[:2]
        state = replace(method.start(), w=torch.ones(method.layout.size))
        holder = torch.zeros(method.layout.size, dtype=torch.bool)
        holder[first] = True
        masks = [holder, torch.zeros_like(holder), torch.zeros_like(holder)]
        jobs = bench.jobs(method, state, rho=0.5, devices=[0, 1, 2])
        updates = [
            Done(job, Trained(4.0 * mask, mask, 0.0)) for job, mask in zip(jobs, masks, strict=True)
        ]
        w = method.aggregate(state, view_of(bench.task), updates).w
        assert w[first] == pytest.approx(kept_once)
        assert w[second] == pytest.approx(kept_never)
        assert (w[method.personal()] == 1).all()


@pytest.mark.parametrize("from_now", [False, True])
def test_a_zero_for_what_was_pruned_is_damped_as_the_rest_of_an_update(bench, from_now):
    """Downloaded 1, kept and trained to 3, or pruned; half of it counts, and the model is 2 by now.

    Kept 2 + (3 - 1) / 2 = 3, pruned 2 + (0 - 1) / 2 = 1.5; from the model of now (2 + 3) / 2 and 1.
    """
    method = bench.method("liu", pruned_counts="zeros")
    kept, pruned = np.flatnonzero(method.shared)[:2]
    begun = replace(method.start(), w=torch.ones(method.layout.size))
    now = replace(begun, g=1, w=2.0 * begun.w)
    holder = torch.zeros(method.layout.size, dtype=torch.bool)
    holder[kept] = True
    (job,) = bench.jobs(method, begun, rho=0.5, devices=[0])
    update = Done(job, Trained(3.0 * holder, holder, 0.0))
    used = method.damped(update, now, now if from_now else begun, 0.5)
    w = method.aggregate(now, view_of(bench.task), [used]).w
    assert [w[kept], w[pruned]] == ([2.5, 1.0] if from_now else [3.0, 1.5])
