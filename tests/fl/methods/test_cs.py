"""CS: complement sparsification."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fl.contracts import Trained
from fl.executors.deferred_training import Trainer
from fl.models.layers.learned_layers import Linear
from tests.fl.conftest import view_of

LR = 0.05


ONE = [[1.0]]  # a single sample x = 1


def complement(tiny_bench, trained_w, samples=(1,)):
    """A hidden layer of four weights of which two were sent; what the devices trained -> the state
    after round 1.
    """
    devices = len(samples)
    bench = tiny_bench(
        [Linear(1, 4, bias=False), Linear(4, 2, bias=False)], ONE * devices, [1] * devices
    )
    method = bench.method("cs")
    pad = torch.zeros(8)
    state = replace(
        method.start(), g=1, memo={"sent": torch.cat([torch.tensor([0.9, 0.0, -0.7, 0.0]), pad])}
    )
    jobs = bench.jobs(method, state)
    results = [
        Trained(torch.cat([torch.tensor(w), pad]), torch.ones(12, dtype=torch.bool), 0.0)
        for w in trained_w
    ]
    updates = [
        SimpleNamespace(job=job, result=lambda r=r: r) for job, r in zip(jobs, results, strict=True)
    ]
    view = replace(view_of(bench.task, 1), samples=np.array(samples))
    return method, updates, method.aggregate(state, view, updates)


def test_a_round_of_complement_sparsification_by_hand(tiny_bench):
    method, (update,), after = complement(tiny_bench, [[0.8, 0.2, -0.6, -0.4]])
    sent = method.encode(update.job, update.result())
    assert (sent.values * sent.travels)[:4].tolist() == pytest.approx([0.0, 0.2, 0.0, -0.4])
    assert after.w[:4].tolist() == pytest.approx([0.9, 0.3, -0.7, -0.6])
    assert method.personalise(after, 0)[:4].tolist() == pytest.approx([0.9, 0.0, -0.7, 0.0])
    assert torch.equal(method.probes(after)["dense"], after.w)


def test_complements_are_averaged_and_the_rest_is_not_amplified(tiny_bench):
    method, updates, after = complement(
        tiny_bench, [[0.8, 0.2, -0.6, -0.4], [0.0, 0.6, 0.0, -2.0]], (3, 1)
    )
    assert after.w[:4].tolist() == pytest.approx([0.9, 0.45, -0.7, -1.2])  # 1.5 (3 a + b) / 4
    assert method.personalise(after, 1)[:4].tolist() == pytest.approx([0.9, 0.0, 0.0, -1.2])
    for update in updates:
        update.result().w[4:] = 1.0  # the output layer
    again = method.aggregate(
        replace(after, g=1, memo={"sent": updates[0].job.phases[0].start}),
        view_of(method.task),
        updates,
    )
    assert again.w[4:].tolist() == [1.0] * 8


def test_the_first_round_of_cs_is_fedavg(bench):
    _, fedavg = bench.play("fedavg", rounds=1, local_steps=3, lr=LR, weighting="samples")
    method, state = bench.play("cs", rounds=1, local_steps=3, lr=LR)
    assert torch.equal(state.w, fedavg.w)
    used = method.personalise(state, 0)
    assert [int((used[slot.slice] != 0).sum()) for slot in method.sparse] == [
        slot.size // 2 for slot in method.sparse
    ]
    assert torch.equal(used[used != 0], state.w[used != 0])
    assert (
        sum(slot.size for slot in method.sparse) == 72 + 1152 + 4096
    )  # not the output layer, no bias


def test_cs_sends_half_and_receives_the_other_half(bench):
    method, state = bench.play("cs", rounds=1, local_steps=3, lr=LR)
    size, places = bench.task.layout.size, sum(slot.size for slot in method.sparse)
    first, later = bench.jobs(method, method.start())[0], bench.jobs(method, state)[0]
    assert first.payload.bits_up == first.payload.bits_down == 32 * size
    assert later.payload.bits_up == later.payload.bits_down == 32 * (size - places // 2)
    for job, g in ((first, 0), (later, 1)):
        demand = method.demand(None, view_of(bench.task, g), np.array([0]))
        assert (
            demand.bits_prunable[0] == job.payload.bits_up
            and demand.bits_down[0] == job.payload.bits_down
        )
        done = Trainer(bench.task).submit([job])[0].result()
        assert 32 * int(method.encode(job, done).travels.sum()) == job.payload.bits_up
    charged = bench.method("cs", sparsity=0.75).payload(0.0)
    assert charged.bits_down < charged.bits_up


def test_a_first_round_of_cs_in_which_nobody_arrives_costs_no_second_one(bench):
    """The server then prunes the initial model: what is charged, sent and trained in round 1 is a
    half all the same.
    """
    method, size = bench.method("cs", local_steps=3, lr=LR), bench.task.layout.size
    lost = method.aggregate(method.start(), view_of(bench.task), [])
    (job, *_) = bench.jobs(method, lost)
    places = sum(slot.size for slot in method.sparse)
    assert int((job.phases[0].start != 0).sum()) == size - places // 2 == job.payload.bits_down / 32
    after = bench.round(method, lost)
    moved = after.w != lost.w
    assert all(moved[slot.slice].sum() > slot.size / 4 for slot in method.sparse)
    again = method.aggregate(after, view_of(bench.task, 2), [])
    assert torch.equal(again.memo["sent"], after.memo["sent"]) and torch.equal(again.w, after.w)
