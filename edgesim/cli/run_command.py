"""``edgesim run`` and ``edgesim check``: all schemes of one scenario."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgesim.cli.options import (
    AllowCode,
    DataFolder,
    ExitCode,
    OnlySchemes,
    Overrides,
    ScenarioFile,
    Seed,
    WriteTensorBoard,
    exit_on_error,
    print_error,
    scenario_file,
)
from edgesim.errors import COMMAND_LINE, InfeasibleScenarioError, ScenarioError

if TYPE_CHECKING:
    from edgesim.runs.prepared_run import PreparedRun
    from edgesim.scenario.loader import Scenario

    Schemes = list[tuple[str | None, Scenario]]  # by label

SHOWN_DEVICES = 30  # that check lists where it was not asked for all


def run(
    scenario: ScenarioFile,
    overrides: Overrides = None,
    seed: Seed = None,
    seeds: Annotated[
        str | None, typer.Option(help="Several, such as 0-4 or 0,3,7: every scheme with each.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; of several runs, of all of them.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start again instead of resuming.")
    ] = False,
    data: DataFolder = None,
    allow_code: AllowCode = False,
    only: OnlySchemes = None,
    tensorboard: WriteTensorBoard = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress, only the folders.")
    ] = False,
) -> None:
    """Simulate a scenario, every scheme of it; an interrupted run resumes where it was.

    With the folder of a run in place of a scenario, that run goes on there, with rounds=N to N
    rounds; with other seeds it is run beside it.
    """
    with exit_on_error():
        run_folder = scenario if (scenario / "checkpoint").is_dir() else None
        if run_folder and not out:
            _refuse_changed_point(run_folder, overrides)
        scenario = scenario_file(scenario)
        several = _seeds(seed, seeds)
        schemes = [_schemes(scenario, overrides, each, only) for each in several or (seed,)]
        many = schemes[0][1]
        chosen = [pair for each, _ in schemes for pair in each]
        if out and (many or several) and (out / "checkpoint").is_dir():
            problem = "is the folder of a run, in which none is looked for; give another --out"
            raise ScenarioError(f"{out} {problem}")
        if run_folder and not out:
            _refuse_changed_run(run_folder, [each for _, each in chosen])
        from edgesim.cli.run_progress import RunProgress, print_runs
        from edgesim.records.folder_names import default_folder, folder_for_seed
        from edgesim.runs.run import prepare
        from edgesim.runs.tensorboard_log import check_tensorboard, with_tensorboard

        if tensorboard:
            check_tensorboard()
        folder_of_data = str(data) if data else None
        prepared = [
            (_run_name(label, each, several), prepare(each, None, folder_of_data, allow_code))
            for label, each in chosen
        ]
        if len(prepared) > 1:
            _refuse_infeasible(prepared)
        runs, warned = [], set[str]()
        while prepared:  # each is dropped before the next one runs, with the data that it has read
            name, run_of_scheme = prepared.pop(0)
            each = run_of_scheme.setup.scenario
            if out:
                folder = out / _folder_name(each, many, bool(several)) if many or several else out
            elif run_folder:
                folder = folder_for_seed(run_folder, each)
            else:
                folder = default_folder(each)
            try:
                with (
                    RunProgress(name or each.learning.method.name, quiet) as shown,
                    with_tensorboard(folder, tensorboard, shown) as progress,
                ):
                    done = run_of_scheme.run(folder, fresh, progress)
                runs.append((name, done))
                warned |= shown.warned
            except InfeasibleScenarioError as problem:
                print_error(f"{name}: {problem}" if name else problem)
        print_runs(runs, quiet, warned)
    if len(runs) < len(chosen):
        raise typer.Exit(ExitCode.infeasible)


def check(
    scenario: ScenarioFile,
    overrides: Overrides = None,
    seed: Seed = None,
    data: DataFolder = None,
    allow_code: AllowCode = False,
    only: OnlySchemes = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every device, not just the first 30.")
    ] = False,
) -> None:
    """Check a scenario and print what each device can reach in a round; runs nothing."""
    with exit_on_error():
        scenario = scenario_file(scenario)
        chosen, _ = _schemes(scenario, overrides, seed, only)
        from edgesim.cli.console import print_line
        from edgesim.cli.feasibility_table import print_feasibility, print_legend
        from edgesim.runs.run import feasibility
        from edgesim.scenario.radio.fidelity import LEAVES_OUT

        feasible = True
        for label, each in chosen:
            table = feasibility(each, data=str(data) if data else None, allow_code=allow_code)
            name = label or each.learning.method.name
            print_feasibility(name, table, None if every else SHOWN_DEVICES)
            if rung := each.network.fidelity:
                print_line(f"rung {rung}: leaves out, unless written, {LEAVES_OUT[rung]}")
            feasible = feasible and table.feasible
        print_legend()
    if not feasible:
        raise typer.Exit(ExitCode.infeasible)


def _refuse_infeasible(prepared: Sequence[tuple[str | None, PreparedRun]]) -> None:
    """Before the first of several schemes runs, so that a mistake in the last is found at once."""
    tables = [(label, each.feasibility) for label, each in prepared]
    for label, table in tables:
        if not table.feasible:
            print_error(f"{label}: {table.note}")
    possible = [label or "" for label, table in tables if table.feasible]
    if len(possible) < len(tables):
        hint = f"; --only runs one scheme of {', '.join(possible)}" if possible else ""
        print_error(f"nothing was run{hint}")
        raise typer.Exit(ExitCode.infeasible)


def _refuse_changed_point(folder: Path, overrides: list[str] | None) -> None:
    """Refuse to go on with a point of a sweep that would become another one."""
    from edgesim.records.folder_names import sweep_of_point

    changes = [each for each in overrides or () if not each.startswith("seed=")]
    if changes and (sweep := sweep_of_point(folder)):
        cure = f"sweep with {' '.join(changes)}, or go on with a copy of the folder"
        raise ScenarioError(f"{folder} is a point of the sweep {sweep.name}; {cure}")


def _refuse_changed_run(folder: Path, scenarios: Sequence[Scenario]) -> None:
    """Refuse to make a run beside a folder that would differ in more than seed and rounds.

    What goes on in the folder itself is checked there.
    """
    from edgesim.records.folder_names import folder_for_seed
    from edgesim.results.flat_scenario import differing_keys, flatten
    from edgesim.scenario.documents.yaml_text import read_text
    from edgesim.scenario.loader import load

    own = load(folder / "scenario.yaml")
    for other in scenarios:
        if other.seed == own.seed:
            continue
        flats = [flatten(read_text(each.to_yaml(), "it").tree) for each in (own, other)]
        if changed := [key for key in differing_keys(flats) if key != "rounds"]:
            place = folder_for_seed(folder, other)
            problem = f"is for the run of {folder} with seed {other.seed}, whose {changed[0]}"
            raise ScenarioError(f"{place} {problem} differs; give --out")


def _schemes(
    path: Path, overrides: list[str] | None, seed: int | None, only: list[str] | None
) -> tuple[Schemes, bool]:
    """The schemes of those labels in the order of the file, or all of them; has it several?

    --seed 3 is short for seed=3, so that the resolved file holds it.
    """
    from edgesim.scenario.loader import expand, labels_in

    changes = [*(overrides or ()), *([] if seed is None else [f"seed={seed}"])]
    labels, chosen = labels_in(path, changes), expand(path, changes, only or ())
    known = labels if labels != [None] else [name for name, _ in chosen]
    for label in only or ():
        if label not in known:
            has = ", ".join(filter(None, known)) or "no schemes"
            raise ScenarioError(f'{COMMAND_LINE}: {path} has no scheme "{label}"; it has {has}')
    return chosen, len(labels) > 1


def _seeds(seed: int | None, text: str | None) -> tuple[int, ...]:
    """The seeds of --seeds; none without it."""
    if text is None:
        return ()
    if seed is not None:
        raise ScenarioError(f"{COMMAND_LINE}: --seed and --seeds are both given; keep one")
    from edgesim.sweep.values import parse_seeds

    return parse_seeds(text)


def _run_name(label: str | None, scenario: Scenario, seeds: Sequence[int]) -> str | None:
    """What a run is called among those of the command: its scheme, and its seed of several."""
    if not seeds:
        return label
    return f"{label or scenario.learning.method.name}, seed {scenario.seed}"


def _folder_name(scenario: Scenario, many: bool, seeded: bool) -> str:
    """Name of a run's folder in --out: scheme, if the file has several, and seed, if --seeds."""
    parts = [(scenario.scheme or "").replace(" ", "-")] if many else []
    return "-".join([*parts, *([f"s{scenario.seed}"] if seeded else [])])
