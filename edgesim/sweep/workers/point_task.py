"""One point, carried out in any process: the outcome is returned, never raised."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from edgesim.errors import InfeasibleScenarioError, RunError, ScenarioError, one_line
from edgesim.results.sweep_file import DONE, FAILED, INFEASIBLE
from edgesim.scenario.loader import Scenario

ROUND, ENDED, DIED = "round", "ended", "died"
PATIENCE_S = 30.0  # how long to wait for another process that still writes the same point


class SimulateOptions(TypedDict, total=False):
    """Arguments of `edgesim.runs.run.simulate`, the same for many points."""

    data: str | None
    allow_code: bool
    processes: int
    shared: Path | None


@dataclass(frozen=True)
class PointTask:
    """What a worker needs.

    Args:
        id: of the point.
        scenario: of the point.
        folder: of its run.
        options: of `edgesim.runs.run.simulate`.
        tensorboard: write TensorBoard scalars as well?
        begin: makes the folder out of that of a shorter run; None: there is none.
        working_folder: of the command, to which paths in the scenario are relative.
    """

    id: str
    scenario: Scenario
    folder: Path
    options: SimulateOptions
    tensorboard: bool = False
    begin: Callable[[], None] | None = None
    working_folder: Path = field(default_factory=Path.cwd)


@dataclass(frozen=True)
class PointOutcome:
    """How a point ended.

    Args:
        status: done, failed or infeasible.
        error: why, in one line.
        learning: accuracy, loss and metrics at the end of the run.
        wall_s: wall time, s.
    """

    status: str
    error: str | None = None
    learning: Mapping[str, Any] = field(default_factory=dict)
    wall_s: float = 0.0


class WorkerEvent(NamedTuple):
    """What workers report of a point.

    kind: ROUND, ENDED or DIED.
    point_id: of the point.
    content: of ROUND the event of `edgesim.runs.run.simulate`, of ENDED a PointOutcome, of DIED
        how the process ended.
    """

    kind: str
    point_id: str
    content: Any


def carry_out(task: PointTask, progress: Callable[[dict], None]) -> PointOutcome:
    """Run or resume a point.

    Args:
        task: the point.
        progress: called with the events of its rounds.
    """
    start_s = time.monotonic()
    try:
        with chdir(task.working_folder):
            summary = _simulated(task, progress, start_s)
    except InfeasibleScenarioError as problem:
        return PointOutcome(INFEASIBLE, one_line(problem))
    except (ScenarioError, RunError) as problem:
        return PointOutcome(FAILED, one_line(problem))
    except Exception as error:  # a bug, of ours or in the user's code: the other points go on
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        return PointOutcome(FAILED, one_line(f"{type(error).__name__}: {error} ({place})"))
    learning = {name: summary[f"final_{name}"] for name in ("accuracy", "loss")}
    learning["metrics"] = summary.get("final_metric", {})
    return PointOutcome(DONE, None, learning, time.monotonic() - start_s)


def _simulated(task: PointTask, progress: Callable[[dict], None], start_s: float) -> dict[str, Any]:
    """The summary of the run; a folder that another process still writes is waited for."""
    from edgesim.records.checkpoint.usable_folder import FolderInUseError
    from edgesim.runs.run import simulate
    from edgesim.runs.tensorboard_log import with_tensorboard

    if task.begin:
        task.begin()
    while True:
        try:
            with with_tensorboard(task.folder, task.tensorboard, progress) as shown:
                run = simulate(task.scenario, out=task.folder, progress=shown, **task.options)
                return run.summary
        except RunError as problem:
            in_use = isinstance(problem, FolderInUseError)
            if not in_use or time.monotonic() - start_s > PATIENCE_S:
                raise
            time.sleep(1.0)
