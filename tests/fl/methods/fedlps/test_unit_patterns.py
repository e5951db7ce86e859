"""Scores and patterns of units."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fl.contracts import Grant
from fl.training import local_sgd as local
from tests.fl.conftest import view_of

LR = 0.05


PLAIN = {"mu": 0.0, "lam": 0.0}


HALF = {"ratio": "fixed", "width": 0.5}


def sized(view, capability, g=0):
    return replace(view, capability=np.asarray(capability, dtype=float), g=g)


def jobs(method, state, view, devices):
    return [method.configure(state, view, Grant(int(k), 0.1, 0.0, 1.0, 1.0)) for k in devices]


def scores_of(method, state, k):
    return method.patterns.units.scores(method.received(state, k))


def test_scores_begin_at_random_and_stay_at_their_device(bench):
    method = bench.method("fedlps", lr=LR, **HALF)
    state = method.start()
    first = [scores_of(method, state, k) for k in (0, 1)]
    assert not torch.equal(*first)
    assert torch.equal(
        scores_of(method, replace(state, g=5), 0), first[0]
    )  # whenever the device is asked first
    state = bench.round(method, state)
    assert torch.equal(scores_of(method, state, 0), method.patterns.units.scores(state.local[0]))
    assert not torch.equal(scores_of(method, state, 0), first[0])
    assert torch.equal(
        method.patterns.units.weights(method.received(state, 0)),
        method.patterns.units.weights(state.w),
    )
    assert torch.equal(method.personalise(state, 0), state.local[0])


def test_scores_as_in_the_released_code(bench):
    method = bench.method("fedlps", lr=LR, q_init="sorted", q_persist=False, **HALF)
    state = method.start()
    first = scores_of(method, state, 0)
    assert all(bool((part.diff() <= 0).all()) for part in first.split(method.patterns.units.counts))
    later = scores_of(method, bench.round(method, state), 0)
    assert not torch.equal(later, first) and bool(
        (later.split(method.patterns.units.counts)[0].diff() <= 0).all()
    )


def test_scores_from_the_magnitude(bench):
    method = bench.method("fedlps", q_init="magnitude", **HALF)
    w = method.start().w
    part = scores_of(method, method.start(), 0).split(method.patterns.units.counts)[0]
    sums = method.task.layout.split(w)[0].abs().sum(dim=(1, 2, 3))
    assert torch.equal(part.argsort(), sums.argsort()) and float(part.mean()) == pytest.approx(
        0, abs=1e-6
    )


def test_the_task_moves_the_scores(bench):
    """Without (8) kept scores move by the task alone, the others only where all of them learn."""
    for q_grad, others_move in (("kept", False), ("all", True)):
        method = bench.method("fedlps", lr=LR, local_steps=1, q_grad=q_grad, **PLAIN, **HALF)
        state = method.start()
        (job,) = jobs(method, state, view_of(bench.task), [0])
        before, after = (
            scores_of(method, state, 0),
            method.patterns.units.scores(local.run(bench.task, job).w),
        )
        kept = method.patterns.units.top(before, 0.5) > 0
        assert bool((before != after)[kept].any())
        assert bool((before != after)[~kept].any()) == others_move


@pytest.mark.parametrize("pattern", ["random", "ordered", "magnitude"])
def test_patterns_by_rule_hold_for_the_round(bench, pattern):
    method = bench.method("fedlps", lr=LR, pattern=pattern, **HALF)
    state = method.start()
    view = view_of(bench.task)
    one, two = (local.run(bench.task, job).w for job in jobs(method, state, view, [0, 1]))
    a, b = method.patterns.units.pattern(one), method.patterns.units.pattern(two)
    assert [int(part.sum()) for part in a.split(method.patterns.units.counts)] == [4, 8, 32]
    expected = {
        "random": torch.equal(a, b),
        "ordered": not all(
            bool((p.diff() <= 0).all()) for p in a.split(method.patterns.units.counts)
        ),
        "magnitude": not torch.equal(
            a, method.patterns.units.top(method.patterns.units.sums(state.w), 0.5)
        ),
    }
    assert not expected[pattern]
    (later,) = jobs(method, replace(state, g=1), sized(view, view.capability, 1), [0])
    again = method.patterns.units.pattern(local.run(bench.task, later).w)
    assert torch.equal(a, again) == (pattern != "random")
