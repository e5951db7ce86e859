"""FedOpt: two steps of every server optimiser by hand."""

from dataclasses import replace

import pytest
import torch

from fl.contracts import Job, Payload, Phase, Trained
from fl.errors import MethodError
from tests.fl.conftest import view_of


class Moved:
    """An update whose device moved every weight by the same number."""

    def __init__(self, w, by):
        phase = Phase(w, torch.ones(len(w), dtype=torch.bool), 1, 0.1)
        self.job = Job(0, 0, (phase,), (), Payload(0.0, 0.0), 0.0)
        self.trained = Trained(w + by, phase.mask, 0.0)

    def result(self):
        return self.trained


def played(bench, changes, **params):
    """First weight after each mean change D, from 0."""
    method = bench.method("fedopt", **params)
    state = replace(method.start(), w=torch.zeros_like(method.start().w))
    reached = []
    for by in changes:
        state = method.aggregate(state, view_of(bench.task), [Moved(state.w, by)])
        reached.append(state.w[0].item())
    return state, reached


def test_adam_by_hand(bench):
    state, reached = played(bench, [0.1, 0.1], rule="adam", server_lr=0.1)
    assert reached == pytest.approx([0.0905028, 0.215986], rel=1e-5)
    assert state.memo["first"][0].item() == pytest.approx(0.019, rel=1e-6)
    assert state.memo["second"][0].item() == pytest.approx(1.999801e-4, rel=1e-6)


def test_yogi_by_hand(bench):
    state, reached = played(bench, [0.1, -0.02], rule="yogi", server_lr=0.1)
    assert reached == pytest.approx([0.0904988, 0.152738], rel=1e-5)
    assert state.memo["first"][0].item() == pytest.approx(0.007, rel=1e-5)
    assert state.memo["second"][0].item() == pytest.approx(1.05e-4, rel=1e-5)


@pytest.mark.parametrize("rule, second", [("adam", 1.0099e-4), ("yogi", 1.01e-4)])
def test_the_second_moment_after_one_step_from_tau_squared(bench, rule, second):
    """adam: 0.99 x 1e-6 + 0.01 x 0.01; yogi: 1e-6 + 0.01 x 0.01."""
    state, _ = played(bench, [0.1], rule=rule, server_lr=0.1)
    assert state.memo["second"][0].item() == pytest.approx(second, rel=1e-6)


def test_adagrad_by_hand(bench):
    state, reached = played(bench, [0.1], rule="adagrad", server_lr=0.1, beta1=0.0)
    assert reached == pytest.approx([0.0990050], rel=1e-5)
    assert state.memo["second"][0].item() == pytest.approx(0.010001, rel=1e-6)


def test_momentum_by_hand(bench):
    _, reached = played(bench, [0.1, 0.1], rule="avgm", server_lr=1.0, beta1=0.9)
    assert reached == pytest.approx([0.1, 0.1 + 0.19], rel=1e-6)


def test_a_plain_server_step_is_fedavg_to_the_byte(bench):
    plain = {"local_steps": 3, "lr": 0.1}
    _, fedavg = bench.play("fedavg", rounds=3, **plain)
    _, state = bench.play("fedopt", rounds=3, rule="avgm", beta1=0.0, server_lr=1.0, **plain)
    assert torch.equal(state.w, fedavg.w)


def test_nothing_moves_where_nothing_arrived(bench):
    method = bench.method("fedopt")
    state, _ = played(bench, [0.1])
    after = method.aggregate(state, view_of(bench.task), [])
    assert torch.equal(after.w, state.w) and after.memo is state.memo and after.g == state.g + 1


@pytest.mark.parametrize("rule, key", [("avgm", "tau"), ("avgm", "beta2"), ("adagrad", "beta2")])
def test_what_a_rule_does_not_read_is_refused(bench, rule, key):
    with pytest.raises(MethodError, match=f"{key}.*rule is {rule}"):
        bench.method("fedopt", rule=rule, **{key: 0.5})
