"""What ``edgesim sweep`` prints before it runs, or instead (--dry-run), and at its end."""

from __future__ import annotations

from collections import Counter

from rich.console import Console

from edgesim.cli.console import print_line
from edgesim.cli.sweep.sweep_progress import counts
from edgesim.errors import counted
from edgesim.results.summary_file import read_summary
from edgesim.results.sweep_file import DONE, FAILED, INFEASIBLE
from edgesim.sweep.sweep_folder import SweepFolder
from edgesim.sweep.time_estimate import estimate, groups, in_words

LISTED = 40  # points that a dry run lists where it was not asked for all
MOST_WARNINGS = 5  # at the end of a sweep; summary.json of each point has all


def print_start(folder: SweepFolder) -> None:
    """What an earlier start of the sweep has left to do; nothing at the first one."""
    todo, every = len(folder.to_run()), len(folder.plan.points)
    if done := len(folder.with_status(DONE)):
        are = "is" if every == 1 else "are"
        finished = f"{done} of {counted(every, 'point')} {are} finished already"
        infeasible = len(folder.with_status(INFEASIBLE))
        print_line(f"{finished}{f', {infeasible} infeasible' * bool(infeasible)}, {todo} to run")
    print_shorter(folder)


def print_shorter(folder: SweepFolder) -> None:
    """How many points go on from runs that had fewer rounds; nothing if none does."""
    for rounds, count in sorted(Counter(run.rounds for run in folder.shorter.values()).items()):
        go = "goes" if count == 1 else "go"
        print_line(f"{counted(count, 'point')} {go} on from {counted(rounds, 'round')} run before")


def print_end(folder: SweepFolder, seconds: float, quiet: bool) -> None:
    """How the sweep went, on stderr which points failed and why, and its folder."""
    errors = Console(stderr=True, highlight=False, width=None)
    for status in (FAILED, INFEASIBLE):
        for point in folder.with_status(status):
            print_line(f"{status}: {point.name}: {folder.status[point.id][1]}", errors)
    if not quiet:
        print_line(f"{counts(folder)}, in {in_words(seconds)}")
        if left := folder.leftovers():
            place = f"{folder.path}/points"
            one = left == 1
            what = "1 run of an earlier sweep lies" if one else f"{left} runs of earlier sweeps lie"
            shown = "it unless a point replaces it" if one else "those that no point replaces"
            print_line(f"{what} in {place} too; a report shows {shown}")
    print_line(folder.path)
    print_warnings(folder)


def print_warnings(folder: SweepFolder) -> None:
    """What the finished points warn of, each sentence once."""
    done = folder.with_status(DONE)
    summaries = (read_summary(folder.of(point) / "summary.json") for point in done)
    found = Counter(text for each in summaries for text in each.get("warnings", ()))
    for text, count in found.most_common(MOST_WARNINGS):
        of_some = "" if count == len(done) else f" ({count} of {len(done)} points)"
        print_line(f"warning: {text}{of_some}")
    if len(found) > MOST_WARNINGS:
        print_line(
            f"and {counted(len(found) - MOST_WARNINGS, 'warning')} more in the points' summary.json"
        )


def print_plan(
    folder: SweepFolder,
    workers: int,
    every: bool,
    data: str | None = None,
    allow_code: bool = False,
) -> None:
    """What would be run, and how long that takes.

    Args:
        folder: of the sweep.
        workers: points at a time.
        every: list every point?
        data: folder of the data files; None: EDGESIM_DATA.
        allow_code: code of the user's own may run.
    """
    plan, todo = folder.plan, folder.to_run()
    for note in plan.notes:
        print_line(note)
    for key, texts in plan.axes.items():
        print_line(f"{key}: {', '.join(texts)}")
    seeds = list(dict.fromkeys(point.seed for point in plan.points))
    labels = ", ".join(dict.fromkeys(point.label for point in plan.points))
    print_line(f"schemes or methods: {labels}; seeds: {_as_range(seeds)}")
    for i, point in enumerate(plan.points if every else plan.points[:LISTED], 1):
        status, error = folder.status[point.id]
        name = f"{point.name}: {error}" if error else point.name
        print_line(f"{i:>4}  {point.id}  {status:10} {name}")
    if not every and len(plan.points) > LISTED:
        print_line(f"and {counted(len(plan.points) - LISTED, 'point')} more (--all shows them)")
    print_line(f"{counted(len(plan.points), 'point')} in {folder.path}, {len(todo)} to run")
    print_shorter(folder)
    if todo:
        print_line("estimating the time, which may take seconds for each kind of point ...")
        seconds, source = estimate(folder, workers, data, allow_code)
        line = f"about {in_words(seconds)} with {counted(workers, 'worker')}"
        shares = 0 < groups(todo) < len(todo)
        note = "; points that train the same train it once, which is not counted" if shares else ""
        print_line(f"{line}, estimated from {source}{note}")


def _as_range(seeds: list[int]) -> str:
    whole = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]}-{seeds[-1]}" if whole else ", ".join(map(str, seeds))
