"""Codes that a shipped model does not know are refused before anything is trained."""

from __future__ import annotations

import numpy as np
import pytest

from edgesim import load, simulate
from edgesim.errors import RunError
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
