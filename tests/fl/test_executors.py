"""Executors: all give the same weights, and each the same bytes whatever the processes, the chunks, the neighbours."""

import gc
import os
import signal
import time
import weakref
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise

import numpy as np
import psutil
import pytest
import torch

from edgesim.seeds import Seeds
from fl import executors, methods
from fl.contracts import Adam, Grant, Job, Payload, Phase, Sgd
from fl.data.datasets import Federated
from fl.executors import batched as batched_module
from fl.executors import stacked_sgd as steps
from fl.executors.batched import Batched
from fl.executors.choice import FORK_PAYS_S
from fl.executors.cost_model import flops_of
from fl.executors.partner import Paired
from fl.executors.pool import Pool
from fl.executors.processes import no_fork
from fl.executors.resident import Resident
from fl.executors.stacked import Vmapped, log_loss
from fl.executors.trainer import Trainer
from fl.masks import unit_masks as masks
from fl.models.architectures import Architecture, build
from fl.models.layers import Linear
from fl.models.stateless_layers import Relu
from fl.task import LearningTask
from fl.training.optimisers import norm_of
from tests.fl.conftest import Bench, view_of

DEADLINE_S = 60.0
OPTIMISERS = [Sgd(), Sgd(0.9), Sgd(0.9, 1e-2, 0.5), Adam()]
MLP, CNN = "mlp", "digits-cnn"


def task_of(model, shape=(1, 8, 8), sizes=(40, 23, 8, 31, 40), batch=8, dtype=np.float32):
    """Random data on one device per size; the last batch of a pass is mostly smaller, device 2 has one batch."""
    rng = np.random.default_rng(0)
    text, count = len(shape) == 1 and not isinstance(model, tuple), sum(sizes)
    x = rng.integers(0, 10, (count, *shape)) if text else rng.random((count, *shape)).astype(dtype)
    y = rng.integers(0, 10, count)
    each = np.split(np.arange(count), np.cumsum(sizes)[:-1])
    architecture = (
        Architecture("own", shape, 10, model)
        if isinstance(model, tuple)
        else build(model, shape, 10)
    )
    data = Federated(y, y, lambda: (x, x), shape, each, each, tuple("0123456789"))
    return LearningTask(architecture, data, batch, Seeds(0))


def job_of(task, *phases, device=0):
    return Job(device, 0, phases, (), Payload(0.0, 0.0), 0.0)


def job(task, k=0, steps=3, lr=0.1, **more):
    w = task.initial()
    everything = torch.ones(len(w), dtype=torch.bool)
    return job_of(
        task, Phase(**{"start": w, "mask": everything, "steps": steps, "lr": lr} | more), device=k
    )


def same(one, other):
    """Byte for byte, all that training gives."""
    return all(
        torch.equal(a.w, b.w)
        and torch.equal(a.mask, b.mask)
        and np.array([a.loss, a.accuracy]).tobytes() == np.array([b.loss, b.accuracy]).tobytes()
        and (a.collected is b.collected is None or torch.equal(a.collected, b.collected))
        for a, b in zip(one, other, strict=True)
    )


def assert_close(one, other, tolerance=1e-5):
    for a, b in zip(one, other, strict=True):
        assert float((a.w - b.w).abs().max()) <= tolerance * float(b.w.abs().max())
        assert torch.equal(a.mask, b.mask)
        assert a.loss == pytest.approx(
            b.loss, rel=max(tolerance, 1e-6), nan_ok=True
        )  # one by one it is a float32
        assert a.accuracy == pytest.approx(b.accuracy, abs=1e-6, nan_ok=True)


# --- every method, every executor ------------------------------------------------------------------------------------

MAKERS = {
    "resident": Resident,
    "one process": lambda task: Pool(task, Resident(task), 1),
    "two processes": lambda task: Pool(task, Resident(task), 2),
    "batched": Batched,
    "batched, two processes": lambda task: Pool(task, Batched(task), 2, pieces=1),
    "batched, one that stays": lambda task: Paired(task, Batched(task), least_s=0.0),
}


@pytest.fixture(scope="module")
def benches(digits):
    """The digits with a small network of each kind, and devices of four sizes."""
    return {
        name: Bench(LearningTask(build(name, digits.input_shape, 10), digits, 16, Seeds(3)))
        for name in (MLP, CNN)
    }


@pytest.fixture(scope="module")
def rounds(benches):
    """(model, method) -> method, state, jobs of a round on devices of different capability, results one by one."""
    found = {}

    def make(model, name):
        if (model, name) not in found:
            bench = benches[model]
            method = bench.method(name)
            state = method.start()
            view = replace(view_of(method.task), capability=np.array([1.0, 0.5, 0.25, 0.5]))
            chosen = np.arange(4)
            rho = method.demand(state, view, chosen).rho_max.clip(max=0.4)
            jobs = [
                method.configure(state, view, Grant(k, 0.25, float(rho[k]), 1.0, 1.0))
                for k in range(4)
            ]
            found[model, name] = method, state, view, jobs, Resident(method.task).run(jobs)
        return found[model, name]

    return make


@pytest.mark.parametrize("model", [MLP, CNN])
@pytest.mark.parametrize("name", methods.available())
class TestEveryMethod:
    """A round of four devices, as the method orders it."""

    @pytest.mark.parametrize("executor", MAKERS)
    def test_the_weights_after_a_round(self, rounds, model, name, executor):
        method, state, view, jobs, expected = rounds(model, name)
        trained = MAKERS[executor](method.task).run(jobs)
        assert_close(trained, expected)
        arrived = [Executed(job, one) for job, one in zip(jobs, trained, strict=True)]
        alone = [Executed(job, one) for job, one in zip(jobs, expected, strict=True)]
        after, reference = (
            method.aggregate(method.retain(state, u), view, u) for u in (arrived, alone)
        )
        assert torch.allclose(after.w, reference.w, atol=1e-5 * float(reference.w.abs().max()))
        assert any(
            not torch.equal(one.w, method.received(state, k)) for k, one in enumerate(trained)
        )

    @pytest.mark.parametrize("workers", [1, 2, 3])
    def test_the_bytes_of_any_number_of_processes(self, rounds, model, name, workers):
        method, *_, jobs, expected = rounds(model, name)
        task = method.task
        assert same(Pool(task, Resident(task), workers).run(jobs), expected)
        stacked = Batched(task).run(jobs)
        assert same(Pool(task, Batched(task), workers, pieces=1).run(jobs), stacked)
        assert same(Paired(task, Batched(task), least_s=0.0).run(jobs), stacked)
        assert same(Batched(task).run(jobs[1:][::-1])[::-1], stacked[1:])


class Executed:
    """An update that is there already."""

    def __init__(self, job, trained):
        self.job, self.trained = job, trained

    def result(self):
        return self.trained


# --- stacks ----------------------------------------------------------------------------------------------------------


def by_hand(w, x, y):
    """Two layers, w = (a [2], b [2], V [2, 2], c [2]) for one input x: loss and gradient, by the chain rule."""
    a, b, v, c = w[0:2], w[2:4], w[4:8].reshape(2, 2), w[8:10]
    h = np.maximum(a * x + b, 0)
    z = v @ h + c
    p = np.exp(z) / np.exp(z).sum()
    back = p - np.eye(2)[y]
    into = (v.T @ back) * (h > 0)
    return -np.log(p[y]), np.concatenate([into * x, into, np.outer(back, h).ravel(), back])


def two_neurons(samples):
    """Two inputs of one device each: x = 1 of class 0, x = -2 of class 1; or both of one device."""
    x, y = np.array([[1.0], [-2.0]], dtype=np.float64), np.array([0, 1])
    each = [np.array([0]), np.array([1])] if samples == 1 else [np.array([0, 1])]
    architecture = Architecture("two", (1,), 2, (Linear(1, 2, "features"), Relu(), Linear(2, 2)))
    return LearningTask(
        architecture,
        Federated(y, y, lambda: (x, x), (1,), each, each, ("a", "b")),
        samples,
        Seeds(0),
    )


W = np.array([0.5, -1.0, 0.1, 0.2, 0.3, -0.4, 0.6, 0.7, 0.05, -0.05])


def test_a_step_of_two_perceptrons_by_hand():
    """x = 1: h = (0.6, 0), z = (0.23, 0.31), p_0 = 0.48001; the dead neuron and its weights do not move."""
    task = two_neurons(1)
    start, everything = torch.tensor(W), torch.ones(10, dtype=torch.bool)
    jobs = [job_of(task, Phase(start, everything, 1, 0.5), device=k) for k in (0, 1)]
    first, second = Batched(task).run(jobs)
    for one, x, y in ((first, 1.0, 0), (second, -2.0, 1)):
        loss, gradient = by_hand(W, x, y)
        assert one.w.tolist() == pytest.approx(W - 0.5 * gradient, abs=1e-12)
        assert one.loss == pytest.approx(loss, abs=1e-12)
    assert first.loss == pytest.approx(-np.log(0.4800107), abs=1e-6)
    assert first.accuracy == 0.0 and first.w[1] == W[1] and first.w[5] == W[5]


def test_a_batch_is_the_mean_of_its_samples_and_a_mask_holds_still():
    task, mask = two_neurons(2), torch.tensor([True] * 4 + [False, True, True, True] + [False] * 2)
    (one,) = Batched(task).run([job_of(task, Phase(torch.tensor(W), mask, 1, 0.5))])
    gradient = (by_hand(W, 1.0, 0)[1] + by_hand(W, -2.0, 1)[1]) / 2
    assert one.w.tolist() == pytest.approx(W - 0.5 * mask.numpy() * gradient, abs=1e-12)


@pytest.mark.parametrize("model", [MLP, CNN])
@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=str)
@pytest.mark.parametrize("ragged", [False, True])
def test_stacks_agree_with_one_by_one_in_double_precision(model, optimiser, ragged):
    """Different devices, steps, last batches, rates, factors, frozen and scattered weights: all at once."""
    task = task_of(model, dtype=np.float64)
    size, rng = task.layout.size, np.random.default_rng(1)
    w = task.initial().double()
    some, rates = (
        torch.from_numpy(rng.random(size) < 0.7),
        torch.from_numpy(rng.uniform(0.01, 0.1, size)),
    )
    head = torch.from_numpy(task.layout.role("classifier").copy())
    half = torch.from_numpy(task.layout.expand(masks.prefix(task.layout, 0.5)))
    scale = 1 + torch.from_numpy(rng.random(size))
    lr = 0.001 if isinstance(optimiser, Adam) else 0.05
    base = Phase(w, torch.ones(size, dtype=torch.bool), 4, lr, optimiser=optimiser, ragged=ragged)
    kinds = [
        {},
        {"mask": some, "first": 2},
        {"mask": head, "steps": 7},
        {"lr": rates},
        {"mask": some, "lr": rates},
        {"scale": scale},
        {"submodel": half},
        {"submodel": some, "scale": scale},
        {"submodel": half, "lr": rates, "scale": scale},
    ]
    jobs = [job_of(task, replace(base, **kind), device=k) for kind in kinds for k in range(5)]
    tail = Phase(
        lambda done: done[-1], lambda done: done[-1] != w, 2, lr, "more", optimiser=optimiser
    )
    jobs += [job_of(task, replace(base, steps=2 + k), tail, device=k) for k in range(4)]
    executor = Batched(task)
    assert_close(executor.run(jobs), Resident(task).run(jobs), 1e-9)
    assert executor.notes.lines() == []


@pytest.mark.parametrize("model", [MLP, CNN])
def test_neighbours_and_chunks_change_no_byte(model):
    task = task_of(model)
    mask = torch.rand(task.layout.size, generator=torch.Generator().manual_seed(0)) < 0.5
    jobs = [
        job(task, k, steps=1 + k % 4, ragged=k > 2, mask=mask | (k % 2 == 0))
        for k in (0, 1, 2, 3, 4) * 5
    ]
    together = Batched(task).run(jobs)
    assert same([Batched(task).run([one])[0] for one in jobs[:5]], together[:5])
    assert same(Batched(task).run(jobs[::-1])[::-1], together)
    if model == MLP:  # others always compute as many models at once
        assert same(Batched(task, memory=1).run(jobs), together)
        assert same(Batched(task, memory=1 << 20).run(jobs), together)


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=str)
@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize(
    ("widths", "batch"),
    [((33, 16, 10), 1), ((33, 1, 10), 8), ((1, 16, 10), 8), ((1, 10), 1), ((64, 33, 1, 10), 1)],
)
def test_neighbours_change_no_byte_where_something_is_one(widths, batch, optimiser, ragged):
    """A product with a single row or column is computed in another way where there is a single model."""
    layers = [Linear(*pair) for pair in pairwise(widths)]
    layers[1:] = [each for layer in layers[1:] for each in (Relu(), layer)]
    task = task_of(tuple(layers), (widths[0],), sizes=(17, 9, 12, 17), batch=batch)
    lr = 0.001 if isinstance(optimiser, Adam) else 0.05
    jobs = [
        job(task, k, steps=20 + 7 * k, lr=lr, optimiser=optimiser, ragged=ragged) for k in range(4)
    ]
    together, executor = Batched(task).run(jobs), Batched(task)
    assert same([executor.run([one])[0] for one in jobs], together)
    assert same(executor.run(jobs[:2]) + executor.run(jobs[2:]), together)
    paired = Paired(task, Batched(task), least_s=0.0)
    assert same(paired.run(jobs[:3]), together[:3]) and same(
        Pool(task, Batched(task), 2, pieces=1).run(jobs), together
    )
    assert paired.partner is not None
    paired.end()


def test_the_norm_of_a_models_gradients_does_not_know_its_neighbours():
    generator = torch.Generator().manual_seed(0)
    for shapes in ([(3,), (33, 100)], [(1,), (10, 1)], [(8, 3, 5, 5), (8,), (10, 200)]):
        together = [torch.randn(7, *shape, generator=generator) for shape in shapes]
        norms = norm_of(together, stacked=True)
        assert all(
            torch.equal(norm_of([g[i : i + 1] for g in together], True), norms[i : i + 1])
            for i in range(7)
        )
        assert norms[0] == pytest.approx(
            sum(float(g[0].square().sum()) for g in together) ** 0.5, rel=1e-6
        )


@pytest.mark.parametrize("ragged", [False, True])
def test_what_a_device_does_not_hold_cannot_spoil_it(ragged):
    """The samples of device 0 are no numbers; smaller batches and shorter jobs are filled up with something."""
    task, spoilt = task_of(MLP), task_of(MLP)
    images = spoilt.data.x_train.copy()
    images[spoilt.data.train_index[0]] = np.nan
    spoilt = replace(spoilt, data=replace(spoilt.data, images=lambda: (images, images)))
    jobs = [job(task, k, steps=3 + k, ragged=ragged) for k in range(5)]
    assert same(Batched(spoilt).run(jobs)[1:], Batched(task).run(jobs)[1:])
    assert not torch.isfinite(Batched(spoilt).run(jobs)[0].w).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("batch", "classes"), [(10, 10), (1, 10), (7, 3), (16, 62)])
def test_the_loss_of_a_sample_does_not_know_its_neighbours(dtype, batch, classes):
    """A processor computes the numbers at the end of a row, short of a whole vector, by another rule."""
    generator = torch.Generator().manual_seed(0)
    logits = 5 * torch.randn(40, batch, classes, generator=generator, dtype=dtype)
    y = torch.randint(0, classes, (40, batch), generator=generator)
    share = torch.rand(40, batch, generator=generator, dtype=dtype)
    together = log_loss(logits, y, share)
    for first, count in ((0, 1), (0, 3), (1, 3), (5, 7), (17, 16), (3, 31)):
        some = slice(first, first + count)
        alone = log_loss(logits[some], y[some], share[some])
        assert all(torch.equal(one, each[some]) for one, each in zip(alone, together, strict=True))
    leaf = logits.double().requires_grad_()
    expected = torch.nn.functional.cross_entropy(leaf.flatten(0, 1), y.flatten(), reduction="none")
    (expected * share.flatten()).sum().backward()
    assert torch.allclose(together[0].flatten().double(), expected, rtol=1e-5, atol=4e-6)
    assert torch.equal(together[1], logits.argmax(2) == y)
    assert torch.allclose(together[2].double(), leaf.grad, atol=1e-6)


@pytest.mark.parametrize("devices", [(0,), (0, 1, 3)])
def test_a_common_start_stays_as_it_is_and_every_model_has_memory_of_its_own(devices):
    task = task_of(MLP)
    w, everything = task.initial(), torch.ones(4810, dtype=torch.bool)
    jobs = [job_of(task, Phase(w, everything, 2, 0.1), device=k) for k in devices]
    trained = Batched(task).run(jobs)
    assert torch.equal(w, task.initial())
    apart = [replace(one, phases=(replace(one.phases[0], start=w.clone()),)) for one in jobs]
    assert same(Batched(task).run(apart), trained)
    assert all(one.w.untyped_storage().nbytes() == 4 * 4810 for one in trained)


def test_the_memory_that_stays_moves_no_byte():
    """One executor for passes of other sizes, batches, widths, kinds and precision, to and fro, against new ones."""
    task = task_of(MLP, sizes=(40, 23, 5, 31, 40))  # device 2 has less than a batch
    half = torch.from_numpy(task.layout.expand(masks.prefix(task.layout, 0.5)))
    only_bias = torch.arange(4810) >= 4800
    passes = [
        [job(task, k) for k in (0, 1, 3, 4)],
        [job(task, k) for k in (0, 3)],
        [job(task, 2), job(task, 2)],
        [job(task, k, submodel=half) for k in (0, 1, 3, 4)],
        [job(task, k, mask=only_bias) for k in (0, 1, 3, 4)],
        [job(task, k, optimiser=Sgd(0.9)) for k in (0, 1, 3, 4)],
    ]
    stays = Batched(task)
    for one in passes + passes[::-1] + passes[::2]:
        assert same(stays.run(one), Batched(task).run(one))


def test_memory_stays_for_a_few_kinds_of_stacks_only_and_is_given_back():
    task, executor = task_of(MLP), Batched(task_of(MLP))
    bounds = [slot.slice for slot in task.layout.slots]
    for chosen in range(1, 1 << len(bounds)):
        mask = torch.zeros(4810, dtype=torch.bool)
        for i, where in enumerate(bounds):
            mask[where] = bool(chosen >> i & 1)
        executor.run([job(task, 0, mask=mask)])
        assert 0 < len(executor._kept) <= batched_module.KEPT
    executor.end()
    assert not executor._kept


def test_a_pass_leaves_no_garbage_behind():
    """What is freed at once is used again at once; models in cycles would wait for the collector."""
    task = task_of(MLP)
    jobs, executor = [job(task, k) for k in range(5)], Batched(task)
    executor.run(jobs)
    gc.collect()
    gc.disable()
    try:
        executor.run(jobs)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_how_many_steps_are_fetched_at_once_changes_no_byte(monkeypatch):
    task = task_of(MLP)
    jobs = [job(task, k, steps=2 + k, ragged=k > 2) for k in (0, 1, 2, 3, 4)]
    together = Batched(task).run(jobs)
    for size in (1, 30_000):  # bytes: a picture has 256
        monkeypatch.setattr(steps, "PICTURES", size)
        assert same(Batched(task).run(jobs), together)


def test_the_memory_of_a_chunk():
    """mlp on 8x8: 4,810 weights, 64 + 64 + 64 + 64 + 10 signals of each of 8 samples: 179 kB per model."""
    task, sizes = task_of(MLP), []
    executor = Batched(task, memory=500_000)
    original = batched_module.take_steps

    def counted(task, arithmetic, chunk, *rest):
        sizes.append(len(chunk))
        return original(task, arithmetic, chunk, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batched_module, "take_steps", counted)
        executor.run([job(task, k) for k in (0, 1, 3, 4, 0)])
    assert sizes == [2, 2, 1]


def full_beyond(limit, monkeypatch):
    """Chunks of more than so many models ask torch for more memory than there is."""
    original = batched_module.take_steps

    def small(task, arithmetic, chunk, *rest):
        if len(chunk) > limit:
            torch.empty(1 << 50)
        return original(task, arithmetic, chunk, *rest)

    monkeypatch.setattr(batched_module, "take_steps", small)


@pytest.mark.parametrize(("model", "limit"), [(MLP, 1), (MLP, 2), (CNN, 2)])
def test_a_full_memory_halves_the_chunk_says_so_and_moves_no_byte(monkeypatch, model, limit):
    task = task_of(model)
    jobs = [job(task, k) for k in range(5)]
    expected = Batched(task).run(jobs)
    full_beyond(limit, monkeypatch)
    executor = Batched(task)
    assert same(executor.run(jobs), expected)
    assert (
        all("too large for the memory" in line for line in executor.notes.lines())
        and executor.notes.lines()
    )


@pytest.mark.parametrize("model", [MLP, CNN])
def test_a_memory_for_nothing_ends_the_run_instead_of_changing_the_arithmetic(monkeypatch, model):
    task = task_of(model)
    full_beyond(0, monkeypatch)
    with pytest.raises(MemoryError, match="the memory does not hold the training of"):
        Batched(task).run([job(task, k) for k in range(5)])


def test_what_did_not_fit_is_given_back_before_the_halves_are_tried(monkeypatch):
    """Optimisers, gradients and pictures of the failed chunk would else take the room of its halves."""
    task, made, alive, original = task_of(MLP), [], [], steps.Stack.step
    begin = steps.Stack.__init__

    def counted(stack, *given):
        alive.append(sum(each() is not None for each in made))
        made.append(weakref.ref(stack))
        begin(stack, *given)

    def full(stack, *given):
        if stack.size > 1:
            torch.empty(1 << 50)
        return original(stack, *given)

    monkeypatch.setattr(steps.Stack, "__init__", counted)
    monkeypatch.setattr(steps.Stack, "step", full)
    executor = Batched(task)
    executor.run([job(task, k, optimiser=Adam()) for k in (0, 1, 3, 4)])
    assert len(alive) == 1 + 2 + 4 and not any(alive)
    assert [line.split(":")[0] for line in executor.notes.lines()] == [
        "fewer than 4 models at once", "fewer than 2 models at once",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "lr"), [(CNN, 1e20), ((Linear(33, 1), Relu(), Linear(1, 10)), 1e30)]
)
def test_what_is_shown_of_a_model_that_diverged_does_not_know_how_long_others_go_on(model, lr):
    task = task_of(model, (33,) if isinstance(model, tuple) else (1, 8, 8))
    short, long = job(task, 0, steps=1, lr=lr), job(task, 1, steps=3, lr=lr)
    alone, beside = Batched(task).run([short]), Batched(task).run([short, long])[:1]
    assert same(alone, beside) and np.isfinite(alone[0].loss)


def test_lanes_share_no_memory(monkeypatch):
    """Chunks of two lanes of an accelerator are under way at once: what one writes to is not the other's."""
    task = task_of(MLP)
    executor = Batched(task, memory=1)
    lanes, rooms = executor._lanes, {}

    def other():
        lanes.turn = 1 - lanes.turn
        return nullcontext()

    monkeypatch.setattr(lanes, "next", other)
    original = batched_module.take_steps

    def noted(task, arithmetic, *rest):
        found = original(task, arithmetic, *rest)
        rooms.setdefault(lanes.turn, set()).add(arithmetic.room.signals[0].data_ptr())
        return found

    monkeypatch.setattr(batched_module, "take_steps", noted)
    executor.run([job(task, k) for k in (0, 1, 3, 4)])
    assert len(rooms) == 2 and not rooms[0] & rooms[1]


def test_a_memory_that_fills_up_while_results_are_put_away_counts_no_phase_twice(monkeypatch):
    task = task_of(MLP)
    half = torch.from_numpy(task.layout.expand(masks.prefix(task.layout, 0.5)))
    counted = []

    def twice(k):
        first = Phase(task.initial(), torch.ones(4810, dtype=torch.bool), 2, 0.1, submodel=half)
        then = replace(first, start=lambda done: done[-1] * len(done))
        made = job_of(task, first, then, device=k)
        return replace(made, finish=lambda done: counted.append(len(done)) or done[-1])

    jobs, calls, original = [twice(k) for k in (0, 1, 3, 4)], [], batched_module.Piece.model
    expected = Batched(task).run(jobs)

    def full(piece, part):
        calls.append(piece)
        if len(calls) == 3:
            raise MemoryError
        return original(piece, part)

    monkeypatch.setattr(batched_module.Piece, "model", full)
    assert same(Batched(task).run(jobs), expected) and set(counted) == {2}


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"penalty": lambda w: w.square().sum()}, "a hook of the method looks at the flat model"),
        ({"collect": lambda w: w[:1]}, "a hook of the method looks at the flat model"),
        ({"criterion": lambda logits, y: logits.square().sum()}, "the loss is the method's own"),
        (
            {"submodel": (torch.ones(4810, dtype=torch.bool),) * 3},
            "every step has a submodel of its own",
        ),
    ],
)
def test_what_cannot_be_stacked_is_trained_one_by_one_and_said(more, reason):
    task = task_of(MLP)
    jobs = [job(task, 0), job(task, 1, **more), job(task, 3)]
    executor = Batched(task)
    trained, expected = executor.run(jobs), Resident(task).run(jobs)
    assert same(trained[1:2], expected[1:2])
    assert not same(trained[:1], expected[:1]) or not same(
        trained[2:], expected[2:]
    )  # they sum in another order
    (line,) = executor.notes.lines()
    assert (
        reason in line
        and line.startswith("one by one instead of batched")
        and line.endswith("(1 job)")
    )


def test_an_operation_that_cannot_be_stacked_is_said_too(monkeypatch):
    """The error is that of torch 2.3 where vmap meets an operation that it does not know."""
    task = task_of(CNN)
    jobs = [job(task, k, steps=1) for k in (0, 1)]

    def unknown(*_):
        raise RuntimeError(
            "Batching rule not implemented for aten::lucky_number. We could not generate a fallback.\n..."
        )

    monkeypatch.setattr(Vmapped, "gradients", unknown)
    executor = Batched(task)
    assert same(executor.run(jobs), Resident(task).run(jobs))
    assert executor.notes.lines() == [
        "one by one instead of batched: Batching rule not implemented for aten::lucky_number. We could not generate a "
        "fallback. (2 jobs)"
    ]


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_texts_can_be_stacked():
    task = task_of("shakespeare-lstm", shape=(5,), batch=4)
    jobs = [job(task, k, steps=1) for k in (0, 1)]
    executor = Batched(task)
    assert_close(executor.run(jobs), Resident(task).run(jobs))
    assert executor.notes.lines() == []


def test_batch_norm_and_padding_do_not_go_together():
    task = task_of("spafl-conv4", shape=(3, 28, 28), sizes=(6, 5), batch=4)
    executor = Batched(task)
    trained = executor.run([job(task, 0, steps=1), job(task, 1, steps=2, ragged=True)])
    assert_close(
        trained,
        Resident(task).run([job(task, 0, steps=1), job(task, 1, steps=2, ragged=True)]),
        1e-4,
    )
    assert "batch norm" in executor.notes.lines()[0] and executor.notes.lines()[0].endswith(
        "(1 job)"
    )


# --- processes -------------------------------------------------------------------------------------------------------


def waits_for(path):
    until = time.monotonic() + DEADLINE_S
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.005)


def in_a_helper(task, path, act, devices=range(4)):
    """Jobs that ``act`` in a forked process, after they left a trace; here they wait for the trace and are as ever."""
    home, w = os.getpid(), task.initial()

    def start(done):
        if os.getpid() == home:
            waits_for(path)
        elif not path.exists():
            path.touch()
            act()
        return w

    return [job(task, k, start=start) for k in devices]


@pytest.fixture
def cnn():
    return task_of(CNN)


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize(
    ("number", "word"), [(signal.SIGKILL, "signal 9"), (signal.SIGSEGV, "signal 11")]
)
def test_a_killed_process_changes_no_byte(cnn, tmp_path, workers, number, word):
    expected = Resident(cnn).run([job(cnn, k) for k in range(4)])
    pool = Pool(cnn, Resident(cnn), workers)
    jobs = in_a_helper(cnn, tmp_path / "killed", lambda: os.kill(os.getpid(), number))
    assert same(pool.run(jobs), expected)
    (line,) = pool.notes.lines()
    assert word in line and "trained again" in line
    assert same(pool.run(jobs), expected)  # the next pass has processes again
    assert pool.notes.lines() == [line]


def test_an_error_in_a_process_is_said_and_its_job_repeated(cnn, tmp_path):
    def fail():
        raise ValueError("no paper in the printer")

    pool = Pool(cnn, Resident(cnn), 2)
    trained = pool.run(in_a_helper(cnn, tmp_path / "failed", fail))
    assert same(trained, Resident(cnn).run([job(cnn, k) for k in range(4)]))
    assert "ValueError: no paper in the printer" in pool.notes.lines()[0]


def test_an_error_that_repeats_itself_is_raised(cnn, no_new_children):
    def broken(w):
        raise ZeroDivisionError("by design")

    with pytest.raises(ZeroDivisionError, match="by design"):
        Pool(cnn, Resident(cnn), 2).run([job(cnn, k, penalty=broken) for k in range(4)])


@pytest.fixture
def no_new_children():
    """Of this process; other tests of the session may have left helpers of libraries."""
    before = set(psutil.Process().children())
    yield
    assert not set(psutil.Process().children()) - before


def test_ctrl_c_leaves_no_process_behind(cnn, tmp_path, no_new_children):
    home, w, there = os.getpid(), cnn.initial(), tmp_path / "there"

    def start(done):
        if os.getpid() != home:
            there.touch()
            time.sleep(DEADLINE_S)
        waits_for(there)
        os.kill(home, signal.SIGINT)
        time.sleep(DEADLINE_S)
        return w

    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        Pool(cnn, Resident(cnn), 2).run([job(cnn, k, start=start) for k in range(4)])
    assert time.monotonic() - begin < DEADLINE_S / 2
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_process_holds_no_file_of_its_parent_open(cnn, tmp_path):
    """The lock of a run's folder must end with the run, also where its helpers live a moment longer."""
    lock = (tmp_path / "lock").open("w")
    home, w, there = os.getpid(), cnn.initial(), tmp_path / "there"

    def start(done):
        if os.getpid() == home:
            waits_for(there)
            return w
        there.touch()
        try:
            os.fstat(lock.fileno())
        except OSError:
            return w + 1
        return w

    jobs = [job(cnn, k, steps=0, start=start) for k in range(4)]
    started = [float((one.w - w).mean()) for one in Pool(cnn, Resident(cnn), 2).run(jobs)]
    assert 1.0 in started and not lock.closed
    os.fstat(lock.fileno())


def test_what_a_method_collects_comes_home(cnn):
    jobs = [job(cnn, k, collect=lambda w: w[:5] ** 2) for k in range(4)]
    assert same(Pool(cnn, Resident(cnn), 2).run(jobs), Resident(cnn).run(jobs))


def test_the_heaviest_pieces_come_first_and_few_jobs_need_no_fork(cnn, monkeypatch):
    jobs = [job(cnn, k, steps=s) for k, s in ((0, 1), (1, 9), (3, 5))]
    assert flops_of(cnn, jobs[1]) == 6 * sum(cnn.architecture.macs.values()) * 9 * 8
    pool = Pool(cnn, Resident(cnn), 2, least_s=10.0)
    assert [[one.device for one in piece] for piece in pool._cut(jobs)] == [[1], [3], [0]]
    assert Resident.pace.seconds(cnn, jobs) == pytest.approx(
        15 * (8e-4 + flops_of(cnn, jobs[1]) / 9 / 9e10)
    )
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("forked"))
    assert same(pool.run(jobs), Resident(cnn).run(jobs))
    Pool(cnn, Resident(cnn), 2).run(jobs[:1])
    Pool(cnn, Resident(cnn), 1).run(jobs)


def test_more_jobs_than_tickets(cnn):
    jobs = [job(cnn, k % 2, steps=0) for k in range(2500)]
    assert len(Pool(cnn, Resident(cnn), 2)._cut(jobs)) <= 1024
    assert len(Pool(cnn, Resident(cnn), 2).run(jobs)) == 2500


@pytest.mark.parametrize("executor", [Batched, Resident])
def test_two_torch_threads_move_no_byte(executor):
    """A product of a single large model comes out with other last bits, so that each process has one thread."""
    task = task_of(MLP, (1, 28, 28), sizes=(64, 40, 30), batch=128)
    jobs, before = [job(task, k, steps=4) for k in range(3)], torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        expected = executor(task).run(jobs)
        torch.set_num_threads(2)
        for pool in (
            Pool(task, executor(task), 2),
            Pool(task, executor(task), 2, least_s=9.0),
            Pool(task, executor(task), 1),
        ):
            assert same(pool.run(jobs), expected)
        trainer = Trainer(task, executor(task))
        promises = trainer.submit(jobs)
        assert same([one.result() for one in promises], expected)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_without_fork_a_pool_is_one_process_and_says_so(cnn, monkeypatch):
    jobs = [job(cnn, k) for k in range(3)]
    monkeypatch.delattr(os, "fork")
    pool = Pool(cnn, Resident(cnn), 2)
    assert same(pool.run(jobs), Resident(cnn).run(jobs))
    assert pool.notes.lines() == [
        "one process instead of 2: this system cannot fork a process that computes (3 jobs)"
    ]
    assert "cuda:0 cannot be shared" in no_fork(replace(cnn, device="cuda:0"))


# --- the choice ------------------------------------------------------------------------------------------------------


def test_names():
    task = task_of(CNN)
    assert [type(executors.choose(task, name, 2)).__name__ for name in executors.NAMES] == [
        "Pool",
        "Resident",
        "Pool",
        "Batched",
    ]
    assert executors.choose(task, "pool", 3).name == "resident, 3 processes"
    with pytest.raises(
        ValueError, match='there is no executor "fast"; there are auto, resident, pool, batched'
    ):
        executors.choose(task, "fast")


def test_the_rule_of_auto():
    """Perceptrons are stacked, on a CPU all else is trained one by one; the cores decide only about processes."""
    small, cnn = task_of(MLP), task_of(CNN)
    assert executors.arithmetic(small) == "stacked" and executors.arithmetic(cnn) == "one by one"
    assert executors.arithmetic(replace(cnn, device="cuda")) == "stacked"
    assert executors.arithmetic(cnn, "batched") == "stacked"
    assert executors.arithmetic(small, "pool") == "one by one"
    for task, inner in ((small, Batched), (cnn, Resident)):
        assert isinstance(executors.choose(task, workers=1), inner)
        both = executors.choose(task, workers=2)
        assert (
            isinstance(both, Pool) and isinstance(both.inner, inner) and both.least_s == FORK_PAYS_S
        )
        assert (
            isinstance(both.short, Paired if inner is Batched else Resident)
            and both.notes is both.short.notes
        )
