"""Oort: whom it asks and what it notes."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from fl.contracts import Grant, Outcome, Report
from fl.errors import MethodError
from fl.executors.deferred_training import Trainer
from fl.method_base.method import check
from fl.methods import resolve
from tests.fl.methods.oort.noted_utilities import notes_of, selections

LR = 0.05


def refused(name, **params):
    with pytest.raises(MethodError) as error:
        check(resolve(name), params)
    return str(error.value)


def trained(bench, method, state, k=0):
    (job,) = bench.jobs(method, state, devices=[k])
    return Trainer(bench.task).submit([job])[0].result()


def outcome(update, finish_s, received=True, trained=True):
    grant = Grant(update.job.device, 0.1, 0.0, 1.0, 1.0)
    return Outcome(grant, update, "arrived" if received else "late", received, trained, finish_s)


def test_oort_hears_the_mean_squared_loss_and_trains_as_fedavg(bench):
    size = bench.task.layout.size
    method, fedavg = bench.method("oort", local_epochs=1, lr=1e-9), bench.method("fedavg")
    state = method.start()
    (update,) = Trainer(bench.task).submit(bench.jobs(method, state, devices=[2]))
    index = bench.task.data.train_index[2]
    x, y = (values[index] for values in bench.task.train)
    each = torch.nn.functional.cross_entropy(
        bench.task.architecture.logits(state.w, x), y, reduction="none"
    )
    assert update.result().w[-1].item() == pytest.approx(each.square().mean().item(), rel=1e-5)
    both = method.payload(0.0)
    assert (
        both.bits_up == fedavg.payload(0.0).bits_up + 32
        and both.bits_down == fedavg.payload(0.0).bits_down
    )
    _, ours = bench.play("oort", local_steps=3, lr=LR)
    _, theirs = bench.play("fedavg", local_steps=3, lr=LR)
    assert torch.equal(ours.w[:size], theirs.w)


def test_what_oort_notes_of_a_round(bench):
    method = bench.method("oort", participants=2, local_steps=1)
    state = method.start()
    updates = Trainer(bench.task).submit(bench.jobs(method, state, devices=[0, 2]))
    report = Report(0, 9.0, (outcome(updates[0], 1.5), outcome(updates[1], np.nan, received=False)))
    notes = method.observe(state, report).notes
    worth = float(bench.task.samples[0]) * float(updates[0].result().w[-1]) ** 0.5
    assert notes["tried"] == {"0": [pytest.approx(worth), 1.5, 1], "2": [0.0, 9.0, 1]}
    assert notes["exploited"] == [0.0] and notes["percentile"] == 30.0
    again = method.observe(
        replace(state, notes=json.loads(json.dumps(notes))), replace(report, g=1)
    ).notes
    assert again["exploited"] == [0.0, pytest.approx(worth)] and again["tried"]["0"][2] == 2


def test_oort_asks_who_is_worth_it_and_not_slow(bench):
    worth = {k: (float(k), 1.0) for k in range(20)}
    method = bench.method("oort", participants=4, exploration=0.0, least_exploration=0.0)
    counts = np.bincount(selections(bench, method, notes_of(worth)).ravel(), minlength=20) / 300
    assert counts[15:].sum() > 3.9 and counts[:15].sum() < 0.1
    slow = worth | {k: (float(k), 3.0) for k in (17, 18, 19)}
    fewer = np.bincount(selections(bench, method, notes_of(slow, 30.0)).ravel(), minlength=20) / 300
    assert (fewer[17:] < 0.2 * counts[17:]).all() and fewer.sum() == 4


def test_oort_explores_less_and_less_and_prefers_many_samples(bench):
    worth = dict.fromkeys(range(6), (1.0, 1.0))
    method = bench.method("oort", participants=5)
    found = selections(bench, method, notes_of(worth), devices=40)
    new = (found >= 6).sum(1)
    assert new[0] == 5 and (new[60:] == 2).all()  # 5 * 0.9 = 4.5 and 5 * 0.3 = 1.5, rounded up
    late = np.bincount(found[100:][found[100:] >= 6], minlength=40)
    assert (late[:30] == 0).all() and (
        late[30:] > 15
    ).all()  # of the 34 new ones the ten with most samples
    assert [len(set(row)) for row in found.tolist()] == [5] * 300
    first = selections(bench, method, {}, rounds=50)
    assert len(np.unique(first)) == 20  # at random


def test_oort_and_refl_want_a_number():
    assert "write fedavg" in refused("oort", participants="none")
    assert "allowed is at most exploration (0.2)" in refused("oort", exploration=0.2)
    assert "give a number" in refused("refl", participants="none")
