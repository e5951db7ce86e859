"""Scenarios from Python: simulated, checked for what devices can reach, or prepared to run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from edgesim.errors import RunError
from edgesim.runs.error_sentences import user_errors
from edgesim.runs.feasibility.feasibility_of_run import feasibility_of_run
from edgesim.runs.feasibility.round_0 import Feasibility
from edgesim.runs.own_files import refuse_changed_copies, refuse_names_of_run_files
from edgesim.runs.prepared_run import PreparedRun
from edgesim.runs.round_observer import Progress
from edgesim.runs.setup.checks_before_training import check_own_data
from edgesim.runs.setup.make_setup import set_up
from edgesim.runs.simulated_run import Run
from edgesim.scenario.loader import Scenario, load


def simulate(
    scenario: Scenario | str | Path,
    seed: int | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
    data: Any = None,
    allow_code: bool = False,
    progress: Progress | None = None,
    shared: str | Path | None = None,
    processes: int | None = None,
    model: Any = None,
) -> Run:
    """Run a scenario to its end; with ``out`` also write, resume and keep its folder.

    Args:
        scenario: the checked scenario, or the file of one without schemes, as `load` reads it.
        seed: of every random stream; None: the scenario's.
        out: the run's folder; None keeps all in memory.
        fresh: replace what an earlier run left in ``out``.
        data: folder of the data files, None: EDGESIM_DATA; or data of your own in place of those
            that the scenario names: arrays or torch data sets (`fl.data.own_data.own_samples`).
        allow_code: code of your own, ``./file.py:name``, may run.
        progress: called with a dict after each round.
        shared: folder through which runs share what they train; it changes no result.
        processes: threads that may train at once; None: one per core. They change no result.
        model: a `torch.nn.Module`, or what makes one, in place of the model that the scenario
            names. A module trains from the weights that it has, a class from new ones by the seed.

    Returns:
        The finished run with its tables.

    Raises:
        ScenarioError, RunError: bad input.
        InfeasibleScenarioError: no device can meet the threshold.
    """
    read = load(Path(scenario)) if isinstance(scenario, str | os.PathLike) else scenario
    prepared = prepare(read, seed, data, allow_code, processes, model)
    return prepared.run(out, fresh, progress, shared)


def feasibility(
    scenario: Scenario,
    seed: int | None = None,
    data: Any = None,
    allow_code: bool = False,
) -> Feasibility:
    """What each device can reach at best in round 0, and what would be planned for it.

    Args:
        scenario: the checked scenario.
        seed: of every random stream; None: the scenario's.
        data: as `simulate` takes it.
        allow_code: code of your own, ``./file.py:name``, may run.

    Raises:
        ScenarioError, RunError: bad input.
        InfeasibleScenarioError: the backhaul alone takes the threshold.
    """
    prepared = prepare(scenario, seed, data, allow_code)
    with user_errors(scenario):
        check_own_data(prepared.setup)
    return prepared.feasibility


def prepare(
    scenario: Scenario,
    seed: int | None = None,
    data: Any = None,
    allow_code: bool = False,
    processes: int | None = None,
    model: Any = None,
) -> PreparedRun:
    """Set a scenario up and check who can take part.

    Args:
        scenario: the checked scenario.
        seed: of every random stream; None: the scenario's.
        data: as `simulate` takes it.
        allow_code: code of your own, ``./file.py:name``, may run.
        processes: threads that may train at once; None: one per core.
        model: as `simulate` takes it.

    Raises:
        ScenarioError, RunError: bad input.
        InfeasibleScenarioError: the backhaul alone takes the threshold.
    """
    if not isinstance(scenario, Scenario):
        found = type(scenario).__name__
        raise RunError(f"the scenario is {found}; give what edgesim.load gives, or simulate a path")
    refuse_changed_copies(scenario.folder)
    setup = set_up(scenario, seed, data, allow_code, processes, model)
    with user_errors(scenario):
        refuse_names_of_run_files(setup)
        return PreparedRun(setup, feasibility_of_run(setup))
