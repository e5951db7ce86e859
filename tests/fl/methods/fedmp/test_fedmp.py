"""FedMP: which units stay, the mean with residuals, and what a bandit hears."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fl.contracts import Grant, Outcome, Report, Sent
from fl.errors import MethodError
from fl.executors.deferred_training import Trainer
from fl.method_base.aggregation import mean_of_differences
from fl.method_base.method import parameters
from fl.methods.fedmp.e_ucb import EUcb
from tests.fl.conftest import view_of

PLAIN = {"local_steps": 3, "lr": 0.1}


def test_what_was_pruned_comes_back_from_the_server_by_hand():
    """w = (1, 1); one returns 3 for entry 0, the other (5, 7): (4, 4), not the holders' (4, 7)."""
    old = torch.tensor([1.0, 1.0])
    sent = [
        Sent(torch.tensor([3.0, 0.0]), torch.tensor([True, False])),
        Sent(torch.tensor([5.0, 7.0]), torch.tensor([True, True])),
    ]
    assert mean_of_differences(old, sent, [1.0, 1.0]).tolist() == [4.0, 4.0]


def test_one_device_leaves_its_model_on_what_it_kept_and_the_old_one_elsewhere(bench):
    method = bench.method("fedmp", width=0.5, **PLAIN)
    state = method.start()
    (update,) = Trainer(bench.task).submit(bench.jobs(method, state, devices=[0]))
    after = method.aggregate(state, view_of(bench.task), [update])
    kept, returned = update.result().mask, update.result().w
    assert torch.allclose(after.w[kept], returned[kept], atol=1e-7)
    assert torch.equal(after.w[~kept], state.w[~kept]) and not torch.equal(after.w, state.w)


def test_the_server_takes_the_mean_with_residuals(bench):
    """Devices of other widths: what one of four keeps moves by a quarter of its change."""
    method = bench.method("fedmp", **PLAIN)
    state, view = method.start(), view_of(bench.task)
    updates = Trainer(bench.task).submit(bench.jobs(method, state))
    after = method.aggregate(state, view, updates)
    results = [one.result() for one in updates]
    assert len({int(one.mask.sum()) for one in results}) > 1
    restored = [one.w.where(one.mask, state.w).double() for one in results]
    assert torch.allclose(after.w.double(), sum(restored) / 4, atol=1e-7)


def test_whole_models_are_fedavg(bench):
    _, fedavg = bench.play("fedavg", **PLAIN)
    _, state = bench.play("fedmp", width=1.0, **PLAIN)
    assert torch.allclose(state.w, fedavg.w, atol=1e-7)


def test_the_units_of_the_largest_weights_stay(bench):
    method = bench.method("fedmp", width=0.5)
    state = method.start()
    name, group = next((n, g) for n, g in method.layout.groups.items() if g.hidden)
    loud = np.arange(group.units) % 2 == 1
    louder = torch.from_numpy(np.where(method.layout.expand({name: ~loud}), 0.01, 1.0))
    state = replace(state, w=(state.w * louder).float())
    kept = method.kept(state, view_of(bench.task), 0)
    slot = next(s for s in method.layout.slots if s.axes and s.axes[0] and s.axes[0].group == name)
    rows = kept[slot.slice].reshape(slot.shape[0], -1).any(axis=1)
    assert rows.tolist() == loud.tolist()


def outcomes(bench, method, state, finish_s):
    jobs = bench.jobs(method, state)
    updates = Trainer(bench.task).submit(jobs)
    return updates, Report(
        state.g,
        max(finish_s),
        tuple(
            Outcome(Grant(job.device, 0.1, 0, 1, 1), update, "arrived", True, True, at)
            for job, update, at in zip(jobs, updates, finish_s, strict=True)
        ),
    )


def second_round(bench):
    """The method, its state after one round, and the report of the next."""
    method, times = bench.method("fedmp", **PLAIN), [1.0, 2.0, 3.0, 2.0]
    state, view = method.start(), view_of(bench.task)
    updates, report = outcomes(bench, method, state, times)
    state = method.observe(method.aggregate(state, view, updates), report)
    return method, state, outcomes(bench, method, state, times)[1]


def test_a_device_earns_the_fall_of_its_loss_over_its_distance_from_the_mean_time(bench):
    method = bench.method("fedmp", **PLAIN)
    state, view, times = method.start(), view_of(bench.task), [1.0, 2.0, 3.0, 2.0]
    first = method.share(state, 0)
    for _ in range(2):
        updates, report = outcomes(bench, method, state, times)
        before = state
        state = method.observe(method.aggregate(state, view, updates), report)
    old, new = before.notes["bandits"], state.notes["bandits"]
    for k, away_s in enumerate([1.0, 0.1, 1.0, 0.1]):  # the mean is 2 s; at least 5 % of it
        reward = (old[str(k)]["loss"] - updates[k].result().loss) / away_s
        learned = EUcb(0.2, 1.0, 0.95, 0.05, 1.0).learn(
            [[0.2, 1.0, 0, 0]], old[str(k)]["next"], reward
        )
        assert np.allclose(new[str(k)]["leaves"], learned)
    assert old["0"]["next"] != first and 0.2 <= method.share(state, 0) <= 1.0
    assert method.observe(state, Report(2, 1.0, ())) is state


def test_a_late_device_earns_something_only_where_the_server_waits_for_it(bench):
    method, state, report = second_round(bench)
    in_time, waited_for, lost, other = report.outcomes
    waited_for = replace(waited_for, status="late")
    lost = replace(lost, status="late", received=False)
    after = method.observe(state, replace(report, outcomes=(in_time, waited_for, lost, other)))
    before, learned = state.notes["bandits"], after.notes["bandits"]
    assert [k for k in before if learned[k] == before[k]] == ["2"]


def test_a_device_that_came_twice_learns_from_both(bench):
    """Clocks whose jobs overlap: each earns the fall from the loss before it, and is a play."""
    method, state, report = second_round(bench)
    first = report.outcomes[0]
    again = replace(report, outcomes=(first, replace(first), *report.outcomes[1:]))
    before, learned = state.notes["bandits"], method.observe(state, again).notes["bandits"]
    plays = {k: sum(leaf[2] for leaf in learned[k]["leaves"]) for k in before}
    assert plays == pytest.approx({"0": 1.95, "1": 1.0, "2": 1.0, "3": 1.0})


def test_what_a_fixed_width_does_not_read_is_refused(bench):
    with pytest.raises(MethodError, match=r"least_share.*width is given"):
        bench.method("fedmp", width=0.5, least_share=0.3)


def test_without_a_width_the_bandit_decides_whatever_a_device_can_give(bench):
    method = bench.method("fedmp", **PLAIN)
    state, view = method.start(), view_of(bench.task)
    weak = replace(view, capability=view.capability * 0.1, model_budget=view.model_budget * 0.1)
    assert np.array_equal(method.kept(state, weak, 0), method.kept(state, view, 0))
    (width,) = (each for each in parameters(type(method)) if each.name == "width")
    assert width.meaning.endswith("none: what its bandit draws")
