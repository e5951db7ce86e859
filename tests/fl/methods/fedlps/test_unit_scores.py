"""Gradients of scores and weights: FedLPS, eqs. (4) to (12)."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from fl.masks import unit_masks as masks
from fl.methods.fedlps.unit_scores import HiddenUnits, PatternObjective, importance_loss
from fl.models.architectures import Architecture, build
from fl.models.layers.learned_layers import Linear


def model(*sizes, bias=False):
    layers = [Linear(a, b, bias=bias) for a, b in pairwise(sizes)]
    return Architecture("model", (sizes[0],), sizes[-1], tuple(layers)).layout


def flat(units, weights, scores):
    """w [P + 2 J] of these first weights and scores, everything else 1, no pattern yet."""
    w = torch.ones(units.layout.size + 2 * units.total)
    w[: len(weights)] = torch.tensor(weights)
    units.scores(w).copy_(torch.tensor(scores))
    units.pattern(w).zero_()
    return w


def gradients(objective, w, loss):
    leaf = w.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(loss(leaf), [leaf])
    return objective.units.weights(gradient), objective.units.scores(gradient)


@pytest.mark.parametrize(
    ("share", "kept"),
    [(1, "1111"), (0.75, "1011"), (0.5, "1001"), (0.6, "1001"), (0.25, "1000"), (1 / 16, "1000")],
)
def test_the_largest_scores_are_kept(share, kept):
    units = HiddenUnits(model(1, 4, 2), rows=True)
    assert (
        "".join(str(int(x)) for x in units.top(torch.tensor([0.9, 0.1, 0.5, 0.7]), share)) == kept
    )
    assert units.top(torch.ones(4), 0.5).tolist() == [1, 1, 0, 0]  # ties: the lower index


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["fedlps-cnn", "digits-cnn", "lenet5-caffe", "shakespeare-lstm", "resnet18"]
)
@pytest.mark.parametrize("rows", [True, False])
def test_a_pattern_spreads_as_the_layout_expands_it(name, rows):
    shape = {"shakespeare-lstm": (80,), "resnet18": (3, 32, 32)}.get(name, (1, 28, 28))
    layout = build(name, shape, 10).layout
    units = HiddenUnits(layout, rows)
    kept = masks.random(layout, 0.4, np.random.default_rng(2))
    pattern = torch.from_numpy(np.concatenate(list(kept.values()))).float()
    assert np.array_equal(units.spread(pattern).numpy() == 1, layout.expand(kept, rows=rows))
    q = torch.from_numpy(np.random.default_rng(3).standard_normal(units.total)).float()
    chosen = units.top(q, 0.4).split(units.counts)
    assert [int(part.sum()) for part in chosen] == [masks.unit_count(0.4, n) for n in units.counts]
    ranked = masks.top(
        layout, dict(zip(kept, [p.numpy() for p in q.split(units.counts)], strict=True)), 0.4
    )
    assert all(
        np.array_equal(a.numpy() == 1, b) for a, b in zip(chosen, ranked.values(), strict=True)
    )


@pytest.mark.parametrize(
    ("every_score", "expected"), [(True, [0.5, 0.589836]), (False, [0.0, 0.589836])]
)
def test_straight_through(
    every_score, expected
):  # w = (2, 3), q = (0, 1), input 1, L = o_1 + o_2: dL/dq = w sigma'(q) = (2/4, 3 x 0.196612)
    objective = PatternObjective(
        HiddenUnits(model(1, 2, 2), rows=True), 0.5, torch.zeros(6), every_score=every_score
    )
    w = flat(objective.units, [2.0, 3.0], [0.0, 1.0])
    to_weights, to_scores = gradients(
        objective, w, lambda leaf: objective.effective(leaf)[:2].sum()
    )
    assert objective.effective(w)[:2].tolist() == [0.0, 3.0]
    assert to_weights[:2].tolist() == [0.0, 1.0]
    assert to_scores.tolist() == pytest.approx(expected, abs=1e-6)


def test_a_pattern_that_is_not_learned_has_no_gradient():
    objective = PatternObjective(
        HiddenUnits(model(1, 2, 2), rows=True), 0.5, torch.zeros(6), learned=False
    )
    w = flat(objective.units, [2.0, 3.0], [5.0, -5.0])
    objective.units.pattern(w).copy_(torch.tensor([0.0, 1.0]))  # whatever the scores say
    leaf = w.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(objective.effective(leaf)[:2].sum(), [leaf])
    assert objective.effective(w)[:2].tolist() == [0.0, 3.0]
    assert gradient.tolist() == [0.0, 1.0] + [0.0] * 8


@pytest.mark.parametrize(("mean", "value", "factor"), [(False, 6.30, 1.0), (True, 1.575, 0.25)])
def test_the_scores_are_pulled_each_to_its_own_target(mean, value, factor):
    q = torch.tensor([2.0, 1.0, 0.0, -1.0], requires_grad=True)
    loss = importance_loss(q, torch.tensor([0.6, 0.7, 0.8, 0.9]), [4], mean)
    assert loss.item() == pytest.approx(value)
    (gradient,) = torch.autograd.grad(loss, [q])
    assert gradient.tolist() == pytest.approx([factor * x for x in (2.8, 0.6, -1.6, -3.8)])


def test_the_mean_is_taken_per_layer():
    q, target = torch.tensor([1.0, 2.0, 4.0]), torch.zeros(3)
    assert float(importance_loss(q, target, [2, 1], mean=True)) == (1 + 4) / 2 + 16
    assert float(importance_loss(q, target, [2, 1])) == 21


def test_the_target_is_the_sigmoid_of_the_sum_of_weights():
    units = HiddenUnits(model(2, 3, 2), rows=True)
    w = flat(units, [1.0, -1.0, 0.0, -3.0, 0.5, 0.0], [0.0, 0.0, 0.0])
    assert units.sums(w).tolist() == [2.0, 3.0, 0.5]
    objective = PatternObjective(units, 1.0, torch.zeros(12), lam=1.0)
    assert objective.target(w).tolist() == pytest.approx([0.880797, 0.952574, 0.622459], abs=1e-6)
    normed = PatternObjective(units, 1.0, torch.zeros(12), lam=1.0, standardise=True).target(w)
    mean, std = np.mean([2, 3, 0.5]), np.std([2, 3, 0.5])
    assert normed.tolist() == pytest.approx(
        [1 / (1 + np.exp(-(x - mean) / std)) for x in (2, 3, 0.5)], abs=1e-6
    )
    assert units.standardised(torch.full((3,), 7.0)).tolist() == [0.0, 0.0, 0.0]
    to_weights, to_scores = gradients(objective, w, objective.penalty)
    assert to_weights.tolist() == [0.0] * 12  # the target is a constant of the step
    assert to_scores.tolist() == pytest.approx(
        [-2 * x for x in (0.880797, 0.952574, 0.622459)], abs=1e-5
    )


@pytest.mark.parametrize(("mean", "factor"), [(False, 1.0), (True, 1 / 6)])
def test_weights_that_are_left_out_feel_no_penalty(
    mean, factor
):  # FedLPS, eq. (9); the pull doubles with the distance
    units = HiddenUnits(model(1, 2, 2), rows=True)
    objective = PatternObjective(
        units, 0.5, torch.tensor([1.0, 1.0, 1.0, 1.0, 1.0, 1.0]), mu=0.5, decay=0.2, mean=mean
    )
    w = flat(units, [2.0, 3.0, 1.5, 1.0, 1.0, 1.0], [0.0, 1.0])
    to_weights, to_scores = gradients(objective, w, objective.penalty)
    pull = [
        0.0,
        2.0 * factor,
        0.5 * factor,
        0.0,
        0.0,
        0.0,
    ]  # 2 mu (w - w_r), kept: the second row, all of the output
    decay = [0.0, 0.6, 0.3, 0.2, 0.2, 0.2]
    assert to_weights.tolist() == pytest.approx([a + b for a, b in zip(pull, decay, strict=True)])
    assert to_scores.tolist() == [0.0, 0.0]


def test_a_dropped_unit_emits_nothing_in_structural_mode_and_its_bias_in_row_mode():
    architecture = build("fedlps-cnn", (1, 28, 28), 10)
    w = torch.from_numpy(architecture.initial(np.random.default_rng(0)))
    x = torch.rand(2, 1, 28, 28)
    for rows in (True, False):
        units = HiddenUnits(architecture.layout, rows)
        pattern = torch.ones(units.total)
        pattern[3] = 0.0  # a channel of the first convolution
        masked = w * units.spread(pattern)
        tensors = architecture.layout.named(masked)
        emitted = torch.nn.functional.conv2d(x, tensors["conv1.weight"], tensors["conv1.bias"])[
            :, 3
        ]
        assert bool((emitted == (w[250 + 3] if rows else 0.0)).all())
        assert bool((tensors["conv2.weight"][:, 3] == 0).all()) == (not rows)


def test_the_personal_model_has_the_zeros_of_the_pattern():  # FedLPS, eq. (12)
    units = HiddenUnits(model(1, 2, 2, bias=True), rows=True)
    objective = PatternObjective(units, 0.5, torch.zeros(units.layout.size))
    w = flat(units, [2.0, 3.0, 0.0], [0.0, 1.0])
    done = objective.finish([torch.zeros_like(w), w])
    assert units.weights(done).tolist() == [0.0, 3.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert units.scores(done).tolist() == [0.0, 1.0]
    assert units.pattern(done).tolist() == [0.0, 1.0]
    assert w[0] == 2.0  # what was trained stays as it was
