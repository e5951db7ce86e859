"""DepthFL: training, FedDyn and what is used."""

from dataclasses import replace
from math import exp

import numpy as np
import pytest
import torch

from edgesim.seeds import Seeds
from fl.contracts import Grant, Sent
from fl.evaluation.evaluate import evaluate
from fl.executors.deferred_training import Trainer
from fl.executors.executor_choice import choose
from fl.methods._dynamic_regularizer import feddyn_drift, feddyn_penalty
from fl.methods.depthfl.exits import with_exits
from fl.models.architectures import build
from fl.models.layers.learned_layers import Linear
from fl.task import LearningTask
from fl.training import local_sgd as local
from tests.fl.conftest import Bench, view_of

PLAIN = {"lr_decay": 1, "weight_decay": 0}


def sized(task, capability=1.0, budget=1.0, g=0):
    """A view in which all devices have that capability and model budget."""
    ones = np.ones(task.devices)
    return replace(view_of(task, g), capability=capability * ones, model_budget=budget * ones)


def job_of(method, state, k=0, g=0, **sizes):
    return method.configure(state, sized(method.task, g=g, **sizes), Grant(k, 0.1, 0.0, 1.0, 1.0))


@pytest.fixture(scope="module")
def cnn(bench):
    """DepthFL on the digits with its three blocks."""
    return bench.method("depthfl", local_steps=2)


def mlp_bench(digits):
    return Bench(LearningTask(build("mlp", digits.input_shape, 10), digits, 16, Seeds(3)))


def test_two_steps_of_a_device_by_hand(tiny_bench):
    """Logits w x, x = 1, y = 1: gradient [p, -p], p = 1 / 2, then 1 / (1 + e^0.07); minus lam, plus
    alpha (w - w^r).
    """
    bench = tiny_bench([Linear(1, 2, bias=False)], [[1.0]], [1])
    method = bench.method("depthfl", alpha=0.5, lr=0.1, local_steps=2, **PLAIN)
    state = replace(method.start(), local={0: torch.tensor([0.2, -0.1])}, w=torch.zeros(4))
    done = local.run(method.task, job_of(method, state))
    p = 1 / (1 + exp(0.07))
    first = np.array([-0.03, 0.04])  # -0.1 ([0.5, -0.5] - [0.2, -0.1])
    second = first - 0.1 * (np.array([p, -p]) - [0.2, -0.1] + 0.5 * first)
    assert done.w[:2].tolist() == pytest.approx(second.tolist(), abs=1e-7)
    assert done.w[2:].tolist() == pytest.approx(([0.2, -0.1] - 0.5 * second).tolist(), abs=1e-7)


def test_the_penalty_by_hand():
    w, received, linear = (
        torch.tensor([1.0, 3.0]),
        torch.tensor([0.0, 1.0]),
        torch.tensor([0.5, -0.25]),
    )
    assert feddyn_penalty(w, received, linear, 0.1).item() == pytest.approx(
        0.05 * (1 + 4) - (0.5 - 0.75)
    )


def test_two_corrections_of_the_server_by_hand():
    """K = 4: h / alpha falls by a fourth of the changes; nobody sent the third weight."""
    both, first = torch.tensor([True, True, False]), torch.tensor([True, False, False])
    old, ends = torch.ones(3), (torch.tensor([2.0, 3.0, 9.0]), torch.tensor([4.0, 9.0, 9.0]))
    sent = [Sent(ends[0], both), Sent(ends[1], first)]
    drift = feddyn_drift(torch.zeros(3), old, sent, 4)
    assert drift.tolist() == [-1.0, -0.5, 0.0]
    again = feddyn_drift(drift, old, [Sent(torch.tensor([-1.0, 9.0, 9.0]), first)], 4)
    assert again.tolist() == [-0.5, -0.5, 0.0]


def test_a_round_of_the_server(bench, cnn):
    """Devices of depths 3, 1, 1 of K = 4: blocks have three senders or one."""
    method, state = cnn, cnn.start()
    view = replace(view_of(bench.task), capability=np.array([1.0, 0.5, 0.5, 1.0]))
    jobs = [method.configure(state, view, Grant(k, 0.1, 0.0, 1.0, 1.0)) for k in range(3)]
    updates = Trainer(method.task).submit(jobs)
    after = method.aggregate(method.retain(state, updates), view, updates)
    one, deep = (
        torch.from_numpy(mask) for mask in (method.nested[0], method.nested[2] & ~method.nested[0])
    )
    ends = torch.stack([update.result().w.double() for update in updates])
    old = state.w.double()
    for mask, mean, senders in ((one, ends.mean(0), 3), (deep, ends[0], 1)):
        expected = mean + senders / 4 * (mean - old)
        assert torch.allclose(after.w.double()[mask], expected[mask], atol=1e-6)
    assert (after.w - state.w)[deep].norm() > 0 and torch.equal(
        after.memo["drift"] != 0, after.w != state.w
    )
    again = method.aggregate(
        after, view, updates
    )  # the same uploads once more, whose jobs started from the first model
    drift = -3 / 4 * 2 * (ends.mean(0) - old)
    assert torch.allclose(again.w.double()[one], (ends.mean(0) - drift)[one], atol=1e-6)


def test_the_linear_term_stays_at_the_device_and_comes_back(bench, cnn):
    state = bench.round(cnn, cnn.start())
    size = cnn.task.layout.size
    own = cnn.received(state, 2)
    assert torch.equal(own[:size], state.w[:size]) and torch.equal(own[size:], state.local[2])
    assert own[size:].abs().max() > 0
    assert cnn.personalise(state, 2) is state.w  # used is the server's model, by everybody
    assert not cnn.received(cnn.start(), 2)[size:].any()


def test_the_linear_term_of_a_late_device_stays_and_the_server_does_not_hear_of_it(bench, cnn):
    state, view = cnn.start(), sized(bench.task)
    updates = Trainer(cnn.task).submit([job_of(cnn, state, k) for k in range(4)])
    after = cnn.aggregate(cnn.retain(state, updates), view, updates[:3])
    without = cnn.aggregate(cnn.retain(state, updates[:3]), view, updates[:3])
    size = cnn.task.layout.size
    lam = -0.1 * (updates[3].result().w - state.w)[:size]
    assert torch.allclose(after.local[3], lam, atol=1e-8) and 3 not in without.local
    assert torch.equal(after.memo["drift"], without.memo["drift"]) and torch.equal(
        after.w, without.w
    )
    assert cnn.aggregate(after, view, []).w is after.w


def test_blocks_that_a_device_does_not_train_keep_their_linear_term(cnn):
    state, size = cnn.start(), cnn.task.layout.size
    state = replace(state, local={0: torch.ones(size)})
    done = local.run(cnn.task, job_of(cnn, state, capability=0.5))
    deep = torch.from_numpy(~cnn.nested[0][:size])
    without = replace(state, local={0: (~deep).float()})
    assert done.loss == local.run(cnn.task, job_of(cnn, without, capability=0.5)).loss
    assert torch.equal(done.w[size:][deep], torch.ones(int(deep.sum())))
    assert torch.equal(done.w[:size][deep], state.w[:size][deep])
    assert not torch.equal(done.w[size:][~deep], torch.ones(int((~deep).sum())))


def test_one_block_without_feddyn_is_fedavg(digits):
    bench = mlp_bench(digits)
    settings = {"rounds": 3, "local_steps": 3, "lr": 0.05}
    _, fedavg = bench.play("fedavg", **settings)
    method, depthfl = bench.play("depthfl", alpha=0, **PLAIN, **settings)
    assert method.task.architecture.depths == 1
    assert torch.equal(depthfl.w[: method.task.layout.size], fedavg.w)


def test_one_block_steps_as_fedavg_while_feddyn_has_no_slope(digits):
    """The same through its own loss: in the first step of the first round FedDyn's terms have no
    slope.
    """
    bench = mlp_bench(digits)
    fedavg, method = (
        bench.method("fedavg", local_steps=1),
        bench.method("depthfl", alpha=0.7, local_steps=1, **PLAIN),
    )
    one, other = (
        local.run(each.task, replace(job_of(each, each.start()), finish=None))
        for each in (fedavg, replace(method, lr=fedavg.lr))
    )
    assert torch.allclose(other.w[: len(one.w)], one.w, atol=1e-7)
    assert not torch.equal(one.w, fedavg.start().w)


@pytest.mark.slow
def test_it_learns_and_its_exits_are_evaluated_apart(bench):
    """Half of the default step size: with 0.1 a round's rounding decides where it swings to."""
    method, state = bench.play("depthfl", rounds=40, local_steps=5, lr=0.05)
    scores = evaluate(method.task, method, state)
    assert scores.accuracy.mean() > 0.6  # 0.84, 0.85, 0.82 with the seeds 3, 4, 5
    named = {
        name: scores.measures[f"accuracy {name}"] for name in ("depth 1", "depth 2", "depth 3")
    }
    assert len(set(named.values())) == 3
    images, labels = method.task.test
    model = method.task.architecture
    for d in (1, 2, 3):
        logits = torch.stack(model.exits(model.split(state.w), images, d)).mean(0)
        assert (logits.argmax(1) == labels).float().mean().item() == pytest.approx(
            named[f"depth {d}"], abs=2e-3
        )


@pytest.mark.parametrize("name", ["auto", "pool", "batched"])
def test_every_executor_trains_it_one_by_one_to_the_same_bytes(bench, cnn, name):
    view = replace(sized(bench.task), capability=np.array([1.0, 0.9, 0.5, 1.0]))
    jobs = [cnn.configure(cnn.start(), view, Grant(k, 0.1, 0.0, 1.0, 1.0)) for k in range(4)]
    executor = choose(cnn.task, name, 2)
    for one, job in zip(executor.run(jobs), jobs, strict=True):
        assert torch.equal(one.w, local.run(cnn.task, job).w)
    reason = "a hook of the method looks at the flat model"
    reported = any(reason in line for line in executor.fallbacks.lines())
    assert reported == (name == "batched")


def test_a_method_trains_the_architecture_that_it_makes(bench, cnn):
    assert cnn.task is not bench.task and cnn.task.data is bench.task.data
    assert cnn.task.architecture == with_exits(bench.task.architecture)
    assert bench.method("fedavg").task is bench.task
    assert cnn.weights() == {"total": 2 * 6_318, "global": 6_318, "personal": 6_318}


def test_texts_leave_at_two_depths():
    model = with_exits(build("shakespeare-lstm", (4,), 7))
    w = torch.from_numpy(model.initial(np.random.default_rng(0)))
    first, second = model.exits(model.split(w), torch.tensor([[0, 1, 2, 3], [3, 2, 1, 6]]))
    assert first.shape == second.shape == (2, 7) and not torch.equal(first, second)
    names = [slot.name for slot in model.layout.slots if model.depth_of(slot) == 1]
    assert names[-2:] == ["exit1.weight", "exit1.bias"] and "lstm2.weight_ih" not in names
