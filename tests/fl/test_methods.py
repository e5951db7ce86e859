"""The methods: reductions to FedAvg (promise 6), what is trained, kept and sent, who is selected."""

import numpy as np
import pytest
import torch

from fl.contracts import View
from fl.executors.trainer import Trainer
from fl.method_base.method import State, bind
from fl.methods import available
from fl.methods.fedavg import FedAvg
from tests.fl.conftest import view_of

FEDAVG = {"local_steps": 3, "lr": 0.1}
PARTIAL = {"personal_steps": 3, "global_steps": 3, "personal_lr": 0.2, "global_lr": 0.1}
WHOLE = {"global_steps": 3, "global_lr": 0.1, "personal_part": "none"}


def same(a: State, b: State) -> bool:
    arrays_a, arrays_b = a.to_arrays()[0], b.to_arrays()[0]
    return arrays_a.keys() == arrays_b.keys() and all(
        arrays_a[n].tobytes() == arrays_b[n].tobytes() for n in arrays_a
    )


# --- promise 6 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("fedalt", WHOLE),
        ("fedsim", WHOLE),
        ("liu", WHOLE | {"warmup_steps": 4}),
        ("liu", WHOLE | {"update": "simultaneous"}),
        ("pruning-only", FEDAVG | {"warmup_steps": 2}),
    ],
)
def test_nothing_personal_and_nothing_pruned_is_fedavg_to_the_byte(bench, name, params):
    _, fedavg = bench.play("fedavg", **FEDAVG)
    method, state = bench.play(name, rho=0.0, **params)
    assert same(state, fedavg)
    assert not torch.equal(state.w, method.start().w)


@pytest.mark.parametrize(
    ("plain", "update"), [("fedalt", "alternating"), ("fedsim", "simultaneous")]
)
@pytest.mark.parametrize("warmup", [1, 5])
def test_nothing_pruned_is_personalisation_only(bench, plain, update, warmup):
    _, expected = bench.play(plain, **PARTIAL)
    _, state = bench.play("liu", rho=0.0, update=update, warmup_steps=warmup, **PARTIAL)
    assert same(state, expected)


def test_the_pruning_of_liu_without_a_personal_part_is_pruning_only(bench):
    _, a = bench.play("liu", rho=0.5, **WHOLE)
    _, b = bench.play("pruning-only", rho=0.5, **FEDAVG)
    assert same(a, b)


def test_methods_differ_where_they_should(bench):
    states = [
        bench.play(n, rho=r, **p)[1]
        for n, r, p in [("fedalt", 0, PARTIAL), ("fedsim", 0, PARTIAL), ("liu", 0.5, PARTIAL)]
    ]
    assert not same(states[0], states[1])
    assert not same(states[0], states[2])


# --- pruning ---------------------------------------------------------------------------------------------------------


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
    """A weight that device 0 prunes in one round may be kept by it in the next: u is received whole."""
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


KEEP = {"fedalt", "fedsim", "liu", "ditto", "fedper", "fedrep"}  # their personal weights
KEEP |= {"fedlps", "spafl", "local"}  # the whole model with its scores or thresholds
KEEP |= {
    "fedspa",
    "refl",
    "depthfl",
}  # its next mask; the update that it still has to send; its linear term


@pytest.mark.parametrize("name", available())
def test_the_server_never_hears_of_what_a_late_device_trained_and_the_device_keeps_it(bench, name):
    method = bench.method(name, participants=4)
    state, view = method.start(), view_of(bench.task)
    updates = Trainer(bench.task).submit(bench.jobs(method, state))
    after = method.aggregate(method.retain(state, updates), view, updates[:3])
    without = method.aggregate(method.retain(state, updates[:3]), view, updates[:3])
    assert torch.equal(after.w, without.w)
    assert (3 in after.local) == (name in KEEP) and 3 not in without.local
    if name in KEEP:
        done = updates[3].result()
        assert torch.equal(
            after.local[3], done.w - state.w if name == "refl" else method.local_part(done)
        )
        assert not torch.equal(done.w, method.received(state, 3))


# --- who, and with what weight ---------------------------------------------------------------------------------------


def test_selection_is_uniform_keyed_and_of_idle_devices(bench):
    method = bench.method("fedavg", participants=2)
    idle = np.array([3, 0, 1])

    def chosen(g):
        return method.select(
            None, View(g, 0.0, idle, None, None, bench.task.samples, 1.0, None, None)
        ).tolist()

    rounds = [chosen(g) for g in range(300)]
    assert rounds == [chosen(g) for g in range(300)]
    assert {tuple(r) for r in rounds} == {(0, 1), (0, 3), (1, 3)}
    assert (
        min(rounds.count(pair) for pair in ([0, 1], [0, 3], [1, 3])) > 60
    )  # 100 expected, 8 deviation
    everybody = bench.method("fedavg").select(
        None, View(0, 0.0, idle, None, None, None, 1.0, None, None)
    )
    assert everybody.tolist() == [0, 1, 3]


def test_weighting_by_samples(bench):
    method = bench.method("fedavg", weighting="samples", **FEDAVG)
    state = method.start()
    view = View(0, 0.0, np.arange(4), None, None, np.array([1, 0, 3, 0]), 1.0, None, None)
    updates = Trainer(bench.task).submit(bench.jobs(method, state, devices=[0, 2]))
    expected = (updates[0].result().w.double() + 3 * updates[1].result().w.double()) / 4
    assert torch.allclose(method.aggregate(state, view, updates).w.double(), expected, atol=1e-7)


class RatePerWeight(FedAvg):
    """A user's own: a rate of each weight."""

    def rate(self, g):
        return torch.full((self.layout.size,), self.lr)


def test_devices_share_a_phase_only_where_it_is_the_same(bench):
    plain, own = bench.method("fedavg"), bind(RatePerWeight, bench.task, {})
    for method, shared in ((plain, True), (own, False)):
        w, everything = (
            torch.zeros(method.layout.size),
            torch.ones(method.layout.size, dtype=torch.bool),
        )
        first, second = (method.training(w, everything, 0, k) for k in (0, 1))
        assert (first is second) == shared
        assert method.training(w.clone(), everything, 0, 1) is not first
        assert method.training(w, everything, 0, 1, steps=9).steps == 9
    decays = bench.method("fedavg", lr_decay=0.5)
    assert [decays.training(w, everything, g, 0).lr for g in (0, 1, 0)] == [
        decays.lr,
        0.5 * decays.lr,
        decays.lr,
    ]
