"""``edgesim sweep``: every combination of some keys."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgesim.cli.options import (
    AllowCode,
    Backend,
    DataFolder,
    ExitCode,
    OnlySchemes,
    ScenarioFile,
    Selection,
    WriteTensorBoard,
    exit_on_error,
    print_error,
    scenario_file,
)
from edgesim.errors import COMMAND_LINE, ResultsError, ScenarioError
from edgesim.stop_signals import cleanup_on_stop

if TYPE_CHECKING:
    from edgesim.sweep.scheduling import Workers
    from edgesim.sweep.sweep_folder import SweepFolder
    from edgesim.sweep.workers.point_task import SimulateOptions

VALUES_HELP = (
    "Keys to vary, such as rounds=10,20; budget.latency_threshold='range(15ms,30ms,5ms)'; "
    "network.bandwidth='log(1MHz,1GHz,4)'; network.bandwidth:rounds=100MHz:10,200MHz:20 for keys "
    "that change together. One value only: a key to change; '~key' removes one. They win over the "
    "file's sweep block."
)


def sweep(
    scenario: ScenarioFile,
    values: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUES]...", help=VALUES_HELP)
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Such as 0-4 or 0,3,7; else those of the file.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Points at a time; else one per core.")
    ] = None,
    backend: Annotated[
        Backend, typer.Option(help="Processes of this machine, or workers of dask.distributed.")
    ] = Backend.local,
    scheduler: Annotated[
        str | None, typer.Option(help="Of --backend dask, such as tcp://host:8786.")
    ] = None,
    wait_for_workers: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Without any worker of dask end after, such as 10min."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the sweep; else runs/<name>-sweep.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the points and how long they take.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="--dry-run: every point, not just the first 40.")
    ] = False,
    reuse: Annotated[
        bool, typer.Option("--reuse/--no-reuse", help="Train once what is provably the same.")
    ] = True,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going/--fail-fast", help="Go on, or start no more points, once one failed."
        ),
    ] = True,
    data: DataFolder = None,
    allow_code: AllowCode = False,
    only: OnlySchemes = None,
    select: Annotated[
        Selection | None,
        typer.Option(help="Choose values for every scheme; needs learning.validation."),
    ] = None,
    tensorboard: WriteTensorBoard = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress, only the folder.")
    ] = False,
) -> None:
    """Simulate every combination of some keys, in parallel; finished points are never run again."""
    start_s = time.monotonic()
    with exit_on_error():
        if backend is not Backend.dask:
            _refuse_dask_options(scheduler=scheduler, wait_for_workers=wait_for_workers)
        if scheduler is not None and workers is not None and not dry_run:
            problem = "--workers does not decide how many points run on the workers of --scheduler"
            raise ScenarioError(f"{COMMAND_LINE}: {problem}; only --dry-run reads it")
        scenario = scenario_file(scenario)
        longest_wait_s = _seconds("--wait-for-workers", wait_for_workers)
        from edgesim.cli.sweep.chosen_values import select_and_print
        from edgesim.cli.sweep.plan_and_end import print_end, print_plan, print_start
        from edgesim.runs.tensorboard_log import check_tensorboard
        from edgesim.sweep.sweep_folder import SweepFolder, refuse_unusable_sweep
        from edgesim.sweep.sweep_plan import plan_sweep
        from edgesim.sweep.workers.dask_workers import check_distributed
        from fl.worker_threads import available_cores

        if tensorboard:
            check_tensorboard()
        if backend is Backend.dask:
            check_distributed()
        if out and not dry_run:  # before torch loads, which the points' digests need
            refuse_unusable_sweep(out)
        data_folder = str(data.resolve()) if data else None
        plan = plan_sweep(scenario, values or (), seeds, only or (), data_folder, allow_code)
        trains = {point.scenario.learning.executor for point in plan.points}
        if backend is Backend.dask and "dask" in trains:  # a worker would wait for itself
            problem = "learning.executor is dask, and so is --backend; leave one of them out"
            raise ScenarioError(f"{COMMAND_LINE}: {problem}")
        if select and any(point.scenario.learning.validation is None for point in plan.points):
            raise ScenarioError(
                f"{COMMAND_LINE}: --select needs samples that are held out; "
                "add learning.validation=0.2"
            )
        if select and not all(point.labels for point in plan.points):
            raise ScenarioError(
                f"{COMMAND_LINE}: --select chooses by accuracy, which real targets do not have; "
                "compare the validation_loss in the measures of the sweep, "
                "edgesim.load_sweep(folder).measures"
            )
        folder = SweepFolder(out or Path("runs") / f"{plan.name}-sweep", plan)
        folder.look_for_shorter(data_folder, allow_code)
        count = workers or available_cores()
        if dry_run:
            print_plan(folder, count, every, data_folder, allow_code)
            return
        folder.open()
        if not quiet:
            print_start(folder)
        count = min(count, len(folder.to_run()) or 1)
        # workers of dask may be anywhere: their cores are not known here
        processes = max(1, available_cores() // count) if backend is Backend.local else 1
        options: SimulateOptions = {
            "data": data_folder,
            "allow_code": allow_code,
            "processes": processes,
        }
        start = partial(_start_workers, backend, count, scheduler, longest_wait_s)
        _run_points(folder, start, options, quiet, reuse, not keep_going, tensorboard)
        print_end(folder, time.monotonic() - start_s, quiet)
        if select:
            try:
                select_and_print(folder)
            except ResultsError as problem:
                print_error(problem)
                _exit_by_status(folder)  # of points, if they are why
                raise typer.Exit(ExitCode.bad_input) from None
    _exit_by_status(folder)


def _refuse_dask_options(**given: str | None) -> None:
    """Refuse options that only dask reads."""
    for option, text in given.items():
        if text is not None:
            name = f"--{option.replace('_', '-')}"
            raise ScenarioError(f"{COMMAND_LINE}: {name} is only read with --backend dask")


def _run_points(
    folder: SweepFolder,
    start: Callable[[Callable[[str], None]], Workers],
    options: SimulateOptions,
    quiet: bool,
    *rules: bool,
) -> None:
    """Run the points that are not there yet; the folder is closed however that ends."""
    from edgesim.cli.sweep.sweep_progress import SweepProgress
    from edgesim.sweep.scheduling import PointScheduler

    with cleanup_on_stop(folder.remove_lock), folder:
        if folder.to_run():
            with SweepProgress(folder, quiet) as progress, closing(start(progress.print)) as place:
                PointScheduler(folder, place, progress, options, *rules).run()


def _exit_by_status(folder: SweepFolder) -> None:
    """End with the exit code of what became of the points."""
    from edgesim.results.sweep_file import DONE, INFEASIBLE

    statuses = {status for status, _ in folder.status.values()}
    if statuses == {INFEASIBLE}:
        raise typer.Exit(ExitCode.infeasible)
    if not statuses <= {DONE, INFEASIBLE}:
        raise typer.Exit(ExitCode.failed)


def _start_workers(
    backend: Backend,
    count: int,
    scheduler: str | None,
    longest_wait_s: float,
    report: Callable[[str], None],
) -> Workers:
    if backend is Backend.dask:
        from edgesim.sweep.workers.dask_workers import DaskWorkers

        return DaskWorkers(count, scheduler, report, longest_wait_s)
    from edgesim.sweep.workers.local_workers import LocalWorkers

    return LocalWorkers(count)


def _seconds(option: str, text: str | None) -> float:
    """The time that an option gives, s; inf without it."""
    if text is None:
        return math.inf
    from edgesim.scenario.units import UnitError, parse

    try:
        seconds = parse(text, "s")
    except UnitError as problem:
        raise ScenarioError(f"{COMMAND_LINE}: {option} is {problem}") from None
    if seconds < 0:
        raise ScenarioError(f"{COMMAND_LINE}: {option} is {text}; write a time of at least 0 s")
    return seconds
