"""Ratios that devices execute, and what bandits learn from a round."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from fl.contracts import Report
from fl.executors.deferred_training import Trainer
from fl.method_base.state import State
from fl.methods.fedlps.bandits import Arms
from fl.training import local_sgd as local
from tests.fl.conftest import view_of
from tests.fl.methods.fedlps.one_round import jobs, outcome, played, sized

LR = 0.05


HALF = {"ratio": "fixed", "width": 0.5}


LEVELS_OF_FOUR = [1.0, 0.5, 0.25, 0.0625]


def test_nobody_executes_more_than_it_can_give(bench):
    method = bench.method("fedlps", lr=LR)
    state = method.start()
    for _ in range(3):
        state = played(bench, method, state, LEVELS_OF_FOUR)
        executed = state.notes["executed"]
        assert all(executed[str(k)] <= z for k, z in enumerate(LEVELS_OF_FOUR))
        assert method.measures(state)["mean ratio"] == pytest.approx(
            np.mean(list(executed.values()))
        )
    assert executed["3"] == 0.0625
    assert state.notes["bandits"]["0"]["arms"]["updates"] == 3


def test_only_devices_of_the_round_learn(bench):
    method = bench.method("fedlps", lr=LR, participants=2)
    before = played(bench, method, method.start(), [1.0] * 4)
    after = played(bench, method, before, [1.0] * 4)
    chosen = set(after.notes["executed"])
    assert len(chosen) == 2
    for k in map(str, range(4)):
        changed = after.notes["bandits"].get(k) != before.notes["bandits"].get(k)
        assert changed == (k in chosen)
    never = 1 - len(after.local) / 4
    assert method.measures(after)["never trained"] == never


def test_a_device_that_came_twice_learns_from_both_with_their_own_ratios(bench):
    """Clocks whose jobs overlap: a job of the version before has the ratio of that one."""
    method = bench.method("fedlps", lr=LR, partitions=1, drop=-1.0)
    state = method.start()
    ordered = zip(jobs(method, state, view_of(bench.task), [0, 0]), (0.25, 0.75), strict=True)
    one, other = Trainer(bench.task).submit([replace(job, note=note) for job, note in ordered])
    report = Report(0, 1.0, (outcome(one, 1.0), outcome(other, 2.0)))
    arms = method.observe(state, report).notes["bandits"]["0"]["arms"]
    assert arms["updates"] == 2
    assert [part[:2] for part in arms["parts"]] == [[0.0, 0.25], [0.25, 0.75], [0.75, 1.0]]


@pytest.mark.slow
def test_what_a_bandit_learns_from_a_round(bench):
    """The reward (15) of two devices: the accuracy gained since the initial model by time over the
    round's mean.
    """
    method = bench.method("fedlps", lr=LR, local_steps=20, participants=2)
    state = method.start()
    view = view_of(bench.task)
    chosen = method.select(state, view)
    finish = dict(zip(chosen.tolist(), (2.0, 6.0), strict=True))
    after = played(bench, method, state, [1.0] * 4, finish=lambda job: finish[job.device])
    assert after.notes["time_scale"] == 4.0
    for k, seconds in finish.items():
        record = after.notes["bandits"][str(k)]
        (job,) = jobs(method, state, view, [k])
        accuracy = local.run(bench.task, job).accuracy
        arms = Arms.from_record(record["arms"])
        assert arms.accuracy == accuracy != method.ratios.first_accuracy(k)
        gain = method.ratios.bandit.reward(accuracy, method.ratios.first_accuracy(k), seconds / 4.0)
        rewarded = [part for part in arms.parts if part.pulls]
        executed = after.notes["executed"][str(k)]
        assert [part.mean for part in rewarded] == pytest.approx([gain] * len(rewarded))
        assert rewarded[0].lo <= executed <= rewarded[-1].hi
        view_after = view_of(bench.task, 1)
        assert method.ratios.share(after, view_after, k) == record["next"] != executed


def test_time_is_relative_to_the_first_round_or_to_what_is_given(bench):
    method, given = bench.method("fedlps", lr=LR), bench.method("fedlps", lr=LR, time_scale=0.5)
    states = [
        played(bench, m, m.start(), [1.0] * 4, finish=lambda job: 2.0) for m in (method, given)
    ]
    assert [state.notes["time_scale"] for state in states] == [2.0, 0.5]
    again = played(bench, method, states[0], [1.0] * 4, finish=lambda job: 8.0)
    assert again.notes["time_scale"] == 2.0
    one, two = (
        [Arms.from_record(b["arms"]) for b in state.notes["bandits"].values()] for state in states
    )
    for slow, fast in zip(one, two, strict=True):
        assert [p.mean for p in fast.parts] == pytest.approx([p.mean / 4 for p in slow.parts])


def test_the_accuracy_before_the_first_round(bench):
    method = bench.method("fedlps")
    task, w = bench.task, bench.task.initial()
    mine = task.data.train_index[2]
    hits = (
        task.architecture.logits(w, task.train[0][mine]).argmax(dim=1) == task.train[1][mine]
    ).float()
    assert method.ratios.first_accuracy(2) == pytest.approx(float(hits.mean()))


def test_late_devices_earn_nothing_and_failed_ones_learn_nothing(bench):
    method = bench.method("fedlps", lr=LR)
    state, view = method.start(), view_of(bench.task)
    updates = Trainer(bench.task).submit(jobs(method, state, view, range(4)))
    statuses = [
        ("arrived", True, 1.0),
        ("late", True, 3.0),
        ("late", False, np.nan),
        ("failed", False, np.nan),
    ]
    outcomes = [
        outcome(update, seconds, status, received)
        for update, (status, received, seconds) in zip(updates, statuses, strict=True)
    ]
    state = method.aggregate(state, view, updates[:2])
    after = method.observe(state, Report(0, 5.0, tuple(outcomes)))
    assert after.notes["time_scale"] == 2.0
    assert set(after.notes["bandits"]) == {
        "0",
        "1",
        "2",
    }  # the third was late and lost: it has tried its ratio too
    lost = Arms.from_record(after.notes["bandits"]["2"]["arms"])
    assert lost.accuracy == method.ratios.first_accuracy(2)
    assert sum(part.pulls for part in lost.parts) >= 1 and all(
        part.mean == 0 for part in lost.parts
    )
    assert method.ratios.share(after, view, 3) == method.ratios.share(state, view, 3)


def test_a_run_goes_on_from_its_record(bench):
    method = bench.method("fedlps", lr=LR, participants=3, explore="1/m")
    state = played(bench, method, method.start(), LEVELS_OF_FOUR)
    arrays, record = state.to_arrays()
    restored = State.from_arrays(arrays, json.loads(json.dumps(record)))
    one, two = (played(bench, method, s, LEVELS_OF_FOUR) for s in (state, restored))
    assert torch.equal(one.w, two.w)
    assert one.notes == two.notes
    assert all(torch.equal(one.local[k], two.local[k]) for k in one.local)


def test_ratios_of_the_ablations(bench):  # Table II
    view = sized(view_of(bench.task), LEVELS_OF_FOUR)
    flst, rcr = bench.method("fedlps", **HALF), bench.method("fedlps", ratio="capability")
    head = bench.method("fedlps", arm_space="head")
    assert [flst.ratios.share(None, view, k) for k in range(4)] == [0.5] * 4
    assert [rcr.ratios.share(None, view, k) for k in range(4)] == LEVELS_OF_FOUR
    assert 0.5 <= head.ratios.share(None, view, 0) < 1
    assert [head.ratios.share(None, view, k) for k in range(1, 4)] == LEVELS_OF_FOUR[
        1:
    ]  # the bandit is idle for z <= 1/2
    small = replace(view, model_budget=np.array([0.25, 1.0, 1.0, 1.0]))
    assert rcr.ratios.share(None, small, 0) == 0.25
    assert (
        bench.method("fedlps", ratio="capability", prune_mode="structural").ratios.share(
            None, small, 0
        )
        == 0.5
    )
