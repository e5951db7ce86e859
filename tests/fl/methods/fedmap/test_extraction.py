"""Submodels that are trained, used and measured."""

import pytest
import torch

from fl.evaluation.evaluate import evaluate
from tests.fl.methods.fedmap.conftest import SIZES, J, P, Play


def test_which_submodel_is_trained(task):
    play = Play(task, phase_rounds=3)
    state = play.rounds(3)
    for train_mask, constant in (("sample", False), ("sample_once", True)):
        method = Play(task, phase_rounds=3, train_mask=train_mask).method
        masks_of = [method.kept(state, play.view(g), 1) for g in (3, 4)]
        assert (masks_of[0] == masks_of[1]).all() == constant
    dense = Play(task, phase_rounds=3, train_mask="sample", full_capacity="dense").method
    assert dense.kept(state, play.view(3), 0)[:P].all()
    assert not Play(task, train_mask="sample").method.kept(state, play.view(3), 0)[:P].all()
    literal = Play(task, phase_rounds=3, train_mask="sample", literal_thinning=True).method
    assert literal.kept(state, play.view(3), 0)[:P].all()
    assert play.method.kept(state, play.view(3), 0)[:P].all()
    refilled = Play(task, phase_rounds=3, train_mask="sample", refill="topk").method
    assert refilled.kept(state, play.view(3), 1)[:P][method.places.maskable].sum() == J // 4


def test_unit_submodels(task):
    """J units, dense submodels within the budget, the output layer whole."""
    play = Play(task, granularity="neuron")
    assert play.method.places.count == 8 + 16 + 64
    state = play.rounds(2)
    for k, gamma in enumerate(SIZES):
        kept = play.method.kept(state, play.view(2), k)
        named = task.layout.named(kept)
        assert (
            kept[:P][play.method.layout.where(lambda slot: slot.kind == "weight")[:P]].sum()
            <= gamma * J
        )
        rows = named["conv2.weight"].reshape(16, -1).any(axis=1)
        assert (named["conv2.bias"] == rows).all()
        assert named["linear2.weight"].any(axis=1).all()
    assert (
        play.updates(state, [2])[0].stages()[0].work.flops
        < play.updates(state, [0])[0].stages()[0].work.flops / 8
    )
    after = play.round(state)
    assert not torch.equal(after.w, state.w)


def test_devices_use_the_submodel_of_their_budget(task):
    play = Play(task, budgets=[1, 1 / 4, 1 / 4, 1 / 16])
    state = play.rounds(4)
    w = [play.method.personalise(state, k) for k in range(4)]
    assert w[1] is w[2]
    kept = [int((one[:P] != 0)[torch.from_numpy(play.method.places.maskable)].sum()) for one in w]
    assert kept == [J, J // 4, J // 4, J // 16]
    layer = task.layout.slots[-2]
    part = w[3][layer.slice]
    share = float((part != 0).float().mean())
    assert torch.allclose(part[part != 0], state.w[layer.slice][part != 0] / share**0.5)
    unscaled = Play(task, mask_scaler=False).method.personalise(state, 3)[layer.slice]
    assert torch.equal(unscaled[unscaled != 0], state.w[layer.slice][unscaled != 0])
    drawn = Play(task, extraction="sample").method.personalise(state, 0)
    assert 0.3 < float((drawn[:J] != 0).float().mean()) < 0.9


def test_probes_and_measures(task):
    play = Play(task, budgets=[1, 1 / 4, 1 / 4, 1 / 16])
    state = play.rounds(4)
    found = evaluate(task, play.method, state).measures
    names = [
        f"accuracy {how} {size}" for how in ("topk", "sample") for size in ("1", "0.25", "0.0625")
    ]
    assert set(names) < set(found)
    assert found["capacity used 1"] == pytest.approx(0.5, abs=0.1)
    assert 0 < found["capacity used 0.0625"] <= 1
    assert found["empty layers 1"] == 0
    assert found["spread of p"] == pytest.approx(float(play.method.p.mode(state).std()))
    asked = Play(task, sizes=[0.5]).method
    assert list(asked.probes(state)) == ["topk 0.5", "sample 0.5"]
