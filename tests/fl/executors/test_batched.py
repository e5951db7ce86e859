"""Stacks of a cohort: chunks, full memories, and jobs that cannot be stacked."""

import gc
import weakref
from dataclasses import replace

import pytest
import torch

from fl.contracts import Adam, Phase, Sgd
from fl.executors import batched as batched_module
from fl.executors.batched import Batched
from fl.executors.one_by_one import OneByOne
from fl.masks import unit_masks as masks
from fl.stacked_training import stacked_sgd
from fl.stacked_training.stackable_phases import TrainedPart
from fl.stacked_training.vmapped_gradients import VmappedGradients
from tests.fl.random_jobs import CNN, MLP, OTHER, assert_close, job, job_of, same, task_of


def test_the_memory_that_stays_moves_no_byte():
    """One executor for passes of other sizes, batches, widths, kinds and precision, to and fro,
    against new ones.
    """
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


@pytest.mark.slow
def test_a_pass_leaves_no_garbage_behind():
    """Models in cycles would wait for the collector; what is freed is used again at once."""
    task = task_of(MLP)
    jobs, executor = [job(task, k) for k in range(5)], Batched(task)
    executor.run(jobs)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)  # threads of other tests may leave garbage of their own
    try:
        executor.run(jobs)
        gc.collect()
        assert not [thing for thing in gc.garbage if isinstance(thing, torch.Tensor)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize(
    ("model", "memory", "count", "expected"),
    [(MLP, 500_000, 5, [1, 2, 2]), (CNN, None, 100, [50, 50])],
)
def test_the_memory_of_a_chunk(model, memory, count, expected):
    """mlp on 8x8: 4,810 weights, 64 + 64 + 64 + 64 + 10 signals of each of 8 samples: 179 kB per
    model. A hundred small CNNs are enough for two threads.
    """
    task, sizes = task_of(model), []
    executor = Batched(task, memory=memory)
    original = batched_module.train_stack

    def counted(task, gradients, rows, *rest):
        sizes.append(len(rows))
        return original(task, gradients, rows, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batched_module, "train_stack", counted)
        executor.run([job(task, (0, 1, 3, 4)[i % 4]) for i in range(count)])
    assert sizes == expected


@pytest.mark.parametrize("model", [MLP, CNN])
def test_the_place_in_a_stack_moves_no_byte(model):
    """Models of odd widths, and batches of five, begin anywhere within a cache line."""
    task = task_of(model, batch=5)
    odd = torch.from_numpy(task.layout.expand(masks.prefix(task.layout, 0.9)))
    jobs = [job(task, k % 5, submodel=odd) for k in range(9)]
    expected = Batched(task).run(jobs)
    assert same(Batched(task).run(jobs[::-1]), expected[::-1])
    assert same(Batched(task, threads=2, memory=1).run(jobs), expected)


def full_beyond(limit, monkeypatch):
    """Chunks of more than so many models ask torch for more memory than there is."""
    original = batched_module.train_stack

    def small(task, gradients, rows, *rest):
        if len(rows) > limit:
            torch.empty(1 << 50)
        return original(task, gradients, rows, *rest)

    monkeypatch.setattr(batched_module, "train_stack", small)


@pytest.mark.parametrize("limit", [1, 2])
def test_a_full_memory_halves_the_chunk_of_perceptrons_and_moves_no_byte(monkeypatch, limit):
    task = task_of(MLP)
    jobs = [job(task, k) for k in range(5)]
    expected = Batched(task).run(jobs)
    full_beyond(limit, monkeypatch)
    executor = Batched(task)
    assert same(executor.run(jobs), expected)
    assert (
        all("too large for the memory" in line for line in executor.fallbacks.lines())
        and executor.fallbacks.lines()
    )


@pytest.mark.parametrize("model", [MLP, CNN, OTHER], ids=["mlp", "cnn", "other"])
def test_a_memory_for_nothing_ends_the_run_instead_of_changing_the_arithmetic(monkeypatch, model):
    task = task_of(model)
    full_beyond(0, monkeypatch)
    with pytest.raises(MemoryError, match="the memory does not hold the training of"):
        Batched(task).run([job(task, k) for k in range(5)])


def test_what_did_not_fit_is_given_back_before_the_halves_are_tried(monkeypatch):
    """Optimisers, gradients and pictures of the failed chunk would else take the room of its
    halves.
    """
    task, made, alive, original = task_of(MLP), [], [], stacked_sgd.Stack.step
    begin = stacked_sgd.Stack.__init__

    def counted(stack, *given):
        alive.append(sum(each() is not None for each in made))
        made.append(weakref.ref(stack))
        begin(stack, *given)

    def full(stack, *given):
        if stack._size > 1:
            torch.empty(1 << 50)
        return original(stack, *given)

    monkeypatch.setattr(stacked_sgd.Stack, "__init__", counted)
    monkeypatch.setattr(stacked_sgd.Stack, "step", full)
    executor = Batched(task)
    executor.run([job(task, k, optimiser=Adam()) for k in (0, 1, 3, 4)])
    assert len(alive) == 1 + 2 + 4 and not any(alive)
    assert [line.split(":")[0] for line in executor.fallbacks.lines()] == [
        "fewer than 4 models at once", "fewer than 2 models at once",
    ]  # fmt: skip


def test_a_memory_that_fills_up_while_results_are_put_away_counts_no_phase_twice(monkeypatch):
    task = task_of(MLP)
    half = torch.from_numpy(task.layout.expand(masks.prefix(task.layout, 0.5)))
    counted = []

    def twice(k):
        first = Phase(task.initial(), torch.ones(4810, dtype=torch.bool), 2, 0.1, submodel=half)
        then = replace(first, start=lambda done: done[-1] * len(done))
        made = job_of(task, first, then, device=k)
        return replace(made, finish=lambda done: counted.append(len(done)) or done[-1])

    jobs, calls, original = [twice(k) for k in (0, 1, 3, 4)], [], TrainedPart.put_back
    expected = Batched(task).run(jobs)

    def full(part, trained, w):
        calls.append(part)
        if len(calls) == 3:
            raise MemoryError
        return original(part, trained, w)

    monkeypatch.setattr(TrainedPart, "put_back", full)
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
    trained, expected = executor.run(jobs), OneByOne(task).run(jobs)
    assert same(trained[1:2], expected[1:2])
    assert not same(trained[:1], expected[:1]) or not same(
        trained[2:], expected[2:]
    )  # they sum in another order
    (line,) = executor.fallbacks.lines()
    assert (
        reason in line
        and line.startswith("one by one instead of batched")
        and line.endswith("(1 job)")
    )


def test_an_operation_that_cannot_be_stacked_is_said_too(monkeypatch):
    """The error is that of torch 2.3 where vmap meets an operation that it does not know."""
    task = task_of(OTHER)
    jobs = [job(task, k, steps=1) for k in (0, 1)]

    def unknown(*_):
        raise RuntimeError("Batching rule not implemented for aten::lucky_number.\n...")

    monkeypatch.setattr(VmappedGradients, "__call__", unknown)
    executor = Batched(task)
    assert same(executor.run(jobs), OneByOne(task).run(jobs))
    assert executor.fallbacks.lines() == [
        "one by one instead of batched: "
        "Batching rule not implemented for aten::lucky_number. (2 jobs)"
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_texts_can_be_stacked():
    task = task_of("shakespeare-lstm", shape=(5,), batch=4)
    jobs = [job(task, k, steps=1) for k in (0, 1)]
    executor = Batched(task)
    assert_close(executor.run(jobs), OneByOne(task).run(jobs))
    assert executor.fallbacks.lines() == []


@pytest.mark.slow
def test_batch_norm_and_padding_do_not_go_together():
    task = task_of("spafl-conv4", shape=(3, 28, 28), sizes=(6, 5), batch=4)
    executor = Batched(task)
    trained = executor.run([job(task, 0, steps=1), job(task, 1, steps=2, ragged=True)])
    assert_close(
        trained,
        OneByOne(task).run([job(task, 0, steps=1), job(task, 1, steps=2, ragged=True)]),
        1e-4,
    )
    assert "batch norm" in executor.fallbacks.lines()[0] and executor.fallbacks.lines()[0].endswith(
        "(1 job)"
    )
