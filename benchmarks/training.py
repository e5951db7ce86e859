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
import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import numpy as np
import peers
import torch
from cohorts.settings import LR, SETTINGS, UNSTACKED, Setting, flops_of_round, jobs_of, task_of
from cohorts.timing import Apart, measure, plain_contender
from machine import PRODUCT, peaks

from fl import methods
from fl.contracts import Grant, View
from fl.executors.executor_choice import choose
from fl.executors.one_by_one import OneByOne
from fl.masks import unit_masks as masks
from fl.method_base.method import bind
from fl.worker_threads import available_cores as cores


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
        f"  auto is: {choose(task).name}; at least {setting.target}x the plain loop is to be reached"  # noqa: E501
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
