"""FedP3: who owns which layer, what travels, and which model is used."""

import numpy as np
import pytest
import torch

from fl.errors import MethodError
from fl.executors.deferred_training import Trainer
from fl.models.layers.learned_layers import Conv, Linear
from fl.models.layers.weightless_layers import Flatten
from tests.fl.conftest import view_of

PLAIN = {"local_steps": 3, "lr": 0.1}


@pytest.fixture(scope="module")
def ring(tiny_bench):
    """Layers of 10, 20, 30 and 40 weights and a head of 5, four devices."""
    convolutions = [Conv(2, 5, 1, 0, bias=False), Conv(5, 1, 2, 0, bias=False)]
    hidden = [Linear(3, 10, bias=False), Linear(10, 4, bias=False)]
    layers = [*convolutions, Flatten(), *hidden, Linear(4, 1)]
    return tiny_bench(layers, np.ones((4, 2, 2, 4)), [0, 0, 0, 0], classes=1)


def test_every_layer_has_the_same_number_of_owners(ring):
    method = ring.method("fedp3")
    owned = np.stack([method.owned(k) for k in range(4)])
    assert owned[:, :100].sum(axis=0).tolist() == [2] * 100
    assert not owned[:, 100:].any()
    assert np.flatnonzero(owned[0]).tolist() == list(range(30))
    assert np.flatnonzero(owned[3]).tolist() == [*range(10), *range(60, 100)]


def test_what_travels_by_hand(ring):
    """Down 10 + 20 of its own and 0.9 x 70 = 93 values, 98 with a head; up 10 + 20 + 5 = 35."""
    method = ring.method("fedp3")
    (job,) = ring.jobs(method, method.start(), devices=[0])
    assert int(method.head.sum()) == 5
    assert job.payload.bits_down == 32 * 93  # its head a device initialises itself
    assert job.payload.bits_up == 32 * 35
    demand = method.demand(None, view_of(ring.task), np.array([0]))
    assert (demand.bits_down[0], demand.bits_prunable[0]) == (
        job.payload.bits_down,
        job.payload.bits_up,
    )
    assert job.stages == ring.method("fedavg").stages(0, 0.0)
    start = job.phases[0].start
    assert int((start[30:60] == 0).sum()) == 3 and int((start[60:100] == 0).sum()) == 4
    assert torch.equal(start[:30], method.start().w[:30])


def test_owners_alone_move_a_layer_and_the_head_is_read_by_nobody(bench):
    method = bench.method("fedp3", **PLAIN)
    state = method.start()
    after = bench.round(method, state, devices=[0])
    moved, mine = after.w != state.w, bench.task.tensor(method.owned(0) | method.head)
    assert moved.any() and not (moved & ~mine).any()
    head = bench.task.tensor(method.head)
    assert torch.equal(method.received(after, 0)[head], after.local[0][head])
    for w in (method.received(after, 1), method.personalise(after, 1)):  # it has none yet
        assert torch.equal(w[head], state.w[head]) and not torch.equal(w[head], after.w[head])
    owned = bench.task.tensor(method.owned(0))
    used = method.personalise(after, 0)
    assert torch.equal(used[owned], after.w[owned])
    assert torch.equal(used[~owned], after.local[0][~owned])


def test_owning_all_layers_is_fedavg_but_for_the_head(bench):
    whole = {"layers": 99, "kept_share": 1.0, **PLAIN}
    method, state = bench.play("fedp3", rounds=1, **whole)
    _, fedavg = bench.play("fedavg", rounds=1, **PLAIN)
    assert torch.equal(state.w, fedavg.w)
    _, two = bench.play("fedp3", rounds=2, **whole)
    _, fedper = bench.play("fedper", rounds=2, weighting="uniform", **PLAIN)
    shared = ~bench.task.tensor(method.head)
    assert torch.equal(two.w[shared], fedper.w[shared])


def test_it_sends_what_it_says(bench):
    method = bench.method("fedp3", **PLAIN)
    (update,) = Trainer(bench.task).submit(bench.jobs(method, method.start(), devices=[2]))
    sent = method.encode(update.job, update.result())
    assert 32 * int(sent.travels.sum()) == update.job.payload.bits_up


def test_a_model_of_one_layer_has_nothing_to_share_out(tiny_bench):
    with pytest.raises(MethodError, match="in front of the output layer"):
        tiny_bench([Linear(1, 2)], [[1.0]], [0]).method("fedp3")
