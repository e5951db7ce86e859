"""FjORD: widths drawn per batch."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from edgesim.seeds import Seeds
from fl.contracts import Grant
from fl.data.samples import IGNORED, Federated
from fl.errors import MethodError
from fl.methods._ordered_dropout import first_units
from fl.models.architectures import build
from fl.task import LearningTask
from fl.training import local_sgd as local
from tests.fl.conftest import Bench, view_of

LR = 0.1


def sized(view, capability, budget=None):
    budget = np.ones(len(capability)) if budget is None else np.asarray(budget)
    return replace(view, capability=np.asarray(capability, dtype=float), model_budget=budget)


def test_fjord_draws_a_width_per_batch_and_trains_nothing_beyond_its_own(bench):
    method = bench.method("fjord", local_steps=6, lr=LR, levels=[0.25, 0.5, 1.0])
    view = sized(view_of(bench.task), [0.5, 1.0, 1.0, 1.0])
    widths = method.drawn(view, 0)
    assert len(widths) == 6 and set(widths) <= {0.25, 0.5} and widths == method.drawn(view, 0)
    assert len({tuple(method.drawn(replace(view, g=g), 1)) for g in range(5)}) == 5
    state = method.start()
    done = local.run(bench.task, method.configure(state, view, Grant(0, 0.5, 0.0, 1.0, 1.0)))
    half = torch.from_numpy(first_units(method.layout, 0.5))
    assert torch.equal(done.w[~half], state.w[~half]) and not torch.equal(
        done.w[half], state.w[half]
    )
    assert torch.equal(done.mask, half)


def test_fjord_sends_no_more_than_the_largest_level_it_may_draw(bench):
    """A device of width 0.8 with the levels 1/4, 1/2 and 1 never trains more than half of the
    units.
    """
    view = sized(view_of(bench.task), [0.8] * 4)
    method, half = (
        bench.method("fjord", levels=[0.25, 0.5, 1.0]),
        bench.method("heterofl", width=0.5),
    )
    assert np.array_equal(method.kept(None, view, 0), half.kept(None, view, 0))
    teaching = bench.method("fjord", levels=[0.25, 0.5, 1.0], distillation=True)
    assert np.array_equal(teaching.kept(None, view, 0), first_units(method.layout, 0.8))


def test_fjords_work_is_the_mean_of_the_widths_it_drew(bench):
    method, view = bench.method("fjord", local_steps=8, levels=[0.25, 1.0]), view_of(bench.task)
    share = np.mean(np.array(method.drawn(view, 0)) == 1.0)
    whole, quarter = (
        bench.method("heterofl", local_steps=8, width=w).forecast(view, 0, 0.0)[0].work.flops
        for w in (1.0, 0.25)
    )
    assert 0 < share < 1
    assert method.forecast(view, 0, 0.0)[0].work.flops == pytest.approx(
        share * whole + (1 - share) * quarter
    )
    taught = bench.method("fjord", local_steps=8, levels=[0.25, 1.0], distillation=True)
    assert taught.forecast(view, 0, 0.0)[0].work.flops == pytest.approx(
        (1 + share) * whole + (1 - share) * quarter
    )


def test_fjord_with_distillation_learns_from_both_widths(bench):
    method = bench.method("fjord", local_steps=2, lr=LR, distillation=True, levels=[0.25])
    state = method.start()
    done = local.run(
        bench.task, method.configure(state, view_of(bench.task), Grant(0, 0.5, 0.0, 1.0, 1.0))
    )
    outside = ~torch.from_numpy(first_units(method.layout, 0.25))
    assert not torch.equal(done.w[outside], state.w[outside])  # the largest width learns too


def test_fjord_refuses_momentum_that_no_step_would_have(bench):
    """An optimiser that starts anew in every batch never has a velocity from the step before."""
    with pytest.raises(MethodError, match=r"momentum is 0\.9, but with resample: batch"):
        bench.method("fjord", momentum=0.9)
    states = [
        bench.play("fjord", rounds=1, resample="round", momentum=each, lr=LR)[1].w
        for each in (0.0, 0.9)
    ]
    assert not torch.equal(*states)


def test_fjord_distils_from_no_padding():
    """What stands where a text has ended, behind its words, moves neither loss nor gradient."""
    y = np.array([[1, 2, IGNORED, IGNORED], [3, 1, 2, IGNORED]])
    model = build("reddit-lstm", (4,), 10, text=True, at_every_step=True)
    data = Federated(
        y, y, lambda: (y, y), (4,), [np.arange(2)], [np.arange(2)], tuple("0123456789")
    )
    method = Bench(LearningTask(model, data, 2, Seeds(0))).method("fjord", distillation=True)
    whole, half = (torch.from_numpy(first_units(method.layout, s)) for s in (1.0, 0.5))
    w, found = method.start().w.requires_grad_(), []
    for code in (0, 9):
        loss, _ = method._distilling(whole, half)(
            w, torch.from_numpy(np.where(y == IGNORED, code, y)), torch.from_numpy(y)
        )
        found.append([loss, *torch.autograd.grad(loss, w)])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
