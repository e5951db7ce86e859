"""Mask rounds: logits, counts, posterior, costs."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fl.executors.deferred_training import Trainer
from fl.method_base.method import State
from tests.fl.methods.fedmap.conftest import J, P, Play


def start_logits(play, state):
    (job,) = [update.job for update in play.updates(state, [0])]
    return job.phases[0].start([])[play.method.logits]


def test_every_mask_phase_begins_at_one_half(task):
    play = Play(task, prior_strength=3.0)
    state = play.method.start()
    assert not start_logits(play, state).any()
    state = play.round(state)
    alpha, beta = state.memo["alpha"], state.memo["beta"]
    p = torch.from_numpy(play.method.p.mode(state))
    assert (alpha >= 3).all()
    assert (beta >= 3).all()
    assert ((p > 0) & (p < 1)).all()
    assert torch.equal(start_logits(play, state), p.logit())
    state = play.rounds(3, state)
    assert state.g == play.method.cycle
    assert (
        play.method.p.mode(state).std() > 0.05
    )  # what is used goes on; what is learnt next begins anew
    assert not start_logits(play, state).any()
    warm = Play(task, prior_strength=3.0, warm_posterior=True, reset_rounds=2)
    assert (warm.round(state).memo["alpha"] >= state.memo["alpha"]).all()
    assert torch.equal(
        start_logits(warm, state), torch.from_numpy(warm.method.p.mode(state)).logit()
    )


def test_weights_stand_in_mask_phases_and_probabilities_in_model_phases(task):
    play = Play(task)
    first = play.method.start()
    learnt = play.rounds(2, first)
    assert learnt.w.numpy().tobytes() == first.w.numpy().tobytes()
    trained = play.rounds(2, learnt)
    assert trained.memo["alpha"].numpy().tobytes() == learnt.memo["alpha"].numpy().tobytes()
    assert trained.memo["beta"].numpy().tobytes() == learnt.memo["beta"].numpy().tobytes()
    assert not torch.equal(trained.w, learnt.w)
    assert not trained.w[P:].any()  # logits and records are no weights


def test_one_model_round_as_printed(task):
    """E5."""
    method = Play(task, phase_rounds=3, model_rounds=1).method
    assert [method.learns_masks(g) for g in range(9)] == [True] * 3 + [False] + [True] * 3 + [
        False
    ] + [True]


def test_the_posterior_counts_what_arrives(task):
    """(9) with one device that made n draws: alpha + m, beta + [m < n]; a second round adds, a
    reset drops.
    """
    play = Play(task, mask_steps=0, budgets=[1 / 4] * 4)
    state = play.method.start()
    (update,) = updates = play.updates(state, [1])
    survived, draws = play.method.mask_rounds.counts(update.job, update.result())
    survived = torch.from_numpy(survived)
    assert draws in (2, 3)
    after = play.method.aggregate(state, play.view(0), updates)
    assert torch.equal(after.memo["alpha"], 2 + survived)
    assert torch.equal(after.memo["beta"], 2 + (survived < draws).float())
    again = play.round(after, [1])
    added = again.memo["alpha"] - after.memo["alpha"]
    assert 0 < added.mean() < 2
    dropping = Play(task, mask_steps=0, budgets=[1 / 4] * 4, reset_rounds=1)
    assert torch.equal(dropping.round(after, [1]).memo["alpha"], 2 + added)


@pytest.mark.slow
def test_a_stored_state_goes_on_to_the_byte(task):
    """Beliefs, budgets and who holds x are all that a mask round and a model round need."""
    play = Play(task)
    for count in (1, 3):
        state = play.rounds(count)
        again = State.from_arrays(*state.to_arrays())
        after = [play.round(one).to_arrays()[0] for one in (state, again)]
        assert (
            after[0].keys()
            == after[1].keys()
            == {"w", "memo/alpha", "memo/beta", "memo/gamma", "memo/holds"}
        )
        assert all(after[0][name].tobytes() == after[1][name].tobytes() for name in after[0])
    assert play.method.weights() == {"total": P, "global": P, "personal": 0}


@pytest.mark.slow
def test_a_weight_that_helps_becomes_likelier(tiny_bench):
    """Two classes, y = 0, x = (1, 1): the weights 5 and -5 of class 0 pull their logits apart,
    zeros do not move.
    """
    from fl.models.layers.learned_layers import Linear

    bench = tiny_bench((Linear(2, 2, bias=False),), [[1, 1]], [0])
    settings = {"local_steps": 200, "mask_scaler": False, "mask_lr": 0.02}
    for optimiser, rate in (("adam", 0.02), ("sgd", 0.5)):
        play = Play(
            bench.task, budgets=[1], **settings | {"mask_optimiser": optimiser, "mask_lr": rate}
        )
        state = play.method.start()
        state.w[:4] = torch.tensor([5.0, -5.0, 0.0, 0.0])
        (update,) = play.updates(state)
        job = update.job
        learnt = (
            Trainer(bench.task)
            .submit([replace(job, finish=None)])[0]
            .result()
            .w[play.method.logits]
        )
        assert learnt[0] > 0.5
        assert learnt[1] < -0.5
        assert not learnt[2:].any()


def test_the_control_makes_no_step_but_counts(task):
    play = Play(task, mask_steps=0)
    state = play.method.start()
    updates = play.updates(state)
    assert np.isnan(updates[0].result().loss)
    train, thinning = updates[0].stages()
    assert train.work.flops == train.work.weight_steps == 0
    assert thinning.work.flops == J  # one draw at a budget of 1
    other = Play(task).updates(state)
    assert not torch.equal(updates[3].result().w, other[3].result().w)


def test_what_a_mask_round_charges(task):
    """Section 5: forward through the child, backward through the parent, (n + 1) J random draws per
    step.

    At p = 1/2, a budget of 1 and logits that do not move, a parent has 1/2 and a child 1/4 of every
    layer.
    """
    play = Play(task, mask_lr=1e-9, local_steps=40)
    train, thinning = play.updates(play.method.start(), [0])[0].stages()
    macs = task.architecture.macs
    first, *rest = macs.values()
    per_sample = 2 * (
        first * (1 / 4 + 1 / 2) + sum(rest) * (1 / 4 + 2 / 2)
    )  # no gradient by the images
    assert train.work.flops == pytest.approx(40 * 16 * per_sample, rel=0.02)
    assert thinning.work.flops == J * (40 * 2 + 1)


def test_what_a_mask_round_sends(task):
    """Down p, and x to who lacks it; up m with entropy coding, known only after training."""
    play = Play(task, mask_steps=0)
    state = play.method.start()
    updates = play.updates(state)
    assert [update.job.payload.bits_down for update in updates] == [32 * (J + P)] * 4
    assert all(
        update.job.payload.bits_up is None and update.job.stages is None for update in updates
    )
    assert updates[0].bits_up() == pytest.approx(J, rel=1e-3)  # one draw at p = 1/2: one bit each
    sent = play.method.encode(updates[0].job, updates[0].result())
    assert sent.travels.sum() == J
    state = play.method.aggregate(play.method.retain(state, updates[:2]), play.view(0), updates[:2])
    assert [update.job.payload.bits_down for update in play.updates(state)] == [32 * J] * 2 + [
        32 * (J + P)
    ] * 2
    assert not play.rounds(3, state).memo["holds"].any()  # x has changed
    raw = Play(task, mask_steps=0, count_coding="raw").updates(play.method.start())
    assert raw[0].bits_up() == J
    assert raw[1].bits_up() == 2 * J  # two or three draws: two bits


def test_the_plan_of_a_mask_round_is_near_what_comes(task):
    play = Play(task, mask_lr=1e-9)
    for state in (None, play.method.start()):
        demand = play.method.demand(state, play.view(0), np.arange(2))
        assert (demand.rho_min == demand.rho_max).all()
        assert demand.bits_down.tolist() == [32 * (J + P)] * 2
    update = play.updates(play.method.start(), [0])[0]
    assert demand.bits_prunable[0] == pytest.approx(update.bits_up(), rel=0.01)
    assert demand.work_prunable.flops[0] == pytest.approx(
        sum(s.work.flops for s in update.stages()), rel=0.25
    )
    assert play.method.forecast(play.view(0), 0, 0.0)[0].name == "train"


def test_late_devices_hold_x_and_are_not_counted(task):
    """FedMAP, eq. (9): |A| is the number of counts that were received."""
    play = Play(task, mask_steps=0)
    state = play.method.start()
    updates = play.updates(state)
    after = play.method.aggregate(play.method.retain(state, updates), play.view(0), updates[:1])
    assert after.memo["holds"].all()
    assert (after.memo["alpha"] + after.memo["beta"]).max() <= 2 + 2 + 1
    nobody = play.method.aggregate(play.method.retain(state, []), play.view(0), [])
    assert torch.equal(nobody.memo["alpha"], state.memo["alpha"])
    assert nobody.g == 1
    model = play.rounds(2)
    assert torch.equal(play.method.aggregate(model, play.view(2), []).w, model.w)


@pytest.mark.slow
def test_no_result_depends_on_who_trains_beside(task):
    play = Play(task)
    for state in (play.method.start(), play.rounds(2)):
        together = [update.result().w for update in play.updates(state)]
        backwards = [update.result().w for update in play.updates(state, [3, 2, 1, 0])]
        alone = [play.updates(state, [k])[0].result().w for k in range(4)]
        for k in range(4):
            assert torch.equal(together[k], backwards[3 - k])
            assert torch.equal(together[k], alone[k])
    assert not torch.equal(together[2], together[3])


def test_devices_hold_x_also_after_a_failure_of_the_server_that_stored_the_same_one(task):
    play = Play(task, mask_steps=0)
    states = [play.method.start()]
    for devices in ([0], [1], None, None, [2]):  # two mask rounds, two model rounds, a mask round
        states.append(play.round(states[-1], devices))
    start, _, masks, _, _, later = states
    same, other = play.method.recovered(start, masks), play.method.recovered(masks, later)
    assert same.memo["holds"].tolist() == [True, True, False, False]
    assert not other.memo["holds"].any()  # device 2 holds the x of now, nobody that of then
    assert torch.equal(same.memo["alpha"], start.memo["alpha"])


def test_a_second_job_of_a_device_from_the_same_version_counts_draws_of_its_own(task):
    """Clocks whose jobs overlap: p is the same for both jobs of the control, chance is not."""
    play = Play(task, mask_steps=0, budgets=[1 / 4] * 4)
    state = play.method.start()
    (first,) = [update.job for update in play.updates(state, [1])]
    trainer = Trainer(task, encode=play.method.encode, charged=play.method.charged)
    updates = trainer.submit([first, replace(first, again=1)])
    one, other = (play.method.mask_rounds.counts(each.job, each.result())[0] for each in updates)
    assert 0.2 < np.mean(one != other) < 0.8
    after = play.method.aggregate(state, play.view(0), updates)
    assert torch.equal(after.memo["alpha"], torch.from_numpy(2 + one + other))
