"""A small log of two rounds."""

import math

import numpy as np
import pytest
import simpy

from edgesim.records.event_log import EventLog
from fl.contracts import Grant, Outcome, RoundPlan, Scores

MEASURES = {"density": 0.35, "accuracy global": math.nan, "NA": math.inf, "a, b": 3}


@pytest.fixture(scope="session", name="logged")
def logged_fixture():
    """logged(first, rounds, log) -> a log with so many rounds more."""
    return logged


def logged(first=0, rounds=2, log=None):
    """Two devices compute for 2 s (8 cycles) and 4 s; device 1 is cut off after 3 s; device 2 is
    infeasible.
    """
    env, log = simpy.Environment(), log or EventLog()
    log.attach(env)
    grants = (Grant(0, 0.25, 0.5, 1e9, 1.0), Grant(1, 0.75, 0.0, 1e9, 1.0))
    plan = RoundPlan(grants, (2,), 1e-12, budget_s=3.0, pruning_per_hz=-2e-7, pruning_per_s=-50.0)

    def work(g, device, seconds):
        with log.span(g, device, "upload") as span:
            span.bits = 10.0
        with log.span(g, device, "train", lambda span: 2 * span.cycles, 8.0, 16.0, seconds):
            yield env.timeout(seconds)

    for g in range(first, first + rounds):
        start_s = env.now
        processes = [env.process(work(g, k, 2.0 + 2.0 * k)) for k in (1, 0)]
        env.run(until=start_s + 3.0)
        processes[0].interrupt()
        with pytest.raises(simpy.Interrupt):
            env.run(processes[0])
        outcomes = [
            Outcome(plan.grants[0], None, "arrived", True, True, 2.0),
            Outcome(plan.grants[1], None, "late", False, False, math.nan),
            Outcome(Grant(2, 0.0, 0.0, 1e9, 1.0), None, "infeasible", False, False, math.nan),
        ]
        tests = (
            np.array([1.0, 3.0, math.nan]),
            np.array([0.5, 1.0, math.nan]),
        )  # device 2 has no test data
        scores = Scores(*tests, MEASURES) if g else None
        log.close_round(g, start_s, env.now, plan, outcomes, scores, threshold_s=2.0)
    return log
