"""A method that costs time and bits and learns nothing, and a runner of rounds: the engine
without torch.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
import simpy

from edgesim.clocks.rules import Deadline, Rules
from edgesim.clocks.server_loop import serve
from edgesim.network.cell import Cell
from edgesim.network.channel import Channel
from edgesim.network.fading.processes import BlockFading
from edgesim.network.flows.ideal_downlink import IdealDownlink
from edgesim.network.uplink import Uplink
from edgesim.records.event_log import EventLog
from edgesim.seeds import Seeds
from fl.contracts import Demand, Job, Payload, Stage, Work
from fl.executors.deferred_training import Promise
from solvers import allocate


@dataclass
class TimingUpdate:
    job: Job
    charged: Callable
    aborted: bool = False
    forced: bool = False  # somebody asked for what only the training tells

    def stages(self):
        if self.job.stages is not None:
            return self.job.stages
        self.forced = True
        return self.charged(self.job)

    def bits_up(self):
        return self.job.payload.bits_up

    def truncate(self, fraction):
        promise = Promise(self.job, None)
        steps = promise.truncate(fraction)
        self.job = promise.job
        return steps

    def abort(self):
        self.aborted = True


class TimingTrainer:
    def __init__(self, charged):
        self.charged, self.updates = charged, []

    def submit(self, jobs):
        self.updates += (fresh := [TimingUpdate(job, self.charged) for job in jobs])
        return fresh


@dataclass(frozen=True)
class TimingMethod:
    """Liu's costs: personal steps on N_v, warm-up and pruned steps on N_u weights; q_hat bits each.

    Its state is the tuple of what the server did: (hook, g, devices).
    """

    personal_weights: float = 50_000.0
    global_weights: float = 400_000.0
    personal_steps: int = 5
    warmup_steps: int = 1
    global_steps: int = 5
    bits_per_weight: float = 32.0
    bits_down: float = 1e6
    rho_bounds: tuple = (0.0, 1.0)
    known_before: bool = True  # is the work known before the training?

    def start(self):
        return ()

    def select(self, state, view):
        return view.idle

    def stages(self, rho):
        steps = {
            "personal": self.personal_steps * self.personal_weights,
            "warm-up": self.warmup_steps * self.global_weights,
            "global": (1.0 - rho) * self.global_steps * self.global_weights,
        }
        return tuple(Stage(name, Work(amount, 2.0 * amount)) for name, amount in steps.items())

    def payload(self, rho):
        return Payload(self.bits_down, (1.0 - rho) * self.bits_per_weight * self.global_weights)

    def demand(self, state, view, chosen):
        column = partial(np.full, len(chosen))
        *unprunable, prunable = (stage.work.weight_steps for stage in self.stages(0.0))
        low, high = self.rho_bounds
        return Demand(
            devices=chosen,
            bits_fixed=column(0.0),
            bits_prunable=column(self.payload(0.0).bits_up),
            work_fixed=Work(column(sum(unprunable)), column(2 * sum(unprunable))),
            work_prunable=Work(column(prunable), column(2 * prunable)),
            rho_min=column(low),
            rho_max=column(high),
            weight=column(1.0),
            bits_down=column(self.bits_down),
        )

    def configure(self, state, view, grant):
        stages = self.stages(grant.rho) if self.known_before else None
        return Job(grant.device, view.g, (), stages, self.payload(grant.rho), grant.rho)

    def charged(self, job):
        return self.stages(job.rho)

    def _note(self, hook, g, updates):
        return ((hook, g, tuple(update.job.device for update in updates)),)

    def retain(self, state, updates):
        g = sum(hook == "observe" for hook, *_ in state)
        return state + self._note("retain", g, updates)

    def aggregate(self, state, view, updates):
        return state + self._note("aggregate", view.g, updates)

    def observe(self, state, report):
        return (
            *state,
            ("observe", report.g, tuple(outcome.grant.device for outcome in report.outcomes)),
        )


class SilentObserver:
    """Evaluates and reports nothing."""

    def scores(self, g, state):
        return None

    def finished(self, g, state, at_work=None):
        pass


@dataclass
class Played:
    """What a run of rounds left behind; ``segments`` as `Link.on_segment` tells them."""

    env: simpy.Environment
    cell: Cell
    log: EventLog
    state: tuple
    segments: list
    updates: list


def play(
    fleet,
    path_gain,
    method=None,
    solver="kkt",
    budget_s=0.025,
    clock="synchronous",
    rounds=range(1),
    bandwidth_hz=2e8,
    noise_w=1e-14,
    noise_w_per_hz=None,
    coherence_s=float("inf"),
    share="fixed",
    downlink=None,
    seed=0,
    when_infeasible="stretch",
    log=None,
    state=None,
    start_s=0.0,
    capability=None,
    absences=None,
    failures=None,
    hardware=None,
):
    """Play some rounds of a cell; ``downlink(env, channel)`` makes another than the ideal one,
    ``capability(g)`` gives other capabilities than the fleet's."""
    env, log, segments = simpy.Environment(initial_time=start_s), log or EventLog(), []
    path_gain = np.broadcast_to(path_gain, len(fleet))
    channel = Channel(
        bandwidth_hz,
        path_gain,
        noise_w if noise_w_per_hz is None else None,
        noise_w_per_hz,
        BlockFading(Seeds(seed), len(fleet), coherence_s) if coherence_s < float("inf") else None,
    )
    uplink = Uplink(env, channel, share, on_segment=lambda *segment: segments.append(segment))
    cell = Cell(
        env,
        channel,
        fleet,
        partial(allocate, method=solver),
        uplink,
        (downlink or IdealDownlink)(env, channel),
        samples=np.full(len(fleet), 100),
        streams=Seeds(seed),
        budget_s=budget_s,
        when_infeasible=when_infeasible,
        capability=capability,
        absences=absences,
        hardware=hardware,
    )
    method = method or TimingMethod()
    trainer = TimingTrainer(method.charged)
    rules = {"synchronous": Rules(), "deadline": Deadline()}.get(clock, clock)
    parts = rules, env, cell, method, trainer, log, SilentObserver(), rounds, state
    server = serve(*parts, failures=failures)
    state = env.run(env.process(server))
    return Played(env, cell, log, state, segments, trainer.updates)


@pytest.fixture(scope="session")
def engine():
    """`play` rounds, with the `method` that only costs time; `engine.method(**changes)`."""

    class Engine:
        play = staticmethod(play)
        method = staticmethod(lambda **changes: replace(TimingMethod(), **changes))

    return Engine
