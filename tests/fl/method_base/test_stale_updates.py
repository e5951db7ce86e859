"""Updates that started from an older version: moved, weighted, refused."""

from dataclasses import dataclass, replace

import pytest
import torch

from fl.contracts import STALENESS, Job, Payload, Sent, Trained
from fl.executors.deferred_training import Trainer
from fl.method_base.aggregation import mean_over_holders
from fl.method_base.method import bind
from fl.method_base.stale_updates import MovedUpdate, WeightedUpdate
from fl.methods import available, resolve
from fl.methods.fedavg import FedAvg
from tests.fl.conftest import view_of


class Done:
    """An update that is trained."""

    weight = 1.0

    def __init__(self, w):
        self.job = Job(0, 0, (), (), Payload(0.0, 0.0), 0.0)
        self.trained = Trained(tensor(w), torch.ones(len(w), dtype=torch.bool), 0.0)

    def result(self):
        return self.trained


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def buffered(now, batch, shared=(True,), samples=None):
    """The mean of some (weight, trained, base), as FedAvg takes it."""
    moved = [MovedUpdate(Done([w]), s, tensor([now]), tensor([base]), torch.tensor(shared))
             for s, w, base in batch]  # fmt: skip
    sent = [Sent(each.result().w, torch.tensor([True])) for each in moved]
    return float(mean_over_holders(tensor([now]), sent, samples or [1.0] * len(sent)))


def test_a_buffer_is_the_damped_mean_of_changes():  # FedBuff, with A 10 -> 11 and B 12 -> 13
    assert buffered(12.0, [(2**-0.5, 11.0, 10.0), (1.0, 13.0, 12.0)]) == pytest.approx(
        12.853553, abs=1e-6
    )
    assert buffered(12.0, [(1.0, 11.0, 10.0), (1.0, 13.0, 12.0)]) == 13.0


def test_equally_stale_updates_are_damped_too():
    assert buffered(0.0, [(0.5, 3.0, 1.0), (0.5, 5.0, 1.0)]) == 1.5


def test_samples_weigh_changes_and_do_not_undo_the_damping():
    """w + sum n s d / sum n, never / sum n s: (3 x 1/2 x 2 + 1 x 1/4 x 8) / 4 = 5/4."""
    assert buffered(0.0, [(0.5, 3.0, 1.0), (0.25, 9.0, 1.0)], samples=[3.0, 1.0]) == 1.25


def test_mixing_measures_from_the_model_of_now():  # FedAsync: alpha 0.6, tau 3, w 1, y 3
    assert buffered(1.0, [(0.6 * 0.5, 3.0, 1.0)]) == pytest.approx(1.6)


def test_a_buffer_without_any_weight_leaves_the_model():
    assert buffered(7.0, [(0.0, 3.0, 1.0), (0.0, 5.0, 1.0)]) == 7.0


def test_what_is_the_devices_own_is_not_moved():
    shared = torch.tensor([True, False])
    update = MovedUpdate(Done([2.0, 9.0]), 0.5, tensor([10.0, 0.0]), tensor([0.0, 0.0]), shared)
    assert update.result().w.tolist() == [11.0, 9.0]


def test_a_fresh_update_stays_the_object_that_it_was(bench):
    method = bench.method("fedavg")
    state, update = method.start(), Done([1.0])
    assert method.damped(update, state, state, 1.0) is update
    newer = replace(state, g=1, w=state.w + 1)
    assert isinstance(method.damped(update, newer, state, 0.5), MovedUpdate)
    assert type(bench.method("fedpm").damped(update, newer, state, 0.5)) is WeightedUpdate


@dataclass(frozen=True, eq=False)
class LargestChange(FedAvg):
    """A device sends the one weight that its training moved most."""

    def encode(self, job, trained):
        moved = (trained.w - job.phases[0].start).abs()
        return Sent(trained.w, moved == moved.max())


def test_a_device_encodes_what_it_trained_and_not_what_staleness_leaves(bench):
    """Meanwhile the server has moved another weight by more than the device moves any."""
    method = bind(LargestChange, bench.task, {"lr": 0.05, "local_steps": 1})
    base = method.start()
    (update,) = Trainer(method.task).submit(bench.jobs(method, base, devices=[0]))
    change = update.result().w - base.w
    most = int(change.abs().argmax())
    other = (most + 1) % len(change)
    now = replace(base, g=1, w=base.w.index_add(0, torch.tensor([other]), torch.tensor([10.0])))
    used = method.damped(update, now, base, 0.5)
    after = method.aggregate(now, view_of(bench.task, 1), [used])
    moved = after.w - now.w
    assert moved.nonzero().flatten().tolist() == [most]
    assert float(moved[most]) == pytest.approx(0.5 * float(change[most]), rel=1e-4)


@pytest.mark.parametrize("weight", [1.0, 0.5, None])
@pytest.mark.parametrize("direction", ["delta", "model"])
@pytest.mark.parametrize("name", ["scaffold", "feddyn", "depthfl"])
def test_the_servers_memory_is_the_mean_of_the_devices_with_stale_updates(
    bench, name, direction, weight
):
    """c = mean c_k, and h = mean lam_k, whatever the model takes of an update (None: nothing).

    Devices take turns of unequal length, so that their models are up to seven versions old.
    """
    plain = {"lr": 0.05, "local_steps": 2} | ({} if name == "scaffold" else {"alpha": 0.1})
    method = bench.method(name, **plain)

    def begun(state, k):
        job = bench.jobs(method, state, devices=[k])
        return state, Trainer(method.task).submit(job)[0]

    state = method.start()
    at_work = [begun(state, k) for k in range(4)]
    for k in (0, 1, 0, 2, 1, 0, 3, 0, 3, 2):
        base, update = at_work[k]
        state = method.retain(state, [update])
        view = view_of(bench.task, state.g)
        if weight is None and k != 0:
            state = method.discard(state, view, [update])
        else:
            measured = state if direction == "model" else base
            used = method.damped(update, state, measured, 1.0 if weight is None else weight)
            state = method.aggregate(state, view, [used])
        at_work[k] = begun(state, k)
    mean = sum(state.local.values()) / 4
    memory = state.memo["control"] if name == "scaffold" else 0.1 * state.memo["drift"]
    assert mean.norm() > 0
    assert float((memory[: len(mean)] - mean).norm()) < 1e-5 * float(mean.norm())


@pytest.mark.parametrize("name", available())
def test_every_method_says_what_staleness_does_to_it(name):
    assert vars(resolve(name)).get("stale") in STALENESS
