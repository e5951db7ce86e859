"""MOON: the contrastive term by hand, its limits, and what it costs."""

from dataclasses import replace
from math import exp, log

import pytest
import torch

from fl.errors import ModelError
from fl.methods.moon import MOON, contrast
from fl.models.architectures import build
from tests.fl.conftest import Bench

PLAIN = {"local_steps": 3, "lr": 0.1}


def test_the_term_by_hand():
    """Cosines 1 and 0 at T = 0.5: log(1 + e^-2) = 0.126928; two equal cosines: log 2."""
    z, near, far = (torch.tensor([each]) for each in ([3.0, 0.0], [1.0, 0.0], [0.0, 2.0]))
    assert contrast(z, near, far, 0.5).item() == pytest.approx(log(1 + exp(-2)), abs=1e-6)
    assert contrast(z, near, far, 0.5).item() == pytest.approx(0.126928, abs=1e-6)
    assert contrast(z, near, near, 0.5).item() == pytest.approx(log(2))


def test_equal_models_pull_nowhere():
    z = torch.tensor([[0.3, -1.0, 2.0]], requires_grad=True)
    same = torch.tensor([[1.0, 0.5, -0.2]])
    (gradient,) = torch.autograd.grad(contrast(z, same, same, 0.5), z)
    assert gradient.abs().max() < 1e-7


@pytest.fixture(scope="module")
def headed(bench):
    """The bench whose model has the projection head."""
    return Bench(replace(bench.task, architecture=MOON.architecture(bench.task.architecture)))


def test_without_the_term_it_is_fedavg_on_the_model_with_the_head_to_the_byte(bench, headed):
    _, fedavg = headed.play("fedavg", **PLAIN)
    _, state = bench.play("moon", mu=0.0, **PLAIN)
    assert torch.equal(state.w, fedavg.w) and not state.local


@pytest.mark.slow
def test_the_first_round_has_no_previous_model_and_the_second_has(bench, headed):
    """l = log 2 at every step of the first round, as both cosines are the same."""
    _, fedavg = headed.play("fedavg", rounds=1, **PLAIN)
    _, one = bench.play("moon", rounds=1, **PLAIN)
    assert torch.allclose(one.w, fedavg.w, atol=1e-7) and len(one.local) == bench.task.devices
    _, fedavg = headed.play("fedavg", rounds=2, **PLAIN)
    _, two = bench.play("moon", rounds=2, **PLAIN)
    assert (two.w - fedavg.w).abs().max() > 1e-3


def test_features_are_what_the_output_layer_receives(headed):
    architecture, w = headed.task.architecture, headed.task.initial()
    x = headed.task.train[0][:5]
    z, logits = architecture.features(architecture.layout.split(w), x)
    weight, bias = architecture.layout.split(w)[-2:]
    assert z.shape == (5, 256) and torch.allclose(z @ weight.T + bias, logits, atol=1e-5)
    assert torch.equal(logits, architecture.logits(w, x))


def test_it_sends_one_model_and_computes_features_of_two_more(bench, headed):
    """Li et al., Algorithm 1: z of both is R(x), in front of the output layer of 256 to 10."""
    method, fedavg = bench.method("moon", **PLAIN), headed.method("fedavg", **PLAIN)
    assert method.payload(0.0) == fedavg.payload(0.0)
    train, contrasted = method.stages(0, 0.0)
    assert train.work == fedavg.stages(0, 0.0)[0].work
    macs = sum(method.task.architecture.macs.values()) - 256 * 10
    assert contrasted.work.flops == 2 * 3 * bench.task.batch(0) * 2 * macs


def test_a_model_that_is_of_another_kind_is_refused():
    text = build("shakespeare-lstm", (20,), 60)
    assert MOON.architecture(text).layers[-1].inputs == 256
    blind = replace(text, layers=text.layers[:-1])
    with pytest.raises(ModelError, match="does not end in a dense layer"):
        MOON.architecture(blind)
