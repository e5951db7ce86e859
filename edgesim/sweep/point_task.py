"""One point, carried out in whatever process: it never raises, it answers."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgesim.errors import ScenarioError
from edgesim.scenario.loader import Scenario

PATIENCE_S = 30.0  # how long to wait for another process that still writes the same point


@dataclass(frozen=True)
class Task:
    """What a worker is told: a point, its folder, and what `edgesim.runs.run.simulate` takes beside them.

    here: the command's folder, from which paths in the scenario count.
    """

    id: str
    scenario: Scenario
    folder: Path
    options: dict[str, Any]
    tensorboard: bool = False
    here: Path = field(default_factory=Path.cwd)


@dataclass(frozen=True)
class Ended:
    """How a point went: done | failed | infeasible, and why."""

    status: str
    error: str | None = None
    accuracy: float | None = None
    wall_s: float = 0.0


def carry_out(task: Task, tell: Callable[[dict], None]) -> Ended:
    """Run or resume a point; ``tell`` gets the events of its rounds."""
    from edgesim.errors import InfeasibleScenarioError, RunError

    start_s = time.monotonic()
    try:
        with chdir(task.here):
            summary = _simulated(task, tell, start_s)
    except InfeasibleScenarioError as problem:
        return Ended("infeasible", _line(problem))
    except (ScenarioError, RunError) as problem:
        return Ended("failed", _line(problem))
    except Exception as error:  # a bug, of ours or in the user's code: the other points go on
        last = traceback.extract_tb(error.__traceback__)[-1]
        return Ended(
            "failed",
            _line(f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"),
        )
    return Ended("done", None, summary["final_accuracy"], time.monotonic() - start_s)


def _simulated(task: Task, tell: Callable[[dict], None], start_s: float) -> dict:
    """The summary of the run; a folder that another process still writes is waited for."""
    from edgesim.errors import RunError
    from edgesim.records.run_folder import FolderInUseError
    from edgesim.runs.run import simulate
    from edgesim.runs.tensorboard_log import with_tensorboard

    while True:
        try:
            with with_tensorboard(task.folder, task.tensorboard, tell) as progress:
                return simulate(
                    task.scenario, out=task.folder, progress=progress, **task.options
                ).summary
        except RunError as problem:
            if not isinstance(problem, FolderInUseError) or time.monotonic() - start_s > PATIENCE_S:
                raise
            time.sleep(1.0)


def _line(problem: Any) -> str:
    return " ".join(str(problem).split())
