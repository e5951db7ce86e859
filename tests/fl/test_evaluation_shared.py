"""Evaluation by several processes: the bytes of one, whatever the model, the processes, and what becomes of them."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch

from edgesim import load, simulate
from edgesim.runs.setup import set_up
from fl.evaluation import evaluate as evaluation
from fl.evaluation import evaluation_batches as units
from fl.evaluation.evaluate import evaluate
from fl.executors import crew, processes
from fl.executors.batched import Batched
from fl.executors.choice import FORK_PAYS_S
from fl.executors.fallbacks import IN_EVALUATION
from fl.executors.pool import Pool
from fl.executors.resident import Resident
from fl.models.layers import Conv, Linear, Norm
from fl.models.stateless_layers import Flatten, Relu
from fl.task import LearningTask
from tests.fl.test_executors import task_of, waits_for
from tests.test_detours import CELL, TABLES

HOME = os.getpid()
SIZES = (400, 23, 8, 310, 60)
NORMED = (Conv(1, 4, 3, 1), Norm(), Relu(), Flatten(), Linear(256, 10))
KINDS = {
    "liu-cnn": lambda: task_of("liu-cnn", (1, 12, 12), SIZES),
    "normed": lambda: task_of(NORMED, sizes=SIZES),
    "mlp": lambda: task_of("mlp", sizes=SIZES),
    "wide mlp": lambda: task_of(
        "mlp", (1, 28, 28), SIZES
    ),  # rounds otherwise in batches of another size
    "shakespeare-lstm": lambda: task_of("shakespeare-lstm", (7,), SIZES),
}


class Models:
    """Device k uses model number ``whose[k]``; one model more is probed."""

    def __init__(self, task: LearningTask, whose: list[int]) -> None:
        w = task.initial()
        self.each, self.whose = [w * (1 + 0.2 * i) for i in range(5)], whose

    def personalise(self, state, k):
        return self.each[self.whose[k]]

    def probes(self, state):
        return {"last": self.each[-1]}

    def measures(self, state):
        return {}


def bytes_of(scores) -> bytes:
    return (
        scores.loss.tobytes()
        + scores.accuracy.tobytes()
        + np.array([*scores.measures.values()]).tobytes()
    )


@pytest.fixture
def forks(monkeypatch):
    """Every evaluation is worth it; how many processes were forked."""
    made, fork = [], crew.fork

    def counted(*args):
        made.append(os.getpid())
        return fork(*args)

    monkeypatch.setattr(units, "FORK_PAYS_S", 0.0)
    monkeypatch.setattr(crew, "fork", counted)
    return made


@pytest.mark.parametrize(
    "whose", [[0] * 5, [0, 1, 2, 3, 4], [0, 0, 1, 1, 0]], ids=["one", "own", "some share"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_the_bytes_of_any_number_of_processes(kind, whose, forks, monkeypatch):
    task = KINDS[kind]()
    monkeypatch.setattr(
        evaluation, "MEMORY", 2_000_000
    )  # of own perceptrons two stacks, one of them of one model
    method = Models(task, whose)
    expected = evaluate(task, method, None)
    assert len(set(expected.loss)) == 5 and not forks
    passes = 2 if kind == "normed" else 1  # first the statistics
    for workers in (1, 2, 3):
        pool = Pool(task, Resident(task), workers)
        assert bytes_of(evaluate(task, method, None, pool)) == bytes_of(expected)
        assert len(forks) == passes * (workers - 1) and pool.notes.lines() == []
        forks.clear()


def test_models_are_held_as_far_as_the_memory_allows(forks, monkeypatch):
    """A digits-cnn has 6,058 weights of 4 bytes, so that three fill 70,000: two windows, the probe in the second."""
    task = task_of("digits-cnn", sizes=SIZES)
    method = Models(task, [0, 1, 2, 3, 4])
    expected = evaluate(task, method, None)
    monkeypatch.setattr(evaluation, "HELD", 70_000)
    pool = Pool(task, Resident(task), 2)
    assert bytes_of(evaluate(task, method, None, pool)) == bytes_of(expected)
    assert len(forks) == 2


def test_more_batches_than_tickets(forks, monkeypatch):
    task = task_of("digits-cnn", sizes=SIZES)
    method = Models(task, [0, 1, 2, 3, 4])
    expected = evaluate(task, method, None)
    monkeypatch.setattr(units, "MOST_PIECES", 3)
    seen, each = [], crew.Crew.each

    def counted(self, do, sizes, *travel):
        seen.append(sizes)
        return each(self, do, sizes, *travel)

    monkeypatch.setattr(crew.Crew, "each", counted)
    assert bytes_of(evaluate(task, method, None, Pool(task, Resident(task), 2))) == bytes_of(
        expected
    )
    assert seen == [[6, 6, 5]]  # 4 + 1 + 1 + 3 + 1 batches of own samples, 7 of all 801


# --- whether it is worth it ------------------------------------------------------------------------------------------


def test_a_small_evaluation_is_not_forked(monkeypatch):
    monkeypatch.setattr(crew, "fork", lambda *_: pytest.fail("forked"))
    task = KINDS["liu-cnn"]()
    evaluate(task, Models(task, [0] * 5), None, Pool(task, Resident(task), 2))


def test_what_is_worth_it_is_told_by_the_flops():
    """10,000 pictures of 28 x 28 in liu-cnn: 80 batches, 22.1 million multiply-adds each picture."""
    task = replace(task_of("liu-cnn", (1, 28, 28), (10_000,)), batch_size=20)
    (look,) = evaluation.looks(task, Models(task, [0]), None)
    whole = evaluation.units_of(task, [look], [None])
    macs = (
        28 * 28 * 25 * 32
        + 14 * 14 * 25 * 32 * 64
        + sum(n for name, n in task.architecture.macs.items() if name.startswith("linear"))
    )
    assert len(whole) == 80
    assert sum(unit.seconds for unit in whole) == pytest.approx(
        80 * 5e-4 + 2 * macs * 10_000 / 9e10
    )
    assert sum(unit.seconds for unit in whole) > 10 * FORK_PAYS_S
    small = task_of("mlp", sizes=(10,) * 5)
    stack = list(evaluation.looks(small, Models(small, [0, 1, 2, 3, 4]), None))
    (unit,) = evaluation.units_of(small, stack, [None] * 5)
    assert unit.seconds == pytest.approx(5 * 3e-5 + 2 * 4736 * 50 / 3.5e10)


def test_as_many_processes_as_train(forks):
    """One where training has one: a stack or one after the other, forced."""
    task = KINDS["liu-cnn"]()
    for executor in (None, Resident(task), Batched(task), Pool(task, Resident(task), 1)):
        evaluate(task, Models(task, [0] * 5), None, executor)
    assert not forks


def test_without_fork_it_is_one_process_and_says_so(forks, monkeypatch):
    task = KINDS["mlp"]()
    expected = evaluate(task, Models(task, [0] * 5), None)
    monkeypatch.setattr(
        crew, "no_fork", lambda task: processes.no_fork(replace(task, device="cuda:0"))
    )
    pool = Pool(task, Resident(task), 2)
    assert bytes_of(evaluate(task, Models(task, [0] * 5), None, pool)) == bytes_of(expected)
    assert pool.notes.lines() == [
        "in evaluation: one process instead of 2: cuda:0 cannot be shared with a forked process (14 batches)"
    ]
    assert not forks


def test_a_system_that_has_no_process_left(forks, monkeypatch):
    def full(*_):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    task = KINDS["mlp"]()
    expected = evaluate(task, Models(task, [0] * 5), None)
    monkeypatch.setattr(crew, "fork", full)
    pool = Pool(task, Resident(task), 2)
    assert bytes_of(evaluate(task, Models(task, [0] * 5), None, pool)) == bytes_of(expected)
    assert pool.notes.lines() == [
        "in evaluation: fewer than 2 processes: Resource temporarily unavailable (14 batches)"
    ]


def test_two_torch_threads_move_no_byte(forks):
    """With two, a product of a single large model comes out with other last bits."""
    task = task_of("mlp", (1, 28, 28), SIZES)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        expected = evaluate(task, Models(task, [0] * 5), None)
        torch.set_num_threads(2)
        for executor in (None, Pool(task, Resident(task), 2)):
            assert bytes_of(evaluate(task, Models(task, [0] * 5), None, executor)) == bytes_of(
                expected
            )
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


# --- what goes wrong -------------------------------------------------------------------------------------------------


def in_a_helper(monkeypatch, path, act):
    """The first forked process acts at its first batch, after it left a trace, for which this one waits."""
    answer, waited = units.batch_answers, []

    def acting(*args):
        if os.getpid() == HOME:
            if not waited:
                waits_for(path)
            waited.append(True)
        elif not path.exists():
            path.touch()
            act()
        return answer(*args)

    monkeypatch.setattr(units, "batch_answers", acting)


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("kind", ["liu-cnn", "normed"])
def test_a_killed_process_changes_no_byte(kind, workers, forks, monkeypatch, tmp_path):
    task = KINDS[kind]()
    method = Models(task, [0, 1, 2, 3, 4])
    expected = evaluate(task, method, None)
    in_a_helper(monkeypatch, tmp_path / "killed", lambda: os.kill(os.getpid(), signal.SIGKILL))
    pool = Pool(task, Resident(task), workers)
    assert bytes_of(evaluate(task, method, None, pool)) == bytes_of(expected)
    said = "in evaluation: a process ended by signal 9; what it had begun was evaluated again (1 batch)"
    assert pool.notes.lines() == [said]
    assert bytes_of(evaluate(task, method, None, pool)) == bytes_of(expected)
    assert pool.notes.lines() == [said]


def test_an_error_in_a_process_is_said(forks, monkeypatch, tmp_path):
    def fail():
        raise ValueError("no paper in the printer")

    task = KINDS["liu-cnn"]()
    expected = evaluate(task, Models(task, [0] * 5), None)
    in_a_helper(monkeypatch, tmp_path / "failed", fail)
    pool = Pool(task, Resident(task), 2)
    assert bytes_of(evaluate(task, Models(task, [0] * 5), None, pool)) == bytes_of(expected)
    (line,) = pool.notes.lines()
    assert line.startswith(IN_EVALUATION + "a process failed (ValueError: no paper in the printer)")


def test_an_error_that_repeats_itself_is_raised(forks, monkeypatch):
    task = KINDS["liu-cnn"]()

    def broken(*_):
        raise ZeroDivisionError("by design")

    monkeypatch.setattr(units, "batch_answers", broken)
    with pytest.raises(ZeroDivisionError, match="by design"):
        evaluate(task, Models(task, [0] * 5), None, Pool(task, Resident(task), 2))


# --- a run -----------------------------------------------------------------------------------------------------------


def test_a_run_is_told_its_processes_and_says_what_went_wrong(forks, monkeypatch, tmp_path):
    (tmp_path / "four.yaml").write_text(CELL)
    scenario = load(tmp_path / "four.yaml")
    straight = simulate(scenario, out=tmp_path / "one", processes=1)
    assert not forks and straight.summary["training"]["detours"] == []
    in_a_helper(monkeypatch, tmp_path / "killed", lambda: os.kill(os.getpid(), signal.SIGKILL))
    shared = simulate(scenario, out=tmp_path / "two", processes=2)
    assert len(forks) == 2  # rounds; the training of four jobs is too short for it
    (detour,) = shared.summary["training"]["detours"]
    assert detour.startswith("in evaluation: a process ended by signal 9")
    for table in TABLES:
        assert (tmp_path / "one" / table).read_bytes() == (tmp_path / "two" / table).read_bytes(), (
            table
        )


def test_evaluation_and_training_share_their_notes_and_number(tmp_path):
    (tmp_path / "four.yaml").write_text(CELL)
    setup = set_up(load(tmp_path / "four.yaml"), processes=3)
    trainer = setup.trainer()
    setup.executor.notes.add("in evaluation: nothing", 2)
    assert setup.executor.workers == 3 and trainer.notes == ["in evaluation: nothing (2 batches)"]
