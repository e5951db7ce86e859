"""Parameter counts of the papers, layout, initial weights, models that do not fit."""

import numpy as np
import pytest
import torch

from edgesim.seeds import Seeds
from fl.models import MODELS, ModelError, build


def counts(name, shape=(1, 28, 28)):
    layout = build(name, shape, 10).layout
    return int(layout.role("features").sum()), int(layout.role("classifier").sum())


def test_liu_cnn_has_the_weights_of_the_paper():  # liu.md: 52,096 personal, 402,826 global
    assert counts("liu-cnn") == (52_096, 402_826)


def test_lenet5_caffe_has_430500_weights_and_580_biases():
    slots = build("lenet5-caffe", (1, 28, 28), 10).layout.slots
    assert sum(s.size for s in slots if s.kind == "weight") == 430_500
    assert sum(s.size for s in slots if s.kind == "bias") == 580


def test_small_models():
    assert counts("mlp", (1, 8, 8)) == (64 * 64 + 64, 64 * 10 + 10)
    assert counts("digits-cnn", (1, 8, 8)) == (80 + 1168, 64 * 64 + 64 + 650)
    assert counts("liu-cnn", (3, 32, 32)) == (3 * 32 * 25 + 32 + 51_264, 64 * 64 * 128 + 128 + 1290)


@pytest.mark.parametrize("name", MODELS)
def test_logits_of_every_model_and_the_flat_vector_without_gaps(name):
    architecture = build(name, (1, 28, 28), 10)
    layout = architecture.layout
    ends = [s.offset + s.size for s in layout.slots]
    assert [s.offset for s in layout.slots] == [0, *ends[:-1]]
    assert ends[-1] == layout.size
    w = torch.from_numpy(architecture.initial(Seeds(0).stream("init")))
    assert architecture.logits(w, torch.rand(3, 1, 28, 28)).shape == (3, 10)


def test_split_gives_views():
    layout = build("mlp", (1, 8, 8), 10).layout
    w = np.zeros(layout.size, dtype=np.float32)
    layout.named(w)["linear2.bias"][:] = 1
    assert w.sum() == 10
    assert w[-10:].all()


def test_initial_weights_are_torchs_default_and_keyed():
    architecture = build("digits-cnn", (1, 8, 8), 10)
    w = architecture.initial(Seeds(1).stream("init"))
    assert w.dtype == np.float32
    assert np.array_equal(w, architecture.initial(Seeds(1).stream("init")))
    for name, fan_in in [("conv1.weight", 9), ("conv1.bias", 9), ("conv2.weight", 72), ("linear1.weight", 64)]:
        largest = np.abs(architecture.layout.named(w)[name]).max()
        assert 0.6 * fan_in**-0.5 < largest <= fan_in**-0.5 * (1 + 1e-6)


def test_a_model_that_does_not_fit_says_so():
    with pytest.raises(ModelError, match="lenet5-caffe does not fit images of 1x8x8"):
        build("lenet5-caffe", (1, 8, 8), 10)
    with pytest.raises(ModelError, match=r'no model "liu_cnn".*did you mean "liu-cnn"'):
        build("liu_cnn", (1, 28, 28), 10)
