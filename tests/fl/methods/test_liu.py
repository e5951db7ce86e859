"""Liu, Algorithm 1: what is trained, sent, kept."""

import numpy as np
import pytest
import torch

from fl.contracts import View
from fl.executors.deferred_training import Trainer
from tests.fl.conftest import view_of

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


def test_a_pruned_weight_counts_as_not_having_moved(bench):
    """Mean over all: where n of 4 keep a weight it moves n / 4 of the mean over those holders."""
    params = {"personal_steps": 1, "global_steps": 2}
    method = bench.method("liu", **params)
    everyone = bench.method("liu", pruned_counts="all", **params)
    start, view = method.start(), view_of(bench.task)
    updates = Trainer(bench.task).submit(bench.jobs(method, start, rho=0.5))
    holders = sum(method.encode(u.job, u.result()).travels.double() for u in updates)
    moved = method.aggregate(start, view, updates).w.double() - start.w.double()
    over_all = everyone.aggregate(start, view, updates).w.double() - start.w.double()
    assert torch.allclose(over_all, moved * holders / 4, atol=1e-7)
    assert 0 < holders[holders > 0].min() < 4
