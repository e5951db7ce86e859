"""DepthFL: models with several exits, what they learn from each other, FedDyn; the numbers of fedlps.md, 10.12, 12."""

from dataclasses import replace
from math import exp, log

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from edgesim.seeds import Seeds
from fl.contracts import Grant
from fl.errors import MethodError
from fl.evaluation.evaluate import accuracy_of, evaluate
from fl.executors import choose
from fl.executors.trainer import Trainer
from fl.method_base.method import check
from fl.methods import resolve
from fl.methods.depthfl.exits import Exit, mutual_loss, ramp, with_exits
from fl.methods.depthfl.feddyn import corrected, penalty
from fl.models.architectures import MODELS, Architecture, build
from fl.models.batch_norm import Collected
from fl.models.layers import Linear
from fl.models.memory_format import pool_before_relu
from fl.models.stateless_layers import Relu
from fl.task import LearningTask
from fl.timing_only import NATURAL
from fl.training import local_sgd as local
from tests.fl.conftest import Bench, view_of

DEPTHS = {
    "mlp": 1,
    "digits-cnn": 3,
    "liu-cnn": 3,
    "fedlps-cnn": 3,
    "lenet5-caffe": 3,
    "spafl-conv4": 4,
    "vgg11": 5,
    "resnet18": 4,  # the stages, as the authors
    "shakespeare-lstm": 2,
}
PLAIN = {"lr_decay": 1, "weight_decay": 0}


def branched(name):
    return with_exits(build(name, *NATURAL[name]))


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


# --- the model -------------------------------------------------------------------------------------------------------


def test_every_model_has_a_depth_here():
    assert set(DEPTHS) == set(MODELS)


@pytest.mark.parametrize("name", DEPTHS)
def test_blocks_heads_and_what_stays_of_the_model(name):
    plain, model = build(name, *NATURAL[name]), branched(name)
    assert model.depths == DEPTHS[name]
    assert tuple(layer for layer in model.layers if not isinstance(layer, Exit)) == plain.layers
    heads = [slot for slot in model.layout.slots if slot.name.startswith("exit")]
    assert len(heads) == 2 * (model.depths - 1) and all(
        slot.shape[0] == model.classes for slot in heads
    )
    assert [slot.role for slot in heads] == ["classifier"] * len(heads)
    assert sorted({model.depth_of(slot) for slot in model.layout.slots}) == list(
        range(1, model.depths + 1)
    )
    assert with_exits(model) is model


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("digits-cnn", ["pool", "pool"]),
        ("fedlps-cnn", ["relu", "relu"]),  # which follow the pools
        ("spafl-conv4", ["pool", "pool", "relu"]),
        ("resnet18", ["block", "block", "block"]),
        ("shakespeare-lstm", ["lstm"]),
    ],
)
def test_what_a_block_ends_with(name, before):
    kinds = [layer.kind for layer in branched(name).layers]
    assert [kinds[i - 1] for i, kind in enumerate(kinds) if kind == "exit"] == before


def test_the_heads_of_the_digits_model():
    assert {p.name: p.shape for p in branched("digits-cnn").parts if p.name.startswith("exit")} == {
        "exit1.weight": (10, 8),
        "exit1.bias": (10,),
        "exit2.weight": (10, 16),
        "exit2.bias": (10,),
    }


def test_without_its_heads_the_model_starts_as_ever():
    plain, model = build("digits-cnn", (1, 8, 8), 10), branched("digits-cnn")
    named = model.layout.named(model.initial(np.random.default_rng(5)))
    for name, values in plain.layout.named(plain.initial(np.random.default_rng(5))).items():
        assert np.array_equal(named[name], values), name
    assert 0 < np.abs(named["exit2.weight"]).max() <= 16**-0.5


TWO = Architecture(
    "two",
    (1,),
    2,
    (Linear(1, 1, bias=False), Relu(), Linear(1, 1, bias=False), Relu(), Linear(1, 2)),
)


def test_exits_by_hand():
    """x = 2: h = 1.5 x = 3, head [1, -1] h + [0, 1] = [3, -2]; h' = 2 h = 6, classifier [0.5, 1] h' = [3, 6]."""
    model = with_exits(TWO)
    w = torch.tensor([1.5, 1.0, -1.0, 0.0, 1.0, 2.0, 0.5, 1.0, 0.0, 0.0])
    first, second = model.exits(model.split(w), torch.tensor([[2.0]]))
    assert first.tolist() == [[3.0, -2.0]] and second.tolist() == [[3.0, 6.0]]
    assert model.logits(w, torch.tensor([[2.0]])).tolist() == [[3.0, 2.0]]


def test_deeper_blocks_are_not_computed(cnn):
    model, kept = cnn.task.architecture, cnn.nested[1][: cnn.task.layout.size]
    w = torch.from_numpy(model.initial(np.random.default_rng(0)))
    x = torch.rand(3, 1, 8, 8)
    broken = w.where(torch.from_numpy(kept), torch.nan)
    assert len(model.exits(model.split(broken), x, 2)) == 2
    for one, other in zip(
        model.exits(model.split(broken), x, 2), model.exits(model.split(w), x), strict=False
    ):
        assert torch.equal(one, other)
    assert model.logits(broken, x).isnan().all()


@pytest.mark.parametrize("name", ["digits-cnn", "fedlps-cnn", "spafl-conv4"])
def test_the_lean_order_of_layers_leaves_every_exit_as_it_is(name):
    model = branched(name)
    w = torch.from_numpy(model.initial(np.random.default_rng(0)))
    x = torch.rand(4, *model.input_shape)
    each = zip(
        model.exits(model.split(w), x),
        pool_before_relu(model).exits(model.split(w), x),
        strict=True,
    )
    assert all(torch.equal(one, other) for one, other in each)
    assert name == "fedlps-cnn" or pool_before_relu(model).layers != model.layers


def test_batch_norm_meets_its_layers_in_their_order():
    model, norms = branched("spafl-conv4"), Collected()
    w = torch.from_numpy(model.initial(np.random.default_rng(0)))
    x = torch.rand(6, 3, 32, 32)
    model.logits(w, x, norms)
    assert [len(mean) for mean, _ in norms.frozen().statistics] == [64, 64, 128, 128, 128, 128]
    assert len(model.exits(model.split(w), x, 1, norms.frozen())) == 1


# --- the loss --------------------------------------------------------------------------------------------------------


def test_the_ramp():  # fedlps.md, check 21
    assert [ramp(g, 300) for g in (0, 300, 301, 5000)] == pytest.approx(
        [0.0067379, 1, 1, 1], abs=5e-8
    )
    assert ramp(150, 300) == pytest.approx(exp(-1.25))


def test_two_classifiers_by_hand():
    """softmax [1/2, 1/2] and [3/4, 1/4], label 0: CE log 2 and log 4/3; KL(2 || 1) and KL(1 || 2)."""
    logits = torch.tensor([[0.0, 0.0], [log(3), 0.0]], requires_grad=True)
    loss = mutual_loss([logits[:1], logits[1:]], torch.tensor([0]), 0.5)
    onto_first, onto_second = 0.75 * log(1.5) + 0.25 * log(0.5), 0.5 * log(2 / 3) + 0.5 * log(2)
    assert loss.item() == pytest.approx(
        log(2) + log(4 / 3) + 0.5 * (onto_first + onto_second), abs=1e-6
    )
    loss.backward()  # a teacher gets no gradient: softmax - label + 0.5 (softmax - that of the other)
    assert logits.grad.tolist() == [pytest.approx([-0.625, 0.625]), pytest.approx([-0.125, 0.125])]


def test_each_of_three_classifiers_has_the_mean_of_two_teachers():
    logits = torch.zeros(3, 1, 2, requires_grad=True)
    with torch.no_grad():
        logits[1, 0, 0] = log(3)
    mutual_loss(list(logits), torch.tensor([1]), 1.0).backward()
    assert logits.grad[0, 0].tolist() == pytest.approx(
        [0.5 + (0.5 - 0.75) / 2, -0.5 - (0.5 - 0.75) / 2]
    )
    assert logits.grad[1, 0].tolist() == pytest.approx([0.75 + 2 * 0.25 / 2, -0.75 - 2 * 0.25 / 2])


def test_one_classifier_has_nobody_to_learn_from():
    logits, y = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1])
    assert mutual_loss([logits], y, 1.0) == cross_entropy(logits, y)


# --- FedDyn ----------------------------------------------------------------------------------------------------------


def test_two_steps_of_a_device_by_hand(tiny_bench):
    """Logits w x, x = 1, y = 1: gradient [p, -p], p = 1 / 2, then 1 / (1 + e^0.07); minus lam, plus alpha (w - w^r)."""
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
    assert penalty(w, received, linear, 0.1).item() == pytest.approx(0.05 * (1 + 4) - (0.5 - 0.75))


def test_two_corrections_of_the_server_by_hand():
    """alpha = 0.1, K = 4: h = -0.1 n / 4 (mean - old); w = mean - h / 0.1."""
    old, drift = torch.tensor([1.0, 1.0, 1.0]), torch.zeros(3)
    w, drift = corrected(
        torch.tensor([3.0, 3.0, 9.0]), old, drift, torch.tensor([2.0, 1.0, 0.0]), 4
    )
    h = [-0.1 * 2 / 4 * 2, -0.1 * 1 / 4 * 2, 0.0]
    assert w.tolist() == pytest.approx(
        [3 - h[0] / 0.1, 3 - h[1] / 0.1, 1.0]
    )  # nobody sent the third: it stays
    assert (0.1 * drift).tolist() == pytest.approx(h)
    again, _ = corrected(torch.tensor([5.0, 3.0, 1.0]), w, drift, torch.tensor([4.0, 0.0, 0.0]), 4)
    h[0] -= 0.1 * (5 - 4)
    assert again.tolist() == pytest.approx([5 - h[0] / 0.1, 3.5, 1.0])


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
    )  # the same uploads once more: the first drift is still there
    drift = -3 / 4 * (ends.mean(0) - old) - 3 / 4 * (ends.mean(0) - after.w.double())
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


# --- depth, and what it costs ----------------------------------------------------------------------------------------

# multiply-adds, 2 FLOP each: conv1 (forward, by the weights), head, conv2, head, dense, output (by the signals too)
STEP = np.cumsum([4 * 4608 + 6 * 80, 6 * (18432 + 160), 6 * (4096 + 640)])
WEIGHTS = np.cumsum([80 + 90, 16 * 72 + 16 + 170, 64 * 65 + 650])


def test_flops_and_weights_of_each_depth(cnn):
    assert STEP.tolist() == [18_912, 130_464, 158_880] and WEIGHTS.tolist() == [170, 1_508, 6_318]
    assert cnn.shares.tolist() == (np.stack([STEP / STEP[-1], WEIGHTS / WEIGHTS[-1]], 1)).tolist()


@pytest.mark.parametrize(
    ("capability", "budget", "depth"),
    [
        (1.0, 1.0, 3),
        (0.999, 1.0, 2),
        (130_464 / 158_880, 1.0, 2),
        (0.82, 1.0, 1),
        (1 / 16, 1.0, 1),  # at least one block
        (1.0, 0.24, 2),
        (1.0, 0.23, 1),
        (0.5, 0.24, 1),
    ],
)
def test_the_depth_rule(cnn, capability, budget, depth):
    view = sized(cnn.task, capability, budget)
    assert cnn.depth(view, 0) == depth
    assert cnn.kept(None, view, 0).sum() == WEIGHTS[depth - 1]


@given(st.floats(0.01, 1), st.floats(0.01, 1))
def test_nobody_computes_more_than_its_share_unless_one_block_is_more(cnn, z, more):
    depths = [cnn.depth(sized(cnn.task, capability), 0) for capability in (z, max(z, more))]
    assert depths[0] <= depths[1]
    assert depths[0] == 1 or STEP[depths[0] - 1] <= z * STEP[-1]


@pytest.mark.parametrize(("capability", "depth"), [(0.5, 1), (0.9, 2), (1.0, 3)])
def test_a_device_is_charged_its_blocks_and_heads(bench, capability, depth):
    method = bench.method("depthfl", local_steps=2, alpha=0)
    job = job_of(method, method.start(), capability=capability)
    (stage,) = job.stages
    assert (
        stage.work.flops == 2 * 16 * STEP[depth - 1]
        and stage.work.weight_steps == 2 * WEIGHTS[depth - 1]
    )
    assert job.payload.bits_up == job.payload.bits_down == 32 * WEIGHTS[depth - 1]
    with FlopCounterMode(display=False) as counter:
        done = local.run(method.task, job)
    assert counter.get_total_flops() == stage.work.flops  # torch's own count of what was trained
    kept = torch.from_numpy(method.nested[depth - 1])
    moved = done.w != method.received(method.start(), 0)
    assert not (moved & ~kept).any() and moved[kept].float().mean() > 0.5
    assert torch.equal(method.encode(job, done).travels, kept)


def test_the_demand_is_what_the_job_costs(cnn):
    view = replace(sized(cnn.task), capability=np.array([1.0, 0.9, 0.5, 0.1]))
    demand = cnn.demand(cnn.start(), view, np.arange(4))
    for place, depth in enumerate((3, 2, 1, 1)):
        left = 1 - demand.rho_min[place]
        assert left * demand.bits_prunable[place] == pytest.approx(32 * WEIGHTS[depth - 1])
        assert left * demand.work_prunable.flops[place] == pytest.approx(2 * 16 * STEP[depth - 1])


def test_the_width_is_not_read():
    with pytest.raises(MethodError, match="width is not read where the depth decides; remove it"):
        check(resolve("depthfl"), {"width": 0.5})


# --- rounds ----------------------------------------------------------------------------------------------------------


def mlp_bench(digits):
    return Bench(LearningTask(build("mlp", digits.input_shape, 10), digits, 16, Seeds(3)))


def test_one_block_without_feddyn_is_fedavg(digits):
    bench = mlp_bench(digits)
    settings = {"rounds": 3, "local_steps": 3, "lr": 0.05}
    _, fedavg = bench.play("fedavg", **settings)
    method, depthfl = bench.play("depthfl", alpha=0, **PLAIN, **settings)
    assert method.task.architecture.depths == 1
    assert torch.equal(depthfl.w[: method.task.layout.size], fedavg.w)


def test_one_block_steps_as_fedavg_while_feddyn_has_no_slope(digits):
    """The same through its own loss: in the first step of the first round FedDyn's terms have no slope."""
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


def test_it_learns_and_its_exits_are_told_apart(bench):
    method, state = bench.play("depthfl", rounds=32, local_steps=5)
    scores = evaluate(method.task, method, state)
    assert scores.accuracy.mean() > 0.6  # FedAvg at this step size: 0.53
    named = {
        name: scores.measures[f"accuracy {name}"] for name in ("depth 1", "depth 2", "depth 3")
    }
    assert named["depth 3"] == accuracy_of(method.task, state.w) and len(set(named.values())) == 3
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
    said = any(
        "a hook of the method looks at the flat model" in line for line in executor.notes.lines()
    )
    assert said == (name == "batched")


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
