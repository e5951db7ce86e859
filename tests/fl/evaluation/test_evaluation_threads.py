"""Evaluation by several threads: the bytes of one, whatever the model."""

import numpy as np
import pytest
import torch

from edgesim import load, simulate
from edgesim.runs.setup import set_up
from fl.evaluation import evaluate as evaluation
from fl.evaluation import threaded_scoring
from fl.evaluation.evaluate import evaluate
from fl.models.layers.learned_layers import Conv, Linear, Norm
from fl.models.layers.weightless_layers import Flatten, Relu
from fl.task import LearningTask
from tests.fl.random_jobs import task_of
from tests.test_detours import CELL, TABLES

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


@pytest.mark.slow
@pytest.mark.parametrize(
    "whose", [[0] * 5, [0, 1, 2, 3, 4], [0, 0, 1, 1, 0]], ids=["one", "own", "some share"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_the_bytes_of_any_number_of_threads(kind, whose, monkeypatch):
    task = KINDS[kind]()
    # of own perceptrons two stacks, one of them of one model
    monkeypatch.setattr(evaluation, "STACK_BYTES", 2_000_000)
    method = Models(task, whose)
    expected = evaluate(task, method, None)
    assert len(set(expected.loss)) == 5
    for threads in (1, 3):
        assert bytes_of(evaluate(task, method, None, threads)) == bytes_of(expected)


def test_models_are_held_as_far_as_the_memory_allows(monkeypatch):
    """A digits-cnn has 6,058 weights of 4 bytes: three fill 70,000. The probe is the sixth."""
    task = task_of("digits-cnn", sizes=SIZES)
    method = Models(task, [0, 1, 2, 3, 4])
    expected = evaluate(task, method, None)
    monkeypatch.setattr(evaluation, "HELD_BYTES", 70_000)
    assert bytes_of(evaluate(task, method, None, 2)) == bytes_of(expected)
    models = list(evaluation.personal_models(task, method, None))
    sizes = [len(window) for window in evaluation.windows(([one] for one in models), 2)]
    assert sizes == [3, 2]


def test_two_torch_threads_move_no_byte():
    """With two, a product of a single large model has other last bits."""
    task = task_of("mlp", (1, 28, 28), SIZES)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        expected = evaluate(task, Models(task, [0] * 5), None)
        torch.set_num_threads(2)
        for threads in (1, 2):
            scores = evaluate(task, Models(task, [0] * 5), None, threads)
            assert bytes_of(scores) == bytes_of(expected)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_an_error_in_a_thread_is_raised(monkeypatch):
    task = KINDS["liu-cnn"]()

    def broken(*_):
        raise ZeroDivisionError("by design")

    monkeypatch.setattr(threaded_scoring, "batch_scores", broken)
    with pytest.raises(ZeroDivisionError, match="by design"):
        evaluate(task, Models(task, [0] * 5), None, 2)


@pytest.mark.slow
def test_a_run_is_evaluated_by_the_threads_that_train(tmp_path):
    (tmp_path / "four.yaml").write_text(CELL)
    scenario = load(tmp_path / "four.yaml")
    assert set_up(scenario, processes=3).executor.threads == 3
    for threads in (1, 2):
        simulate(scenario, out=tmp_path / str(threads), processes=threads)
    for table in TABLES:
        one, two = (tmp_path / folder / table for folder in ("1", "2"))
        assert one.read_bytes() == two.read_bytes(), table
