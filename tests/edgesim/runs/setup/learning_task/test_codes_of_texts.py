"""Codes that a model does not know are refused before anything is trained."""

from __future__ import annotations

import numpy as np
import pytest
from torch import nn

from edgesim import load, simulate
from edgesim.errors import RunError, ScenarioError
from edgesim.runs.run import feasibility

YAML = """
name: codes
rounds: 1
network: {bandwidth: 1 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 100 dB}}}
devices:
  - {count: 2, tx_power: 28 dBm, capability: 1, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}
allocation: {solver: equal}
learning: {dataset: codes.npz, partition: {kind: iid}, model: shakespeare-lstm, batch_size: 8,
           method: {name: fedavg, lr: 0.1}}
"""


@pytest.fixture
def text(tmp_path):
    """The scenario of this file on texts of 3 codes, of which one, in x_test, is the largest."""

    def make(largest):
        (tmp_path / "codes.yaml").write_text(YAML)
        x, y = np.zeros((8, 3), dtype=np.int64), np.arange(8) % 3
        tested = x.copy()
        tested[5, 1] = largest
        np.savez(tmp_path / "codes.npz", x_train=x, y_train=y, x_test=tested, y_test=y)
        return load(tmp_path / "codes.yaml")

    return make


def test_codes_beyond_the_classes_are_one_sentence(text):
    sentence = (
        r"codes\.yaml:8: learning\.model: model shakespeare-lstm knows one code for each of the 3 "
        "classes, 0 to 2, but x_test holds the code 3"
    )
    for call in (simulate, feasibility):
        with pytest.raises(RunError, match=sentence):
            call(text(3))


@pytest.mark.slow
def test_codes_of_the_classes_are_known(text):
    assert np.isfinite(simulate(text(2)).rounds.loss).all() and feasibility(text(2)).feasible


class Line(nn.Linear):
    """Of three numbers, so not of codes."""

    def __init__(self, classes):
        super().__init__(3, classes)


class Words(nn.Sequential):
    """Looks up codes."""

    def __init__(self, classes):
        super().__init__(nn.Embedding(3, 4), nn.Flatten(), nn.Linear(12, classes))


@pytest.mark.parametrize(
    ("make", "kind", "end"),
    [
        (Line, np.int64, "; whole numbers are codes; where they are none, give them as float32"),
        (Words, np.uint8, "; real numbers and bytes are no codes; give those as int64"),
        (Words, np.float32, "; real numbers and bytes are no codes; give those as int64"),
    ],
)
def test_a_type_that_an_own_model_cannot_read_is_named(text, make, kind, end):
    scenario, y = text(0), np.arange(8) % 3
    x = np.zeros((8, 3), dtype=kind)
    with pytest.raises(RunError, match=rf"model {make.__name__} fails on .*Long.*{end}$"):
        simulate(scenario, data=(x, y, x, y), model=make)


def test_so_it_is_where_the_code_is_in_a_file(text):
    scenario = text(0)
    code = "from torch import nn\n\nclass Net(nn.Linear):\n    def __init__(self):\n"
    code += "        super().__init__(3, 3)\n\n    def forward(self, x):\n"
    code += "        return super().forward(x)\n"
    (scenario.folder / "net.py").write_text(code)
    own = load(scenario.folder / "codes.yaml", "learning.model=./net.py:Net")
    with pytest.raises(ScenarioError, match=r"net\.py:8: RuntimeError: .*; whole numbers are cod"):
        feasibility(own, allow_code=True)
