"""Scales that samples cannot have are refused at their key, before anything is trained."""

from __future__ import annotations

import numpy as np
import pytest

from edgesim import load, simulate
from edgesim.errors import EdgesimError
from edgesim.runs.run import feasibility
from edgesim.runs.setup import set_up

YAML = """
name: scaled
rounds: 1
network: {bandwidth: 1 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 100 dB}}}
devices:
  - {count: 2, tx_power: 28 dBm, capability: 1, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}
allocation: {solver: equal}
learning: {dataset: x.npz, partition: {kind: iid}, model: mlp, batch_size: 8,
           inputs: bytes,
           method: {name: fedavg, lr: 0.1}}
"""


@pytest.fixture
def scaled(tmp_path):
    """The scenario of this file on these samples, the same for training and test."""

    def make(x):
        (tmp_path / "scaled.yaml").write_text(YAML)
        y = np.arange(len(x)) % 2
        np.savez(tmp_path / "x.npz", x_train=x, y_train=y, x_test=x, y_test=y)
        return load(tmp_path / "scaled.yaml")

    return make


def test_measurements_have_no_bytes(scaled):
    """Such samples were multiplied by 255, though real numbers are used as they are."""
    measured = scaled(np.linspace(-1.5, 2.5, 16, dtype=np.float32)[:, None])
    sentence = (
        r"scaled\.yaml:9: learning\.inputs is bytes, which is for pictures in \[0, 1\], "
        r"but x_train holds values from -1\.5 to 2\.5; remove it$"
    )
    for call in (simulate, feasibility):
        with pytest.raises(EdgesimError, match=sentence):
            call(measured)


def test_codes_have_no_scale(scaled):
    sentence = r"scaled\.yaml:9: learning\.inputs is bytes, but texts have no scale; remove it$"
    with pytest.raises(EdgesimError, match=sentence):
        set_up(scaled(np.zeros((16, 3), dtype=np.int64)))


def test_pictures_have_bytes(scaled):
    """As bytes and as ToTensor of torchvision gives them, in [0, 1]."""
    pictures = np.arange(16 * 4, dtype=np.uint8).reshape(16, 2, 2) * 4
    in_unit = (pictures / np.float32(255))[:, None]
    for x in (pictures, in_unit):
        data = set_up(scaled(x)).task.data
        np.testing.assert_allclose(data.x_train[:, 0], pictures, rtol=1e-6)
