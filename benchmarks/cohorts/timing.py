"""Seconds of wall and processor time of a round, by every contender in turns."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection

import psutil
import torch
from torch import Tensor

from cohorts.plain_loop import flat, module_of, plain_loop
from cohorts.settings import Setting, jobs_of
from fl.contracts import Job
from fl.executors.batched import Batched
from fl.executors.deferred_training import Executor
from fl.executors.executor_choice import choose
from fl.executors.one_by_one import OneByOne
from fl.task import LearningTask
from fl.worker_threads import available_cores as cores


@dataclass
class Times:
    """Seconds per round, turn by turn."""

    wall: list[float]
    cpu: list[float]


class Apart:
    """Runs something in a process of its own, which is as it was when this was made: no setting of
    ours reaches it.
    """

    def __init__(
        self, run: Callable, rounds: Sequence[Sequence[Job]], short: Sequence[Job]
    ) -> None:
        self._here, there = get_context("fork").Pipe()
        self._process = get_context("fork").Process(
            target=self._serve, args=(there, run, rounds, short), daemon=True
        )
        self._process.start()

    def _serve(
        self,
        there: Connection,
        run: Callable,
        rounds: Sequence[Sequence[Job]],
        short: Sequence[Job],
    ) -> None:
        while there.recv():
            there.send(timed(run, rounds, short))

    def timed(self) -> tuple[float, float]:
        self._here.send(True)
        return self._here.recv()

    def second(self) -> list[float]:
        """Seconds of wall time per round, measured until a second is over."""
        walls = [self.timed()[0]]
        while sum(walls) < 1.0:
            walls.append(self.timed()[0])
        return walls

    def end(self) -> None:
        self._here.send(False)
        self._process.join()


def plain_contender(task: LearningTask) -> Callable[[Sequence[Job]], list[Tensor]]:
    model = module_of(task.architecture).to(task.device)
    with torch.no_grad():
        for target, value in zip(
            model.parameters(), task.layout.split(task.initial()), strict=True
        ):
            target.copy_(value)
    start = {name: value.clone() for name, value in model.state_dict().items()}
    return lambda jobs: [flat(one) for one in plain_loop(task, model, start, jobs)]


def contenders(
    task: LearningTask, skip: Sequence[str], workers: int
) -> dict[str, Callable[[Sequence[Job]], list[Tensor]]]:
    """Name -> a function of the jobs of a round that gives the trained models."""
    made: dict[str, Executor] = {
        "resident": OneByOne(task),
        "batched": Batched(task),
        "auto": choose(task),
    }
    if task.device == "cpu":
        made["pool"] = OneByOne(task, cores())
    if workers:
        made["dask"] = choose(task, "dask", workers)
    return {name: partial(trained, one) for name, one in made.items() if name not in skip}


def trained(executor: Executor, jobs: Sequence[Job]) -> list[Tensor]:
    return [one.w for one in executor.run(jobs)]


def measure(
    task: LearningTask, setting: Setting, repeats: int, skip: Sequence[str], workers: int = 0
) -> dict[str, Times]:
    """Every contender once per turn, in an order that moves on from turn to turn."""
    rounds = [jobs_of(task, setting, turn) for turn in range(min(repeats, 7))]
    short = jobs_of(task, replace(setting, steps=2), 0)
    task.train  # noqa: B018 (read before it is shared)
    run = plain_contender(task)
    apart = Apart(run, rounds, short) if task.device == "cpu" else None
    expected = run(short)
    ours = contenders(task, skip, workers)
    check(ours, short, task.initial(), expected)
    timers = {"plain": apart.timed if apart else partial(timed, run, rounds, short)}
    timers |= {name: partial(timed, each, rounds, short) for name, each in ours.items()}
    times, names = {name: Times([], []) for name in timers}, list(timers)
    for turn in range(repeats):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            wall_s, cpu_s = timers[name]()
            times[name].wall.append(wall_s)
            times[name].cpu.append(cpu_s)
    if apart:
        apart.end()
    return times


def timed(
    run: Callable, rounds: Sequence[Sequence[Job]], short: Sequence[Job]
) -> tuple[float, float]:
    """Seconds per round, of the wall and of the processors, over as many rounds as take a tenth of
    a second.

    After a short round that does not count: whoever computed before has left the caches, and the
    pages, cold.
    """
    float(run(short)[-1][0])
    cpu_s, begin, played = processor_s(), time.perf_counter(), 0
    while played == 0 or time.perf_counter() - begin < 0.1:
        models = run(rounds[played % len(rounds)])
        float(models[-1][0])  # until an accelerator has finished
        played += 1
    return (time.perf_counter() - begin) / played, (processor_s() - cpu_s) / played


def check(
    runners: dict[str, Callable], jobs: Sequence[Job], start: Tensor, expected: Sequence[Tensor]
) -> None:
    """All go the way of the plain loop, or the comparison means nothing.

    For two steps: on random pictures a rounding that turns a unit on or off soon leads elsewhere.
    """
    for name, run in runners.items():
        ways = zip(run(jobs), expected, strict=True)
        apart = max(float((one - other).norm() / (other - start).norm()) for one, other in ways)
        if apart > 0.01:
            raise SystemExit(f"{name} is {apart:.1%} off the way of the plain loop")


def processor_s() -> float:
    """Processor time of this process and of its children, those that still live included."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent) + sum(
        map(spent_by, psutil.Process().children(recursive=True))
    )


def spent_by(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
