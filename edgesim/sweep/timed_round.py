"""CPU time of a round and of an evaluation, from a few steps and test samples that are carried out.

Counted FLOPs do not give it: small layers reach fewer FLOP/s than large ones, weights that are
masked compute all the same, and a method may test further models on the whole test set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import process_time
from typing import TypeVar

import numpy as np
import simpy

from edgesim.clocks.rules import Buffered
from edgesim.runs.setup.setup import Setup
from edgesim.runs.setup.training_and_evaluation import make_trainer
from fl.contracts import Grant, Job, Phase, State, Update
from fl.method_base.hook_answers import answer, bounds_of
from fl.method_base.state_answers import first_state

T = TypeVar("T")
R = TypeVar("R")

TIMED_S = 0.5  # CPU time that steps are carried out for, and again test samples
FEW_SAMPLES = 250
LEAST_S = 1e-4  # that anything takes: the clock of some systems stands still for as long as a step


@dataclass(frozen=True)
class RoundTimes:
    """CPU time, s.

    Args:
        training_s: of the devices' training in a round.
        evaluation_s: of an evaluation.
    """

    training_s: float = 0.0
    evaluation_s: float = 0.0


def timed_round(setup: Setup) -> RoundTimes:
    """Times of round 0 and of the evaluation behind it; zero where nothing is trained.

    With tiers those of the first edge, times the number of edges.
    """
    if setup.counts_only:
        return RoundTimes()
    if setup.edges:
        tiers, one = setup.scenario.tiers, timed_round(setup.edges[0])
        rounds = tiers.local_rounds if tiers else 1
        edges = len(setup.edges)
        return RoundTimes(edges * rounds * one.training_s, edges * one.evaluation_s)
    training_s, state = timed_training(setup)
    return RoundTimes(training_s, timed_evaluation(setup, state))


def timed_training(setup: Setup) -> tuple[float, State]:
    """CPU time of the jobs of round 0, s, of which some steps are trained; the state behind them.

    As many steps as take `TIMED_S`, of as many of the devices that a round asks as possible.
    """
    method, trainer, state = setup.method, make_trainer(setup), first_state(setup.method)
    view = setup.cell(simpy.Environment()).view(0, everyone=True)
    asked = view.places(method.participants)
    if isinstance(setup.clock, Buffered):
        asked = setup.clock.buffer
    rho = bounds_of(method)[0]

    def jobs(count: int) -> list[Job]:
        """Of so many devices, spread over all of them, since they may be of several classes."""
        devices = np.linspace(0, len(view.idle) - 1, count).astype(int).tolist()
        grants = [Grant(k, 1.0 / asked, rho, float(view.cpu_hz[k]), 1.0) for k in devices]
        return [answer("configure", method.configure(state, view, grant), Job) for grant in grants]

    def trained(given: list[Job]) -> Sequence[Update]:
        updates = trainer.submit(given)
        for update in updates:
            update.result()
        return updates

    first = [shortened(job, 1) for job in jobs(1)]
    if not steps(first):  # a round without training, as FedMAP's mask phase with no mask steps
        return 0.0, state
    trained(first)  # libraries are loaded, and memory is allocated
    count = max(1, int(TIMED_S * steps(first) / timed(trained, first)[0]))
    whole = jobs(min(asked, count))
    short = [shortened(job, max(1, count // len(whole))) for job in whole]
    short_s, updates = timed(trained, short)
    state = method.aggregate(method.retain(state, updates), view, updates)
    return short_s * steps(whole) / steps(short) * asked / len(whole), state


def shortened(job: Job, steps: int) -> Job:
    """The same job with at most so many steps in each phase."""
    return replace(job, phases=tuple(first_steps(phase, steps) for phase in job.phases))


def first_steps(phase: Phase, steps: int) -> Phase:
    submodel = phase.submodel[:steps] if isinstance(phase.submodel, tuple) else phase.submodel
    return replace(phase, steps=min(steps, phase.steps), submodel=submodel)


def steps(jobs: list[Job]) -> int:
    return sum(phase.steps for job in jobs for phase in job.phases)


def timed_evaluation(setup: Setup, state: State) -> float:
    """CPU time of an evaluation, s: test samples times the time of one.

    Every device's model is tested on its own samples, and the method's probes on all. Where the
    model has batch norm, the training samples give its statistics first.
    """
    from fl.evaluation.evaluate import scored
    from fl.evaluation.threaded_scoring import ScoredModel

    task, method = setup.task, setup.method
    data, w, probes = task.data, method.personalise(state, 0), len(method.probes(state))
    samples = sum(map(len, (*data.test_index, *data.validation_index)))
    samples += probes * len(data.y_test)
    if task.architecture.normalises:
        samples += (1 + probes) * sum(map(len, data.train_index))

    def sample_s(count: int) -> float:
        one = ScoredModel(w, np.arange(count) % len(data.y_test), [0])
        return timed(list, scored(task, [[one]]))[0] / count

    sample_s(FEW_SAMPLES)  # memory is allocated
    count = min(samples, int(TIMED_S / sample_s(FEW_SAMPLES)))
    return samples * sample_s(max(FEW_SAMPLES, count))


def timed(work: Callable[[T], R], given: T) -> tuple[float, R]:
    """CPU time of ``work(given)``, s, at least `LEAST_S`, and its result."""
    begin_s = process_time()
    result = work(given)
    return max(LEAST_S, process_time() - begin_s), result
