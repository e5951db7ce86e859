"""SpaFL: thresholds that travel."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fl.contracts import Trained
from fl.errors import MethodError
from fl.executors.deferred_training import Trainer
from fl.method_base.method import State, check
from fl.methods import resolve
from tests.fl.conftest import view_of
from tests.fl.two_neurons import QUICK, ROWS, TAU, flat, part_of_round, returned


def state_with(method, own, old, new):
    """Device 0 with weights and thresholds ``own``, after global thresholds ``old`` and ``new``."""
    state = replace(method.start(), w=flat(np.zeros((2, 3)), new), local={0: own}, g=2)
    return replace(
        state,
        memo={"change": torch.tensor(new) - torch.tensor(old), "seen": torch.tensor([[0.1, 0.0]])},
    )


def test_the_mean_of_the_thresholds_whatever_the_order(neurons):
    method = neurons.method("spafl")
    state = replace(method.start(), w=flat(ROWS, [0.05, 0.05]))
    ends = [
        returned(method, flat(ROWS, [0.1, 0.5]), 0),
        returned(method, flat(np.ones((2, 3)), [0.3, 0.0]), 1),
    ]
    after, turned = (
        method.aggregate(state, view_of(neurons.task), updates) for updates in (ends, ends[::-1])
    )
    assert after.w[6:].tolist() == pytest.approx([0.2, 0.25], abs=1e-7)
    assert after.memo["change"].tolist() == pytest.approx([0.15, 0.2], abs=1e-7)
    assert torch.equal(after.w, turned.w)
    assert torch.equal(after.w[:6], state.w[:6])


@pytest.mark.slow
def test_where_nobody_arrives_thresholds_stay_and_their_change_is_0(bench):
    method = bench.method("spafl", **QUICK)
    state = bench.round(method, method.start())
    assert state.memo["change"].abs().sum() > 0
    after = method.aggregate(state, view_of(bench.task), [])
    assert torch.equal(after.w, state.w) and after.memo["change"].abs().sum() == 0 and after.g == 2


@pytest.mark.slow
def test_who_does_not_take_part_is_left_alone(bench):
    method = bench.method("spafl", **QUICK)
    first = part_of_round(bench, method, method.start(), [0, 1])
    second = part_of_round(bench, method, first, [1, 3])
    assert sorted(first.local) == [0, 1] and sorted(second.local) == [0, 1, 3]
    assert torch.equal(second.local[0], first.local[0]) and not torch.equal(
        second.local[1], first.local[1]
    )
    assert torch.equal(
        method.personalise(second, 2), method.start().w
    )  # never asked: as initialised, nothing pruned
    assert (
        method.measures(first)["never_sampled"] == 2
        and method.measures(second)["never_sampled"] == 1
    )


def test_weights_never_travel(bench):
    method = bench.method("spafl", **QUICK)
    state = method.start()
    count, size = 8 + 16 + 64 + 10, bench.task.layout.size
    (job,) = bench.jobs(method, state, devices=[2])
    done = Trainer(bench.task).submit([job])[0].result()
    sent = method.encode(job, done)
    assert sent.travels[size:].all() and not sent.travels[:size].any()
    assert job.payload.bits_up == count * 32 and job.payload.bits_down == 2 * count * 32
    scrambled = done.w.clone()
    scrambled[:size] = 9.0
    ends = [
        method.aggregate(state, view_of(bench.task), [returned(method, w, 2)])
        for w in (done.w, scrambled)
    ]
    assert torch.equal(ends[0].w[size:], ends[1].w[size:]) and torch.equal(
        ends[0].w[size:], done.w[size:]
    )
    assert torch.equal(ends[0].w[:size], state.w[:size])


@pytest.mark.parametrize(
    ("params", "moved"),
    [
        ({}, [-0.02, 0.01]),  # -(0.26 - 0.2) / 3, -(0.0 - 0.03) / 3
        ({"delta": "broadcast"}, [-0.02, 0.01]),
        ({"delta": "since_last"}, [-0.16 / 3, 0.0]),  # it last received 0.1 and 0.0
        ({"importance_update": False}, [0.0, 0.0]),
        ({"frozen_weights": True}, [0.0, 0.0]),
    ],
)
def test_a_device_starts_from_its_own_weights_and_the_servers_thresholds(neurons, params, moved):
    method = neurons.method("spafl", **params)
    own = flat(ROWS, TAU)
    state = state_with(method, own, [0.2, 0.03], [0.26, 0.0])
    if not method.moves:
        state = replace(state, memo={})
    start = method.received(state, 0)
    assert start[6:].tolist() == pytest.approx([0.26, 0.0])
    assert (start - own)[:6].tolist() == pytest.approx([moved[0]] * 3 + [moved[1]] * 3, abs=1e-7)
    assert torch.equal(state.local[0], own)


def test_the_first_round_moves_no_weights(bench):
    method = bench.method("spafl")
    assert torch.equal(method.received(method.start(), 0), method.start().w)


@pytest.mark.slow
def test_since_last_remembers_what_a_device_received(bench):
    method = bench.method("spafl", delta="since_last", **QUICK)
    states = [method.start()]
    for devices in ([0, 1], [1], [2], [0]):
        states.append(part_of_round(bench, method, states[-1], devices))
    tau = [method.rows.thresholds(state.w) for state in states]
    seen = states[3].memo["seen"]
    assert (
        torch.equal(seen[0], tau[0])
        and torch.equal(seen[1], tau[1])
        and torch.equal(seen[2], tau[2])
    )
    expected = method.rows.nudged(states[3].local[0], tau[3] - tau[0])
    size = bench.task.layout.size
    assert torch.equal(method.received(states[3], 0)[:size], expected[:size])
    assert "change" not in states[3].memo


def test_what_a_device_received_outlives_a_failure_of_the_server(bench):
    """Device 0 has followed the thresholds after round 0; the server goes on with the first ones.

    Back at these the device moves by the way back, and not by none.
    """
    method = bench.method("spafl", delta="since_last", **QUICK)
    start = method.start()
    first = part_of_round(bench, method, start, [1])
    second = part_of_round(bench, method, first, [0])
    again = method.recovered(start, second)
    tau = [method.rows.thresholds(state.w) for state in (start, first)]
    assert (tau[0] != tau[1]).any() and torch.equal(again.w, start.w)
    expected = method.rows.nudged(second.local[0], tau[0] - tau[1])
    size = bench.task.layout.size
    assert torch.equal(method.received(again, 0)[:size], expected[:size])


@pytest.mark.slow
def test_few_threshold_bits_round_what_is_sent(bench):
    method, state = bench.play("spafl", rounds=1, threshold_bits=6, **QUICK)
    steps = method.rows.thresholds(state.w) * 63
    assert torch.equal(steps, steps.round()) and steps.max() >= 1
    own = method.rows.thresholds(state.local[0]) * 63
    assert not torch.allclose(own, own.round(), atol=1e-3)
    sent = method.encode(
        bench.jobs(method, state, devices=[0])[0], Trained(state.local[0], method.shared_mask, 0.0)
    )
    assert torch.allclose(method.rows.thresholds(sent.values) * 63, own.round(), atol=1e-4)


def test_a_mean_of_several_servers_reaches_devices_in_as_few_bits(neurons):
    """Of 2 bits there are 0, 1/3, 2/3 and 1; the mean over edges, or over tiers, lies between."""
    method = neurons.method("spafl", delta="since_last", threshold_bits=2)
    own = flat(ROWS, TAU)
    state = state_with(method, own, [0.2, 0.03], [0.4, 0.9])
    start = method.received(state, 0)
    assert start[6:].tolist() == pytest.approx([1 / 3, 1.0])
    moved = (start - own)[:6].tolist()  # it last received 0.1 and 0.0
    assert moved == pytest.approx([-(1 / 3 - 0.1) / 3] * 3 + [-1 / 3] * 3, abs=1e-7)
    (job,) = neurons.jobs(method, state, devices=[0])
    assert job.note.tolist() == pytest.approx([1 / 3, 1.0])


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("local", {"weighting": "samples"}),
        ("spafl", {"importance_update": False, "delta": "sent"}),
        ("spafl", {"importance_update": False, "importance_divisor": "n_in"}),
        ("spafl", {"frozen_weights": True, "importance_update": True}),
        ("spafl", {"frozen_weights": True, "mask_path": True}),
        ("spafl", {"local_epochs": 5, "local_steps": 3}),
    ],
)
def test_parameters_without_effect_are_refused(name, given):
    with pytest.raises(MethodError, match="is not read where"):
        check(resolve(name), given)


@pytest.mark.slow
@pytest.mark.parametrize("delta", ["sent", "since_last"])
def test_a_resumed_run_goes_on_as_it_would_have(bench, delta):
    method = bench.method("spafl", delta=delta, **QUICK)
    state = part_of_round(bench, method, method.start(), [0, 2])
    resumed = State.from_arrays(*state.to_arrays())
    ends = [part_of_round(bench, method, each, [2, 3]) for each in (state, resumed)]
    (arrays, record), (again, record_again) = (end.to_arrays() for end in ends)
    assert arrays.keys() == again.keys() and all(
        np.array_equal(arrays[name], again[name]) for name in arrays
    )
    assert record == record_again
