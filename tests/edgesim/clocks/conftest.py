"""Jobs of given durations under a clock, without radio and without learning."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from edgesim import load
from edgesim.clocks.rules import Rules
from edgesim.records.event_log import EventLog
from edgesim.records.run_tables.table_columns import ABSENCE_COLUMNS, JOB_COLUMNS, SERVER_COLUMNS
from fl.contracts import Demand, Job, Payload, Stage, Work
from solvers.allocators.equal import equal
from tests.edgesim.network.fleets import make_fleet


@dataclass(frozen=True)
class GivenDurations:
    """Device k computes for durations[k] seconds; what it sends takes no time."""

    durations: tuple[float, ...]
    stale = "damp"

    def start(self):
        return 0

    def select(self, state, view):
        return view.idle[: view.places(None)]

    def demand(self, state, view, chosen):
        zeros, ones = np.zeros(len(chosen)), np.ones(len(chosen))
        seconds = np.array(self.durations)[chosen]
        return Demand(chosen, zeros, zeros, Work(seconds), Work(zeros), zeros, zeros, ones, zeros)

    def configure(self, state, view, grant):
        stages = (Stage("train", Work(self.durations[grant.device])),)
        return Job(grant.device, view.g, (), stages, Payload(0.0, 0.0), 0.0)

    def charged(self, job):
        raise NotImplementedError

    def retain(self, state, updates):
        return state

    def discard(self, state, view, updates):
        return state

    def aggregate(self, state, view, updates):
        return state + 1

    def observe(self, state, report):
        return state

    def damped(self, update, now, base, weight):
        return update

    def recovered(self, saved, now):
        return now


@dataclass
class Traced:
    """What a clock did with jobs of given durations."""

    log: EventLog

    @property
    def rounds(self):
        return self.log.table("rounds")

    @property
    def jobs(self):
        return self.log.table("device_rounds")

    @property
    def spans(self):
        return self.log.table("spans")

    @property
    def versions(self):
        """(time, {device: staleness of what was used of it}) of every version."""
        used = self.jobs[self.jobs.version_out >= 0]
        return [
            (time_s, dict(zip(rows.device, rows.staleness, strict=True)))
            for g, time_s in zip(self.rounds["round"], self.rounds.time_s, strict=True)
            for rows in [used[used["round"] == g]]
        ]

    @property
    def staleness(self):
        return self.jobs.staleness[self.jobs.version_out >= 0].tolist()

    @property
    def still_out(self):
        """Age of what was not used at the end, in versions."""
        last = len(self.rounds)
        unused = self.jobs[self.jobs.version_out < 0]
        return int((last - unused.version_in).sum())


@pytest.fixture(scope="session")
def traced(engine):
    """traced(durations, rules, versions) -> `Traced`; ``fleet`` are properties of the devices,
    ``absences`` says how they come and go."""

    def run(
        durations, rules, versions, absences=None, budget_s=float("inf"), failures=None, **fleet
    ):
        rules = rules or Rules()
        devices = make_fleet(
            tx_power_w=1.0, cpu_hz=[1.0] * len(durations), cycles_per_weight=1.0, **fleet
        )
        absent, fails = absences is not None, failures is not None
        numbered = rules.records_jobs or absent or fails
        has = (JOB_COLUMNS, numbered), (ABSENCE_COLUMNS, absent), (SERVER_COLUMNS, fails)
        log = EventLog(*(columns for columns, holds in has if holds))
        slots = getattr(rules, "slots", 1)
        engine.play(
            devices,
            1e-10,
            GivenDurations(tuple(durations)),
            solver=partial(equal, slots=slots),
            budget_s=budget_s,
            clock=rules,
            rounds=range(versions),
            log=log,
            absences=absences,
            failures=failures,
        )
        log.freeze()
        return Traced(log)

    return run


@pytest.fixture
def three(few):
    """three(*changes): devices of very unequal speeds, eight steps and a threshold of 40 ms."""
    given = (
        "devices.0.count=3",
        "devices.0.cpu.frequency=[2 GHz, 5 MHz, 100 kHz]",
        "budget.latency_threshold=40 ms",
        "learning={dataset: digits, partition: {kind: iid}, samples_per_device: 40, model: mlp, "
        "batch_size: 10, method: {name: fedavg, lr: 0.1, local_steps: 8}}",
    )
    return lambda *changes: few(*given, *changes)


TEN_DEVICES = """
name: ten
rounds: 2
network: {bandwidth: 4 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 95 dB}}}
devices: [{count: 10, tx_power: 23 dBm, cpu: {frequency: 2 GHz, flops_per_cycle: 4}}]
allocation: {solver: equal}
learning: {dataset: none, model: mlp, batch_size: 10, method: {name: fedavg}}
"""


@pytest.fixture
def scenario(tmp_path):
    """scenario(*changes): ten devices alike, which share a band equally."""
    path = tmp_path / "ten.yaml"
    path.write_text(TEN_DEVICES)
    return lambda *changes: load(path, changes)
