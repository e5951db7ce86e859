"""``edgesim sweep``, after its options have been read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from edgesim.cli.sweep_progress import View, print_end, print_plan
from edgesim.sweep.local_workers import Local
from edgesim.sweep.points import Plan
from edgesim.sweep.scheduling import Control
from edgesim.sweep.sweep_folder import DONE, INFEASIBLE, SweepFolder


def sweep(
    plan: Plan, out: Path | None, quiet: bool, workers: int, backend: Any, given: dict, **how: Any
) -> SweepFolder:
    """Run the points that are missing, and say how it went.

    Args:
        backend: makes one, from a number of workers.     given: data, allow_code.
        how: reuse, fail_fast, tensorboard, of `Control`.
    """
    start_s = time.monotonic()
    folder = SweepFolder(out or default_folder(plan), plan)
    folder.open()
    try:
        todo = folder.to_run()
        if todo:
            run_points(folder, quiet, min(workers, len(todo)), backend, given, **how)
    finally:
        folder.close()
    print_end(folder, time.monotonic() - start_s, quiet)
    return folder


def run_points(
    folder: SweepFolder, quiet: bool, workers: int, backend: Any, given: dict, **how: Any
) -> None:
    place = backend(workers)
    try:
        with View(folder, quiet) as view:
            for note in folder.plan.notes:
                view.say(note)
            processes = max(1, cores() // workers) if isinstance(place, Local) else 1
            Control(folder, place, view, {**given, "processes": processes}, **how).run()
    finally:
        place.close()


def backend(name: str, scheduler: str | None) -> Callable[[int], Any]:
    """How to make the backend of that name, from a number of workers."""
    if name == "local":
        return Local
    from edgesim.sweep.dask_workers import Dask, check_distributed

    check_distributed()
    return partial(Dask, scheduler=scheduler)


def dry_run(plan: Plan, out: Path | None, workers: int, every: bool) -> None:
    """Say what would be run; write nothing."""
    print_plan(plan, SweepFolder(out or default_folder(plan), plan), workers, every)


def succeeded(folder: SweepFolder) -> bool:
    """Has every point that can run at all come to its end?"""
    statuses = {status for status, _ in folder.status.values()}
    return statuses <= {DONE, INFEASIBLE}


def possible(folder: SweepFolder) -> bool:
    """Can any point run at all?"""
    return any(status != INFEASIBLE for status, _ in folder.status.values())


def default_folder(plan: Plan) -> Path:
    return Path("runs") / f"{plan.name}-sweep"


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
