"""FedLPS on real digits and on four weights: fedlps.md, checks 5 to 7, 11, 13, 14, 16, 22, and its bandits."""

import json
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from edgesim.seeds import Seeds
from fl.accounting import Accounting
from fl.contracts import Grant, Outcome, Report, Trained
from fl.data.datasets import Federated
from fl.errors import MethodError
from fl.evaluation.evaluate import evaluate
from fl.executors.trainer import Trainer
from fl.method_base.aggregation import mean_over_holders
from fl.method_base.method import check
from fl.method_base.state import State
from fl.methods import resolve
from fl.methods.fedlps.bandits import Arms
from fl.models.architectures import build
from fl.models.layers import Linear
from fl.task import LearningTask
from fl.training import local_sgd as local
from tests.fl.conftest import Bench, view_of

LR = 0.05
PLAIN = {"mu": 0.0, "lam": 0.0}
HALF = {"ratio": "fixed", "width": 0.5}


def sized(view, capability, g=0):
    return replace(view, capability=np.asarray(capability, dtype=float), g=g)


def jobs(method, state, view, devices):
    return [method.configure(state, view, Grant(int(k), 0.1, 0.0, 1.0, 1.0)) for k in devices]


def outcome(update, finish_s, status="arrived", received=True):
    grant = Grant(update.job.device, 0.1, 0.0, 1.0, 1.0)
    return Outcome(grant, update, status, received, trained=True, finish_s=finish_s)


def played(bench, method, state, capability, finish=lambda job: 1.0):
    """One round with everybody who is selected in time."""
    view = sized(view_of(bench.task, state.g), capability, state.g)
    chosen = method.select(state, view)
    updates = Trainer(bench.task).submit(jobs(method, state, view, chosen))
    outcomes = tuple(outcome(update, finish(update.job)) for update in updates)
    state = method.aggregate(method.retain(state, updates), view, updates)
    return method.observe(state, Report(view.g, 2.0, outcomes))


def test_the_whole_model_without_regularisers_is_fedavg_bit_for_bit(bench):  # check 6
    ours = bench.method("fedlps", lr=LR, ratio="capability", **PLAIN)  # s = z = 1
    theirs = bench.method("fedavg", lr=LR, weighting="samples")
    a, b = ours.start(), theirs.start()
    for _ in range(3):
        a, b = bench.round(ours, a), bench.round(theirs, b)
    assert torch.equal(a.w[: len(b.w)], b.w)
    assert not torch.equal(b.w, theirs.start().w)
    assert torch.equal(ours.probes(a)["global"], a.w)


@pytest.mark.parametrize("mode", ["row", "structural"])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_weight_that_is_left_out_keeps_its_stored_value(bench, mode, momentum):  # check 5
    """One step more: what the scores drop before it does not move in it, whatever decay, pull and momentum say."""
    settings = {"weight_decay": 0.1, "momentum": momentum, "prune_mode": mode, **HALF}
    stored = []
    for steps in (6, 7):
        method = bench.method("fedlps", lr=LR, local_steps=steps, **settings)
        job = jobs(method, method.start(), view_of(bench.task), [0])[0]
        stored.append(local.run(bench.task, replace(job, finish=None)).w)
    units = method.patterns.units
    held = units.spread(units.top(units.scores(stored[0]), 0.5)) > 0
    before, after = map(units.weights, stored)
    assert torch.equal(before[~held], after[~held])
    assert (before != after)[held].float().mean() > 0.9
    moved_before = before != method.start().w[: len(before)]
    assert bool(moved_before[~held].any())  # some of them were trained in an earlier step


def test_a_unit_that_is_never_kept_ends_where_it_began(bench):  # check 5, second part
    method = bench.method("fedlps", lr=LR, pattern="ordered", mu=1.0, weight_decay=0.1, **HALF)
    state = method.start()
    job = jobs(method, state, view_of(bench.task), [0])[0]
    trained = local.run(bench.task, replace(job, finish=None))
    held = method.patterns.held(trained.w)
    assert torch.equal(trained.w[~held], state.w[~held])
    assert not torch.equal(trained.w[held], state.w[held])


def test_what_is_sent_and_what_stays(bench):  # check 6
    method = bench.method("fedlps", lr=LR, **HALF)
    state = method.start()
    (job,) = jobs(method, state, view_of(bench.task), [1])
    trained = local.run(bench.task, job)
    sent, kept = method.encode(job, trained), method.local_part(trained)
    units = method.patterns.units
    pattern = units.top(units.scores(kept), 0.5)  # by the scores after the last step
    assert torch.equal(units.pattern(kept), pattern)
    assert torch.equal(sent.travels[: units.layout.size], units.spread(pattern) > 0)
    assert not sent.travels[units.layout.size :].any()  # scores and patterns stay at the device
    assert bool((kept[: units.layout.size][~sent.travels[: units.layout.size]] == 0).all())
    assert [int(part.sum()) for part in pattern.split(units.counts)] == [4, 8, 32]
    rows = method.task.layout.named(sent.travels)
    assert all(
        bool(rows[name].all())
        for name in rows
        if name.endswith("bias") or name.startswith("linear2")
    )
    assert method.task.accounting.weight_bits(int(sent.travels.sum())) == job.payload.bits_up


def four_weights(tiny_bench, **params):
    """A method on x -> (four hidden units of one weight each) -> two classes, and a state with all weights 1."""
    bench = tiny_bench((Linear(1, 4, bias=False), Linear(4, 2, bias=False)), [[1.0], [1.0]], [0, 1])
    method = bench.method("fedlps", **params)
    state = method.start()
    return method, replace(state, w=torch.where(method.shared_mask, 1.0, 0.0)), bench


def ended(device, first, pattern):
    """An update of a device that ended with these four weights and kept these units."""
    w = torch.ones(4 + 8 + 2 * 4)
    w[:4], w[-4:] = torch.tensor(first), torch.tensor(pattern)
    trained = Trained(w, torch.ones(len(w), dtype=torch.bool), 0.5, 0.5)
    return SimpleNamespace(job=SimpleNamespace(device=device), result=lambda: trained)


@pytest.mark.parametrize(
    ("samples", "expected"),
    [([5, 5], [0.5, 1.5, 1.25, 0.75]), ([15, 5], [0.25, 1.75, 1.125, 0.875])],
)
def test_differences_are_averaged_over_all_that_were_asked(
    tiny_bench, samples, expected
):  # check 7; (13)
    method, state, bench = four_weights(tiny_bench)
    view = replace(view_of(bench.task), samples=np.array(samples))
    updates = [
        ended(0, [0.0, 2.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]),
        ended(1, [0.0, 0.0, 1.5, 0.5], [0.0, 0.0, 1.0, 1.0]),
    ]
    after = method.aggregate(state, view, updates)
    assert after.w[:4].tolist() == expected
    assert torch.equal(
        after.w[4:], state.w[4:]
    )  # the output layer came back unchanged; scores stay at home
    sent = [method.encode(update.job, update.result()) for update in updates]
    assert mean_over_holders(state.w, sent, [1.0, 1.0])[:4].tolist() == [
        0.0,
        2.0,
        1.5,
        0.5,
    ]  # HeteroFL's rule
    nobody = method.aggregate(state, view, updates[:1])
    assert nobody.w[2:4].tolist() == [1.0, 1.0]
    assert method.aggregate(state, view, []).w is state.w


def test_noise_is_added_only_where_it_is_asked_for(tiny_bench):
    method, state, bench = four_weights(tiny_bench, noise=0.001)
    update = ended(0, [1.0] * 4, [1.0] * 4)
    a, b = (method.aggregate(state, view_of(bench.task), [update]).w for _ in range(2))
    assert torch.equal(a, b)
    assert 1e-4 < float((a - state.w)[:12].std()) < 3e-3
    assert torch.equal(a[12:], state.w[12:])


# --- scores and patterns -------------------------------------------------------------------------------------------


def scores_of(method, state, k):
    return method.patterns.units.scores(method.received(state, k))


def test_scores_begin_at_random_and_stay_at_their_device(bench):
    method = bench.method("fedlps", lr=LR, **HALF)
    state = method.start()
    first = [scores_of(method, state, k) for k in (0, 1)]
    assert not torch.equal(*first)
    assert torch.equal(
        scores_of(method, replace(state, g=5), 0), first[0]
    )  # whenever the device is asked first
    state = bench.round(method, state)
    assert torch.equal(scores_of(method, state, 0), method.patterns.units.scores(state.local[0]))
    assert not torch.equal(scores_of(method, state, 0), first[0])
    assert torch.equal(
        method.patterns.units.weights(method.received(state, 0)),
        method.patterns.units.weights(state.w),
    )
    assert torch.equal(method.personalise(state, 0), state.local[0])


def test_scores_as_in_the_released_code(bench):
    method = bench.method("fedlps", lr=LR, q_init="sorted", q_persist=False, **HALF)
    state = method.start()
    first = scores_of(method, state, 0)
    assert all(bool((part.diff() <= 0).all()) for part in first.split(method.patterns.units.counts))
    later = scores_of(method, bench.round(method, state), 0)
    assert not torch.equal(later, first) and bool(
        (later.split(method.patterns.units.counts)[0].diff() <= 0).all()
    )


def test_scores_from_the_magnitude(bench):
    method = bench.method("fedlps", q_init="magnitude", **HALF)
    w = method.start().w
    part = scores_of(method, method.start(), 0).split(method.patterns.units.counts)[0]
    sums = method.task.layout.split(w)[0].abs().sum(dim=(1, 2, 3))
    assert torch.equal(part.argsort(), sums.argsort()) and float(part.mean()) == pytest.approx(
        0, abs=1e-6
    )


def test_the_task_moves_the_scores(bench):
    """Without (8) the kept scores move by the task alone, the others only where all of them learn."""
    for q_grad, others_move in (("kept", False), ("all", True)):
        method = bench.method("fedlps", lr=LR, local_steps=1, q_grad=q_grad, **PLAIN, **HALF)
        state = method.start()
        (job,) = jobs(method, state, view_of(bench.task), [0])
        before, after = (
            scores_of(method, state, 0),
            method.patterns.units.scores(local.run(bench.task, job).w),
        )
        kept = method.patterns.units.top(before, 0.5) > 0
        assert bool((before != after)[kept].any())
        assert bool((before != after)[~kept].any()) == others_move


@pytest.mark.parametrize("pattern", ["random", "ordered", "magnitude"])
def test_patterns_by_rule_hold_for_the_round(bench, pattern):
    method = bench.method("fedlps", lr=LR, pattern=pattern, **HALF)
    state = method.start()
    view = view_of(bench.task)
    one, two = (local.run(bench.task, job).w for job in jobs(method, state, view, [0, 1]))
    a, b = method.patterns.units.pattern(one), method.patterns.units.pattern(two)
    assert [int(part.sum()) for part in a.split(method.patterns.units.counts)] == [4, 8, 32]
    expected = {
        "random": torch.equal(a, b),
        "ordered": not all(
            bool((p.diff() <= 0).all()) for p in a.split(method.patterns.units.counts)
        ),
        "magnitude": not torch.equal(
            a, method.patterns.units.top(method.patterns.units.sums(state.w), 0.5)
        ),
    }
    assert not expected[pattern]
    (later,) = jobs(method, replace(state, g=1), sized(view, view.capability, 1), [0])
    again = method.patterns.units.pattern(local.run(bench.task, later).w)
    assert torch.equal(a, again) == (pattern != "random")


# --- what it costs -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mnist_sized():
    """FedLPS' MNIST network and 180 samples per device, without the pictures."""
    y = np.arange(180) % 10
    x = np.zeros((180, 1, 28, 28), dtype=np.float32)
    data = Federated(
        y,
        y,
        lambda: (x, x),
        (1, 28, 28),
        [np.arange(180)] * 5,
        [np.arange(9)] * 5,
        tuple("0123456789"),
    )
    twice = Accounting(mask_overhead="bitmap", backward="twice", count_biases=True)
    return Bench(LearningTask(build("fedlps-cnn", (1, 28, 28), 10), data, 32, Seeds(0), twice))


LEVELS = {1: (2788.128, 698_880), 0.5: (1405.728, 358_880), 0.25: (672.13, 183_360)}
LEVELS |= {0.125: (301.65, 97_120), 0.0625: (203.96, 58_400)}


@pytest.mark.parametrize("z", LEVELS)
def test_work_and_bits_of_a_round(mnist_sized, z):  # checks 13, 14; fedlps.md, 7.3
    method = mnist_sized.method("fedlps", ratio="capability", local_steps=30)
    view = sized(view_of(mnist_sized.task), [z] * 5)
    (job,) = jobs(method, method.start(), view, [2])
    mega_flops, bits_up = LEVELS[z]
    assert job.stages[0].work.flops / 1e6 == pytest.approx(mega_flops, abs=0.01)
    assert job.payload.bits_down == 698_880
    assert job.payload.bits_up == bits_up + 80  # the pattern, 1 bit per unit
    demand = method.demand(method.start(), view, np.array([2]))
    assert (1 - demand.rho_min) * demand.work_prunable.flops == pytest.approx(
        job.stages[0].work.flops
    )
    assert (1 - demand.rho_min) * demand.bits_prunable == pytest.approx(job.payload.bits_up)
    assert demand.bits_down == 698_880


COST_OF_A_ROUND = """
import sys
import numpy as np
from fl.contracts import View
from edgesim.seeds import Seeds
from fl.data.datasets import federated
from fl.method_base.method import bind
from fl.methods import resolve
from fl.models.architectures import build
from fl.task import LearningTask
data, ones = federated("digits", 4, Seeds(0)), np.ones(4)
method = bind(resolve("fedlps"), LearningTask(build("digits-cnn", (1, 8, 8), 10), data, 16, Seeds(0)), {})
view = View(0, 0.0, np.arange(4), ones, ones, data.samples, np.inf, ones, ones)
assert (method.demand(None, view, np.arange(4)).bits_prunable > 0).all()
print("torch" in sys.modules)
"""


def test_the_cost_of_a_round_is_known_without_torch():
    """`edgesim check` answers at once because of this."""
    done = subprocess.run(
        [sys.executable, "-c", COST_OF_A_ROUND], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_mean_work_of_the_five_levels(mnist_sized):  # check 16
    assert np.mean(list(LEVELS)) == 0.3875
    method = mnist_sized.method("fedlps", ratio="capability", local_steps=30)
    view = sized(view_of(mnist_sized.task), list(LEVELS))
    flops = [job.stages[0].work.flops / 1e6 for job in jobs(method, method.start(), view, range(5))]
    assert np.mean(flops) == pytest.approx(1074.3, abs=0.05)
    assert np.mean(flops) / 2788.128 == pytest.approx(0.3853, abs=1e-4)


def test_gradients_of_all_scores_are_charged(mnist_sized):
    """Forward and gradients by activations on the half model, gradients by weights dense."""
    view = view_of(mnist_sized.task)
    method = mnist_sized.method("fedlps", local_steps=30, q_grad="all", **HALF)
    (job,) = jobs(method, method.start(), view, [0])
    assert job.stages[0].work.flops / 1e6 == pytest.approx((2 * 1405.728 + 2788.128) / 3)


def test_dropped_units_save_quadratically_in_structural_mode(mnist_sized):
    method = mnist_sized.method("fedlps", local_steps=30, prune_mode="structural", **HALF)
    (job,) = jobs(method, method.start(), view_of(mnist_sized.task), [0])
    weights = 5 * 25 + 10 * 5 * 25 + 25 * 160 + 10 * 25 + (5 + 10 + 25 + 10)
    assert job.payload.bits_up == 32 * weights + 80
    macs = 5 * 25 * 576 + 10 * 125 * 64 + 25 * 160 + 10 * 25
    biases = 5 * 576 + 10 * 64 + 25 + 10
    assert job.stages[0].work.flops == pytest.approx(3 * 32 * 30 * (2 * macs + biases))


# --- how many units: the bandit ------------------------------------------------------------------------------------

LEVELS_OF_FOUR = [1.0, 0.5, 0.25, 0.0625]


def test_nobody_executes_more_than_it_can_give(bench):  # check 11
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


def test_only_devices_of_the_round_learn(bench):  # check 11
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


def test_what_a_bandit_learns_from_a_round(bench):
    """The reward (15) of two devices: the accuracy gained since the initial model by time over the round's mean."""
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


def test_a_run_goes_on_from_its_record(bench):  # check 22
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


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ratio": "fixed"}, "width is none, but ratio is fixed"),
        ({"width": 0.5}, "width is not read where ratio is p-ucbv"),
        ({"ratio": "capability", "xi": 5.0}, "xi is not read where ratio is capability"),
        ({"pattern": "ordered", "q_init": "sorted"}, "q_init is not read where pattern is ordered"),
        ({"pattern": "random", "lam": 2.0}, "lam is not read where no scores are learned"),
        ({"lam": 0.0, "t_norm": True}, "t_norm is not read where lam is 0"),
    ],
)
def test_parameters_that_contradict_each_other(given, said):
    with pytest.raises(MethodError, match=said):
        check(resolve("fedlps"), given)


def test_it_learns_and_unknown_devices_use_the_global_model(bench):
    """Half the units of three devices, after six rounds, against the majority label of the devices (0.44)."""
    method = bench.method(
        "fedlps", lr=0.3, local_steps=30, mu=0.0, ratio="capability", participants=3
    )
    state = method.start()
    assert method.personalise(state, 0) is state.w
    first = played(bench, method, state, [1.0, 0.5, 0.5, 0.5])
    (never,) = set(range(4)) - set(first.local)
    assert method.personalise(first, never) is first.w
    state = first
    for _ in range(5):
        state = played(bench, method, state, [1.0, 0.5, 0.5, 0.5])
    scores = evaluate(bench.task, method, state)
    assert scores.accuracy.mean() > 0.8
    assert set(scores.measures) == {"accuracy global", "mean ratio", "never trained"}
