"""Versions for which several plans were made: their rows have the numbers of all of them."""

from __future__ import annotations

import math
from collections import defaultdict

import pytest

import edgesim.runs.play_rounds
from edgesim import load, simulate
from edgesim.clocks import server_loop
from edgesim.clocks.vectorised import version_loop
from edgesim.engine.participants import make_plan
from fl.contracts import RoundPlan

CELL = """
name: six
rounds: 12
network:
  bandwidth: 2 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: [95 dB, 100 dB, 105 dB, 90 dB, 98 dB, 103 dB]}}
devices:
  - {count: 6, tx_power: 23 dBm, cpu: {frequency: 2 GHz, cycles_per_weight: 400}}
budget: {latency_threshold: 30 ms}
allocation: {solver: kkt}
clock: {mode: buffered, in_flight: 4, buffer: 3}
learning: {dataset: none, model: mlp, batch_size: 10, method: {name: pruning-only}}
"""


@pytest.mark.parametrize("columns", [True, False], ids=["columns", "processes"])
def test_a_row_has_the_worst_residual_and_the_sum_of_the_slopes(tmp_path, monkeypatch, columns):
    made = defaultdict(list)

    def planned(cell, method, state, view):
        made[view.g].append(make_plan(cell, method, state, view))
        return made[view.g][-1]

    for loop in (server_loop, version_loop):
        monkeypatch.setattr(loop, "make_plan", planned)
    if not columns:
        always = lambda cell, clock, trained: True  # noqa: E731
        monkeypatch.setattr(edgesim.runs.play_rounds, "needs_processes", always)
    path = tmp_path / "six.yaml"
    path.write_text(CELL)
    rounds = simulate(load(path)).rounds
    assert max(sum(bool(each.grants) for each in plans) for plans in made.values()) > 1
    for g, plans in made.items():
        of_somebody, row = [each for each in plans if each.grants], rounds.loc[g]
        assert row.dispatched == sum(len(each.grants) for each in of_somebody)
        assert row.solver_residual == max(each.residual for each in of_somebody)
        for name in ("pruning_per_hz", "pruning_per_s"):
            total = math.fsum(getattr(each, name) for each in of_somebody)
            assert row[name] == pytest.approx(total, rel=1e-12, abs=0.0)
    assert (rounds.pruning_per_hz < 0).any()


def test_a_stretched_plan_is_not_forgotten_for_a_later_one():
    nan, waits = math.nan, RoundPlan((), budget_s=1.0)
    first = RoundPlan((), (), 1e-12, 2.0, nan, nan, unsettled=0.5).after(waits)
    then = RoundPlan((), (3,), 1e-15, 1.0, -1e-7, -2.0).after(first)
    assert (then.residual, then.budget_s, then.unsettled) == (1e-12, 2.0, 0.5)
    assert then.infeasible == (3,)
    assert math.isnan(then.pruning_per_hz) and math.isnan(then.pruning_per_s)
    again = RoundPlan((), (), 1e-13, 1.0, -3e-7, -4.0).after(waits).after(waits)
    both = waits.after(RoundPlan((), (), 1e-15, 1.0, -1e-7, -2.0).after(again))
    assert (both.residual, both.budget_s) == (1e-13, 1.0)
    assert (both.pruning_per_hz, both.pruning_per_s) == (pytest.approx(-4e-7), -6.0)
