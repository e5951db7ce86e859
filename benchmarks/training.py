"""How fast a cohort trains: every executor against a plain one-thread PyTorch loop of the same
work.

    python benchmarks/training.py [--quick] [--only ii,iv] [--repeats 7] [--device cuda]
        [--cluster 2] [--peer flower=PYTHON]

The contenders take turns, each for at least a tenth of a second, after two steps that do not
count; a line gives medians over the turns. ``ratio``: wall time of the plain loop by that of the
contender in the same turn; ``by CPU``: the same of processor time, which other programs disturb
less, but which does not see that two cores work at once. ``CPU ms``: processor time of all
processes per update (a client's training). ``of peak``: counted FLOPs by wall time, as a share of
what all cores reach at once in products of large matrices: at 100 % a setting takes its floor.
Before the clock starts, each contender must go the way of the plain loop. A peer does the same
work in an environment of its own, between rounds of the plain loop (peers/README.md).
``--cluster``: also by so many dask workers of this machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from statistics import median

import numpy as np
import peers
import psutil
import torch
from machine import PRODUCT, peaks
from plain_loop import flat, module_of, plain_loop
from torch import Tensor

from edgesim.seeds import Seeds
from fl import executors, methods
from fl.contracts import Grant, Job, View
from fl.data.samples import Federated
from fl.executors.batched import Batched
from fl.executors.one_by_one import OneByOne
from fl.masks import unit_masks as masks
from fl.method_base.method import bind
from fl.models.architectures import Architecture, build
from fl.models.layers import Linear
from fl.models.weightless_layers import Relu
from fl.task import LearningTask
from fl.worker_threads import available_cores as cores

LR = 0.01


@dataclass(frozen=True)
class Setting:
    """One row of the table: a model, how many devices there are and take part, and what each of
    them does.
    """

    name: str
    model: Architecture
    devices: int
    participants: int
    steps: int
    batch: int
    target: float


TINY = Architecture("64-32-10", (64,), 10, (Linear(64, 32, "features"), Relu(), Linear(32, 10)))
PICTURE = (1, 28, 28)
SMALL = build("digits-cnn", (1, 8, 8), 10)
SETTINGS = {
    "i": Setting("liu-cnn, 5 steps of 128", build("liu-cnn", PICTURE, 10), 10, 10, 5, 128, 2.7),
    "ii": Setting("liu-cnn, 27 steps of 20", build("liu-cnn", PICTURE, 10), 100, 10, 27, 20, 2.7),
    "iii": Setting(
        "lenet5-caffe, 45 steps of 64", build("lenet5-caffe", PICTURE, 10), 100, 10, 45, 64, 3.0
    ),
    "iv": Setting("64-32-10, 5 steps of 10", TINY, 1000, 100, 5, 10, 27.0),
    "v": Setting("digits-cnn, 5 steps of 10", SMALL, 1000, 100, 5, 10, 12.0),
    "vi": Setting("digits-cnn, 5 steps of 20", SMALL, 10, 10, 5, 20, 4.0),
    "vii": Setting(
        "shakespeare-lstm, 2 steps of 8", build("shakespeare-lstm", (80,), 65), 10, 4, 2, 8, 1.0
    ),
    "viii": Setting("resnet18, 2 steps of 4", build("resnet18", (3, 32, 32), 10), 4, 2, 2, 4, 1.0),
}

UNSTACKED = "vii", "viii"  # vmap has no batching rule for LSTM layers, and auto stacks neither


def task_of(setting: Setting, device: str) -> LearningTask:
    """Random pictures or texts: what they show costs no time. Every device has what its steps use
    once.
    """
    rng, size = np.random.default_rng(0), min(setting.steps * setting.batch, 600)
    shape, classes = (setting.devices * size, *setting.model.input_shape), setting.model.classes
    x = rng.random(shape, dtype=np.float32) if len(shape) != 2 or setting.model is TINY else None
    x = rng.integers(0, classes, shape) if x is None else x
    y = rng.integers(0, classes, len(x))
    held = np.split(np.arange(len(x)), setting.devices)
    data = Federated(
        y, y, lambda: (x, x), setting.model.input_shape, held, held, tuple(map(str, range(classes)))
    )
    return LearningTask(setting.model, data, setting.batch, Seeds(0), device=device)


def jobs_of(task: LearningTask, setting: Setting, turn: int) -> list[Job]:
    """A round of FedAvg."""
    method = bind(methods.resolve("fedavg"), task, {"local_steps": setting.steps, "lr": LR})
    ones, everybody = np.ones(setting.devices), np.arange(setting.devices)
    view = View(turn, 0.0, everybody, ones, ones, task.samples, np.inf, ones, ones)
    chosen = np.random.default_rng(turn).choice(
        setting.devices, setting.participants, replace=False
    )
    state = method.start()
    return [
        method.configure(state, view, Grant(int(k), 0.1, 0.0, 1.0, 1.0)) for k in np.sort(chosen)
    ]


# --- timing --------------------------------------------------------------------------------------


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
    made = {"resident": OneByOne(task), "batched": Batched(task), "auto": executors.choose(task)}
    if task.device == "cpu":
        made["pool"] = OneByOne(task, cores())
    if workers:
        made["dask"] = executors.choose(task, "dask", workers)
    return {
        name: lambda jobs, executor=executor: [one.w for one in executor.run(jobs)]
        for name, executor in made.items()
        if name not in skip
    }


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


def flops_of_round(jobs: Sequence[Job]) -> float:
    return sum(float(stage.work.flops) for job in jobs for stage in job.stages)


# --- the tables ----------------------------------------------------------------------------------


def table(
    name: str, repeats: int, device: str, peak: float, others: dict[str, str], workers: int
) -> None:
    setting = SETTINGS[name]
    task = task_of(setting, device)
    heavy = ("batched",) if name in UNSTACKED else ()
    jobs = jobs_of(task, setting, 0)
    flops, updates = flops_of_round(jobs), len(jobs)
    task.train  # noqa: B018 (read before it is shared)
    short = jobs_of(task, replace(setting, steps=2), 0)
    beside = Apart(plain_contender(task), [jobs], short) if others else None
    times = measure(task, setting, repeats, heavy, workers)
    print(
        f"\n({name}) {setting.name}: {setting.participants} of {setting.devices} devices, {flops / 1e9:.3g} GFLOP"  # noqa: E501
    )
    print(
        f"  auto is: {executors.choose(task).name}; at least {setting.target}x the plain loop is to be reached"  # noqa: E501
    )
    print(
        f"  {'':10}{'ratio':>8}{'by CPU':>8}{'updates/s':>12}{'CPU ms':>9}{'GFLOP/s':>10}{'of peak':>9}"  # noqa: E501
    )
    plain = times["plain"]
    for contender, spent in times.items():
        ratio, by_cpu = paired(plain.wall, spent.wall), paired(plain.cpu, spent.cpu)
        wall_s, cpu_s = median(spent.wall), median(spent.cpu)
        rate = flops / wall_s / 1e9
        print(
            f"  {contender:10}{ratio:8.2f}{by_cpu:8.2f}{updates / wall_s:12.1f}{1e3 * cpu_s / updates:9.3f}{rate:10.1f}"  # noqa: E501
            f"{rate / peak:9.1%}"
        )
    if beside:
        for peer, python in others.items():
            print(peer_line(peer, python, setting, repeats, beside))
        beside.end()


def peer_line(peer: str, python: str, setting: Setting, rounds: int, plain: Apart) -> str:
    """The ratio is to plain rounds just before the peer and just after it, as the two cannot take
    turns.
    """
    work = {
        "layers": peers.described(setting.model),
        "input": setting.model.input_shape,
        "rounds": rounds,
    }
    work |= {
        "cores": cores(),
        "lr": LR,
        "devices": setting.devices,
        "participants": setting.participants,
    }
    work |= {"steps": setting.steps, "batch": setting.batch}
    before = plain.second()
    try:
        spent = median(peers.seconds(peer, python, work))
    except peers.Failed as failed:
        return f"  {peer:10}not measured: {failed}"
    ratio = median(before + plain.second()) / spent
    return f"  {peer:10}{ratio:8.2f}{'':8}{setting.participants / spent:12.1f}"


def paired(one: Sequence[float], other: Sequence[float]) -> float:
    """The median of the ratios turn by turn."""
    return median(a / b for a, b in zip(one, other, strict=True))


def submodels(repeats: int, device: str) -> None:
    """A step of `liu-cnn` at batch 128 with a share of its units: does time follow the counted
    FLOPs?
    """
    setting = SETTINGS["i"]
    task = task_of(setting, device)
    method = bind(
        methods.resolve("heterofl"),
        task,
        {"local_steps": setting.steps, "lr": LR, "masked_ce": False},
    )
    ones, state = np.ones(setting.devices), method.start()
    runner, jobs = OneByOne(task), {}
    for width in (1.0, 0.5, 0.25):
        view = View(0, 0.0, np.arange(10), ones, ones, task.samples, np.inf, ones * width, ones)
        jobs[width] = method.configure(state, view, Grant(0, 0.1, 0.0, 1.0, 1.0))
    walls: dict[float, list[float]] = {width: [] for width in jobs}
    for _ in range(repeats + 1):
        for width, job in jobs.items():
            begin = time.perf_counter()
            float(runner.run([job])[0].w[0])
            walls[width].append(time.perf_counter() - begin)
    whole, flops = walls[1.0][1:], flops_of_round([jobs[1.0]])
    print(
        "\nsubmodels of liu-cnn at batch 128: time by that of the whole model; at most 0.45 at half of the channels"  # noqa: E501
    )
    for width, job in jobs.items():
        share = paired(walls[width][1:], whole)
        kept = masks.prefix(task.layout, width)["conv2"].mean()
        print(
            f"  {kept:5.0%} of the units: time {share:5.2f}, FLOPs {flops_of_round([job]) / flops:5.2f}"  # noqa: E501
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="two turns of (i) and (iv): does it run?"
    )
    parser.add_argument("--only", default=",".join(SETTINGS), help="settings, as ii,iv")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cluster", type=int, default=0, metavar="N", help="dask workers beside")
    parser.add_argument(
        "--peer", action="append", default=[], metavar="NAME=PYTHON", help="flower=env/bin/python"
    )
    options = parser.parse_args()
    others = peers.chosen(options.peer, options.device)
    torch.set_num_threads(1)
    chosen, repeats = options.only.split(","), options.repeats
    if options.quick:
        chosen, repeats = ["i", "iv"], 2
    load = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    print(
        f"torch {torch.__version__}, {cores()} cores, load {load}; GFLOP/s of one core, and of all at once:"  # noqa: E501
    )
    reached = peaks(options.device, cores())
    for what, (one, together) in reached.items():
        print(f"  {what}: {one:.0f}, {together:.0f}")
    for name in chosen:
        table(name, repeats, options.device, reached[PRODUCT][1], others, options.cluster)
    submodels(repeats, options.device)


if __name__ == "__main__":
    main()
