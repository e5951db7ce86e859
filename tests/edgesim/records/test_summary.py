"""Summary figures by hand from a table of three rounds; the trace from two spans."""

from __future__ import annotations

import json
from math import inf, nan

import numpy as np
import pytest

from edgesim import simulate
from edgesim.records.perfetto_trace import trace_json
from edgesim.records.summary import divergence_warnings, summarise, to_target

ROUNDS = {
    "round": [0, 1, 2],
    "time_s": [0.5, 1.25, 2.0],
    "latency_s": [0.5, 0.75, 0.75],
    "selected": [4, 4, 4],
    "late": [0, 1, 2],
    "infeasible": [1, 0, 0],
    "loss": [nan, 1.0, 0.5],
    "accuracy": [nan, 0.8, 0.7],
    "bits_up": [10.0, 20.0, 40.0],
    "bits_down": [1.0, 2.0, 4.0],
    "energy_j": [0.25, 0.5, 1.0],
    "rho_mean": [0.5, nan, 0.7],
    "solver_residual": [nan, 1e-12, 1e-13],
}

# by 1.25 s a job of version 1 has ended, one has arrived and waits, and one has sent a quarter
SPANS = {
    "round": [1, 1, 1, 2, 2, 2],
    "phase": ["train", "upload", "download", "upload", "upload", "download"],
    "start_s": [0.0, 0.5, 1.25, 1.0, 1.0, 1.25],
    "end_s": [0.5, 1.0, 1.25, 1.25, 2.0, 1.25],
    "bits": [0.0, 8.0, 2.0, 16.0, 4.0, 32.0],
    "energy_j": [0.5, 0.25, 0.0, 0.125, 2.0, 64.0],
}


def test_target_is_counted_up_to_the_round_that_reached_it():
    assert to_target(ROUNDS, 0.8) == {"round": 1, "time_s": 1.25, "bits": 33.0, "energy_j": 0.75}
    assert to_target(ROUNDS, 0.81) is None


@pytest.mark.parametrize("column", ["in_flight", "held"])
def test_what_is_at_work_when_a_target_is_reached_is_counted_up_to_that_instant(column):
    """8 + 2 + 16 + 4 / 4 bits, and nothing of what begins afterwards."""
    reached = {"round": 1, "time_s": 1.25}
    nobody, somebody = (ROUNDS | {column: [0, count, 0]} for count in (0, 2))
    assert to_target(nobody, 0.8, SPANS) == reached | {"bits": 33.0, "energy_j": 0.75}
    assert to_target(somebody, 0.8, SPANS) == reached | {"bits": 27.0, "energy_j": 1.375}


def test_a_mean_that_rounding_leaves_below_a_target_has_reached_it():
    """Six devices with 80 % each."""
    mean = float(np.mean([0.8] * 6))
    assert mean == 0.7999999999999999
    assert to_target(ROUNDS | {"accuracy": [nan, mean, 0.7]}, 0.8)["round"] == 1


def test_targets_that_differ_in_the_seventh_digit_stay_apart():
    targets = summarise(ROUNDS, (0.7999999, 0.8000001), None, SPANS)["targets"]
    assert targets == {"0.7999999": to_target(ROUNDS, 0.8), "0.8000001": None}


def test_the_first_round_with_a_loss_of_inf_is_where_training_diverged():
    said = (
        "training diverged: the loss after {} is inf or nan; most likely a step size is too large"
    )
    rates = {"lr": 0.5, "local_steps": 3, "server_lr": 1}
    assert divergence_warnings(ROUNDS, rates) == []  # nan: not evaluated
    late = ROUNDS | {"loss": [nan, inf, inf]}
    assert divergence_warnings(late, rates) == [said.format("2 rounds") + " (lr 0.5, server_lr 1)"]
    assert divergence_warnings(ROUNDS | {"loss": [inf, 1, inf]}, {}) == [said.format("1 round")]


def test_summary():
    summary = summarise(ROUNDS, (0.75, 0.9), 0.6, SPANS)
    assert summary["final_accuracy"] == 0.7
    assert summary["best_accuracy"] == 0.8
    assert summary["final_loss"] == 0.5
    assert summary["targets"] == {"0.75": to_target(ROUNDS, 0.75), "0.9": None}
    assert summary["mean_latency_s"] == pytest.approx(2 / 3)
    assert summary["late_share"] == 3 / 12
    assert summary["infeasible_share"] == 1 / 12
    assert (summary["bits_up"], summary["bits_down"], summary["energy_j"]) == (70.0, 7.0, 1.75)
    assert summary["rho_mean"] == pytest.approx(0.6)
    assert summary["certificate_worst"] == 1e-12


def test_never_evaluated_and_never_certified_is_null():
    rounds = ROUNDS | {
        name: [nan] * 3 for name in ("loss", "accuracy", "rho_mean", "solver_residual")
    }
    summary = summarise(rounds, (0.8,), None, SPANS)
    for name in ("final_accuracy", "best_accuracy", "final_loss", "rho_mean", "certificate_worst"):
        assert summary[name] is None
    json.dumps(summary, allow_nan=False)


def test_real_targets_have_a_loss_and_no_accuracy():
    summary = summarise(ROUNDS | {"accuracy": [nan] * 3}, (0.8,), None, SPANS)
    assert (summary["final_accuracy"], summary["final_loss"]) == (None, 0.5)


def test_a_metric_of_the_task_has_its_last_value():
    assert "final_metric" not in summarise(ROUNDS, (), None, SPANS)
    summary = summarise(ROUNDS | {"r2": [0.1, 0.3, nan], "f1": [nan] * 3}, (), None, SPANS)
    assert summary["final_metric"] == {"r2": 0.3, "f1": None}


def test_trace_has_a_track_per_device_and_resource():
    spans = {
        "round": [0, 0],
        "device": [3, 3],
        "phase": ["personal", "upload"],
        "start_s": [0.0, 0.001],
        "end_s": [0.001, 0.004],
        "bits": [0.0, 5.0],
        "cycles": [7.0, 0.0],
        "energy_j": [0.1, 0.2],
    }
    events = json.loads(trace_json(spans))["traceEvents"]
    names = [e["args"]["name"] for e in events if e["ph"] == "M"]
    assert names == ["device 3", "cpu", "radio"]
    compute, upload = (e for e in events if e["ph"] == "X")
    assert (compute["tid"], compute["ts"], compute["dur"], compute["args"]["cycles"]) == (
        0,
        0.0,
        1000.0,
        7.0,
    )
    assert (upload["tid"], upload["name"], upload["args"]["bits"]) == (1, "upload", 5.0)
    assert upload["dur"] == pytest.approx(3000.0)


@pytest.mark.parametrize("clock", ["buffered, buffer: 2", "asynchronous", "speed-tiers"])
def test_a_run_that_ends_with_the_target_has_spent_as_much_as_the_longer_one_by_then(few, clock):
    """At its end the jobs at work are interrupted: what they have sent and used by then counts."""
    given = (
        f"clock={{mode: {clock}}}",
        "learning={dataset: digits, partition: {kind: iid}, samples_per_device: 20, model: mlp, "
        "batch_size: 10, method: {name: fedavg, lr: 0.1, local_steps: 2}}",
        "evaluate={every: 3, targets: [0.01]}",
        "allocation.solver=equal",
        "devices.0.idle_power=100 mW",
    )
    longer, ends = (simulate(few(*given, f"rounds={count}")) for count in (9, 3))
    target, spent = longer.summary["targets"]["0.01"], ends.summary
    assert longer.rounds["in_flight"][2] > 0
    assert (target["round"], target["time_s"]) == (2, spent["time_s"])
    bits = spent["bits_up"] + spent["bits_down"]
    assert target["bits"] == pytest.approx(bits, rel=1e-9)
    assert target["energy_j"] == pytest.approx(spent["energy_j"], rel=1e-9)
    assert spent["targets"]["0.01"]["bits"] == pytest.approx(bits, rel=1e-9)
