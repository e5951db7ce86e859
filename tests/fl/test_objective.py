"""Values of samples that have several labels."""

import numpy as np
import pytest
import torch

from edgesim.seeds import Seeds
from fl.data.samples import IGNORED, Federated
from fl.models.architectures import build
from fl.objective import hits
from fl.task import LearningTask
from tests.fl.conftest import Bench


def test_the_share_of_hits_of_a_text_is_exact():
    """7 of 10 steps are 0.7, not the float32 next to it, which is below a target of 0.7."""
    y = torch.tensor([[1] * 10 + [IGNORED] * 2])
    outputs = torch.zeros(1, 2, 12)
    outputs[0, 1, :7] = outputs[0, 0, 7:] = 1.0
    assert hits(outputs, y).double().tolist() == [0.7]


def test_methods_test_their_models_on_words_not_on_texts(monkeypatch):
    """Of a word in one text and two in another the first is hit: a third, not the mean of 1 and 0.

    As the accuracy of a run and of training, which bandits compare it with.
    """
    y = np.array([[1, IGNORED], [2, 3]])
    x = np.where(y == IGNORED, 0, y)
    data = Federated(y, y, lambda: (x, x), (2,), [np.arange(2)], [np.arange(2)], tuple("01234"))
    model = build("reddit-lstm", (2,), 5, text=True, at_every_step=True)
    bench = Bench(LearningTask(model, data, 2, Seeds(0)))
    w = torch.zeros(model.layout.size)
    w[model.layout.slots[-1].slice][1] = 1.0  # the bias of word 1, which is always predicted
    monkeypatch.setattr(LearningTask, "initial", lambda task: w)
    assert bench.method("lotteryfl").accuracy(0, w) == pytest.approx(1 / 3)
    assert bench.method("fedlps").ratios.first_accuracy(0) == pytest.approx(1 / 3)
