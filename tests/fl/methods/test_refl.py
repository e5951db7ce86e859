"""REFL: held updates, their weights, and whom it asks."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from edgesim import load, simulate
from fl.executors.deferred_training import Trainer
from fl.method_base.method import bind
from fl.method_base.state import State
from fl.methods.refl import REFL, deviation, deviations, staleness_weight
from tests.fl.conftest import view_of
from tests.fl.random_jobs import task_of

LR = 0.05


def rounds_with_one_late(bench):
    """Round 0: all four train, device 3 does not arrive. Round 1: it sends, the others train and
    arrive.
    """
    method = bench.method("refl", local_steps=2, lr=LR)
    state = method.start()
    first = Trainer(bench.task).submit(bench.jobs(method, state))
    after = method.aggregate(method.retain(state, first), view_of(bench.task), first[:3])
    second = Trainer(bench.task).submit(bench.jobs(method, after))
    return method, state, first, after, second


LATE = """
name: late
rounds: 12
network:
  bandwidth: 4 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 95 dB}, fading: {kind: rayleigh, coherence: 9 ms}}
devices:
  - {count: 6, tx_power: 23 dBm, cpu: {frequency: 2 GHz, flops_per_cycle: 4}}
budget: {latency_threshold: 20 ms}
allocation: {solver: equal}
clock: {mode: deadline}
learning:
  dataset: digits
  partition: {kind: labels, labels_per_device: 3}
  samples_per_device: 40
  model: digits-cnn
  batch_size: 10
  method: {name: refl, participants: 4, lr: 0.05}
"""


def test_the_weight_of_a_late_update():
    assert staleness_weight(1, 1.0, 0.35, 1.0) == pytest.approx(0.546242, abs=5e-7)
    assert staleness_weight(1, 1.0, 0.35, 10.0) == pytest.approx(0.662124, abs=5e-7)
    assert staleness_weight(3, 1.0, 0.0) == 0.25
    assert staleness_weight(0, 1.0, 0.35, 1.0) == pytest.approx(0.871242, abs=5e-7)


def test_how_far_late_updates_deviate():
    """u = [2, 0], n = 1; late [0, 0]: (u - [1, 0])^2 / 4 = 1/4; late [2, 4]: [0, -2]^2 / 4 = 1."""
    mean, late = np.array([2.0, 0.0]), [np.array([0.0, 0.0]), np.array([2.0, 4.0])]
    assert [deviation(mean, 1, one) for one in late] == [0.25, 1.0]
    assert deviations(mean, 1, late) == [0.25, 1.0]
    assert deviations(mean, 3, late) == pytest.approx([0.25, 1.0])  # both shrink by the same
    assert deviations(None, 0, late) == deviations(0 * mean, 1, late) == [1.0, 1.0]
    assert deviations(mean, 1, []) == []


def test_refl_in_which_nobody_is_late_is_fedavg(bench):
    _, fedavg = bench.play("fedavg", rounds=3, local_steps=3, lr=LR)
    _, refl = bench.play("refl", rounds=3, local_steps=3, lr=LR)
    assert torch.equal(refl.w, fedavg.w) and refl.local == {}


def test_a_late_update_of_refl_is_held_and_only_sent(bench):
    method, state, first, after, second = rounds_with_one_late(bench)
    assert list(after.local) == [3] and after.notes["since"] == {"3": 0}
    assert torch.equal(after.local[3], first[3].result().w - state.w)
    held = second[3].job
    assert (
        held.stages == ()
        and held.payload.bits_down == 0
        and held.payload.bits_up == first[3].job.payload.bits_up
    )
    demand = method.demand(after, view_of(bench.task, 1), np.arange(4))
    assert (
        (demand.work_prunable.flops > 0).tolist()
        == (demand.bits_down > 0).tolist()
        == [True, True, True, False]
    )
    assert (demand.bits_prunable > 0).all()
    assert torch.equal(second[3].result().w, after.local[3])


def test_a_whole_number_of_fresh_devices_is_not_rounded_up():
    """0.55 of 100 are 55, whatever 0.55 * 100 = 55.00000000000001 says; 60 of 120 are late."""
    task = task_of("mlp", sizes=(2,) * 120)
    method = bind(REFL, task, {"participants": 100, "least_fresh": 0.55})
    state = method.start()
    state = replace(state, local=dict.fromkeys(range(60), state.w))
    asked = method.select(state, view_of(task))
    assert (asked < 60).sum() == 60 and (asked >= 60).sum() == 55


def test_a_late_update_of_refl_counts_less(bench):
    method, state, first, after, second = rounds_with_one_late(bench)
    view = view_of(bench.task, 1)
    end = method.aggregate(method.retain(after, second), view, second)
    fresh = [update.result().w.double() - after.w.double() for update in second[:3]]
    late = first[3].result().w.double() - state.w.double()
    weight = 0.65 / 2 + 0.35 * (1 - np.exp(-1.0))
    expected = after.w.double() + (sum(fresh) + weight * late) / (3 + weight)
    assert torch.allclose(end.w.double(), expected, atol=1e-7)
    assert end.local == {} and end.notes["since"] == {}
    waits = method.aggregate(method.retain(after, second[:3]), view, second[:3])
    assert list(waits.local) == [3] and waits.notes["since"] == {
        "3": 0
    }  # not there: it goes on holding it
    nobody = method.aggregate(method.retain(after, second[3:]), view, second[3:])
    assert torch.allclose(nobody.w.double(), after.w.double() + late, atol=1e-7)


def test_late_updates_of_refl_count_by_how_far_they_deviate(bench):
    """Devices 2 and 3 are late; in the next round only 0 and 1 train: both deviations are taken
    from these two.
    """
    method = bench.method("refl", local_steps=2, lr=LR, beta=1.0)
    state = method.start()
    first = Trainer(bench.task).submit(bench.jobs(method, state))
    after = method.aggregate(method.retain(state, first), view_of(bench.task), first[:2])
    second = Trainer(bench.task).submit(bench.jobs(method, after))
    end = method.aggregate(method.retain(after, second), view_of(bench.task, 1), second)
    u = [update.result().w.double() - after.w.double() for update in second[:2]]
    s = [update.result().w.double() - state.w.double() for update in first[2:]]
    far = [(((u[0] + u[1]) / 2 - one) / 3).square().sum().item() for one in s]
    weights = [1 - np.exp(-one / max(far)) for one in far]
    moved = (u[0] + u[1] + weights[0] * s[0] + weights[1] * s[1]) / (2 + sum(weights))
    assert torch.allclose(end.w.double(), after.w.double() + moved, atol=1e-7)
    assert abs(weights[0] - weights[1]) > 0.01


def test_whom_refl_asks(bench):
    method = bench.method("refl", participants=2)
    free = State(
        5, None, notes={"asked": {"0": 3, "1": 5}, "seen": [9, 0, 9, 9], "stayed": [1, 0, 9, 1]}
    )
    chosen = [method.select(free, view_of(bench.task, g)).tolist() for g in range(6, 9)]
    assert chosen == [[2, 3]] * 3  # 0 and 1 rest
    late = replace(free, local={0: None})
    assert method.select(late, view_of(bench.task, 6)).tolist() == [
        0,
        3,
    ]  # 3 stayed once in nine times
    more = replace(late, local={0: None, 1: None, 2: None})
    assert method.select(more, view_of(bench.task, 6)).tolist() == [
        0,
        1,
        2,
        3,
    ]  # half of N_0 trains all the same
    rested = [
        method.select(replace(free, notes={}), view_of(bench.task, g)).tolist() for g in range(200)
    ]
    assert {tuple(row) for row in rested} == {(a, b) for a in range(4) for b in range(a + 1, 4)}


def test_refl_learns_who_stays(bench):
    method, state = bench.method("refl"), State(0, torch.zeros(3))
    for idle in ([0, 1], [0, 2], [0]):
        state = method.aggregate(
            state, replace(view_of(bench.task, state.g), idle=np.array(idle)), []
        )
    assert state.notes["seen"] == [2, 1, 1, 0] and state.notes["stayed"] == [2, 0, 0, 0]
    assert method.staying(state).tolist() == pytest.approx([3 / 4, 1 / 3, 1 / 3, 1 / 2])


def test_a_held_update_of_refl_outlives_a_failure_of_the_server(bench):
    """The server goes on with its state before round 0; device 3 still sends what it trained."""
    method, state, _, after, second = rounds_with_one_late(bench)
    again = method.recovered(state, after)
    assert list(again.local) == [3] and again.notes["since"] == {"3": 0}
    end = method.aggregate(again, view_of(bench.task, 1), second[3:])
    assert torch.allclose(end.w, state.w + after.local[3]) and end.local == {}


@pytest.mark.slow
def test_refl_on_the_deadline_clock(tmp_path):
    """Slow links: uploads break off at the deadline, and arrive in later rounds."""
    path = tmp_path / "late.yaml"
    path.write_text(LATE)
    run = simulate(load(path))
    held = run.measures[run.measures.name == "held updates"].value
    rows = run.device_rounds
    assert held.max() > 0 and (rows.status == "late").any()
    only_sent = rows[(rows.flops == 0) & (rows.status == "arrived")]
    assert len(only_sent) > 0 and (only_sent.bits_up > 0).all() and (only_sent.bits_down == 0).all()
