"""Carries a scenario through: checks that it can run, simulates it to the end, resumes it, keeps its folder."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import simpy

from edgesim.engine import rounds as servers
from edgesim.engine.vectorised import server_loop as lockstep
from edgesim.engine.vectorised.server_loop import needs_processes
from edgesim.errors import InfeasibleScenarioError, RunError
from edgesim.network.link import StalledLink
from edgesim.records.event_log import EventLog
from edgesim.records.run_folder import Checkpoint, FolderError, RunFolder
from edgesim.records.summary import summarise
from edgesim.runs import Setup, memory_is_full, set_up
from edgesim.runs.artifacts import keep
from edgesim.runs.feasibility import Feasibility, feasibility_table
from edgesim.runs.peak_memory import peak_bytes
from edgesim.runs.recorder import Progress, Recorder, scheme_of
from edgesim.runs.user_code import UserCodeError, blamed
from edgesim.scenario.loader import Scenario
from fl.contracts import State
from fl.errors import LearningError
from solvers import InfeasibleError, InvalidAllocationError, UncertifiedError

if TYPE_CHECKING:
    import pandas as pd

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # what a full disk answers


def feasibility(
    scenario: Scenario, seed: int | None = None, data: str | None = None, allow_code: bool = False
) -> Feasibility:
    """What each device can achieve at best in round 0, and what would be planned for it."""
    with in_one_sentence():
        setup = set_up(scenario, seed, data, allow_code)
    return feasibility_of(setup)


def feasibility_of(setup: Setup) -> Feasibility:
    with in_one_sentence(), blamed(setup.scenario):
        redrawn = any(each.capability_drawn == "round" for each in setup.scenario.devices)
        return feasibility_table(setup.cell(simpy.Environment()), setup.method, redrawn)


@dataclass
class Run:
    """A finished run: its summary, its tables (pandas), its folder (None: kept in memory only).

    spent: wall seconds by purpose, wall_s, train_s, evaluate_s, engine_s; empty where the run had ended before.
    """

    folder: Path | None
    summary: dict
    log: EventLog
    spent: dict[str, float] = field(default_factory=dict)

    @cached_property
    def rounds(self) -> pd.DataFrame:
        return self.log.rounds

    @cached_property
    def device_rounds(self) -> pd.DataFrame:
        return self.log.device_rounds

    @cached_property
    def spans(self) -> pd.DataFrame:
        return self.log.spans

    @cached_property
    def scores(self) -> pd.DataFrame:
        return self.log.scores

    @cached_property
    def measures(self) -> pd.DataFrame:
        return self.log.measures


def simulate(
    scenario: Scenario,
    seed: int | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
    data: str | None = None,
    allow_code: bool = False,
    progress: Progress | None = None,
    shared: str | Path | None = None,
    processes: int | None = None,
) -> Run:
    """Run a scenario to its end and return its tables; with ``out`` also write, resume and keep its folder.

    Args:
        seed: of every random stream; None takes the scenario's.   out: the run's folder; None keeps all in memory.
        fresh: replace what an earlier run left in ``out``.        data: folder of data files, else EDGESIM_DATA.
        allow_code: a method or solver may be ``./file.py:name``.  progress: called with a dict after each round.
        shared: folder by which runs share what they train (`fl.training_cache.cache`); it changes no result.
        processes: that may train at once; None: one per core. They change no result either.
    Raises:
        ScenarioError, RunError: bad input.                        InfeasibleScenarioError: nobody can meet the threshold.
    """
    with in_one_sentence():
        setup = set_up(scenario, seed, data, allow_code, processes).sharing(shared)
    table = feasibility_of(setup)
    if not table.feasible:
        raise InfeasibleScenarioError(table.note)
    folder = None if out is None else RunFolder(Path(out), setup.fingerprint())
    with in_one_sentence():
        if fresh or folder is None or not folder.is_finished():
            setup.check_before_training()
        try:
            saved = folder.open(fresh) if folder else None
            if folder and folder.is_finished():
                return finished_run(folder, saved)
            with blamed(scenario):
                return carry_out(setup, folder, saved, progress, table.warnings)
        finally:
            if folder is not None:
                folder.close()


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """What a scenario, its data or the user's code can cause, as the two errors that the command line knows."""
    try:
        yield
    except InfeasibleError as error:
        raise InfeasibleScenarioError(
            f"{str(error).rstrip('.')}; or write allocation.when_infeasible: stretch"
        ) from error
    except (
        FolderError,
        InvalidAllocationError,
        LearningError,
        UncertifiedError,
        UserCodeError,
        StalledLink,
        servers.NobodyTakesPart,
        servers.WrongSelection,
    ) as error:
        raise RunError(str(error)) from error
    except (MemoryError, RuntimeError) as error:
        if not memory_is_full(error):
            raise
        what = str(error) if isinstance(error, MemoryError) and str(error) else "the memory is full"
        raise RunError(
            f"{what}; make room, and the same command resumes where it stopped"
        ) from error
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        at = f"{error.filename}: " if error.filename else ""
        raise RunError(
            f"{at}{error.strerror}; make room, and the same command resumes where it stopped"
        ) from error


def carry_out(
    setup: Setup, folder: RunFolder | None, saved, progress: Progress | None, warnings: list[str]
) -> Run:
    """Simulate from the start, or from a checkpoint, to the last round."""
    start_s, state, first = 0, None, 0
    if saved is not None:
        start_s, state, first = saved.time_s, setup.restored(saved), saved.g + 1
    log = EventLog()
    log.restore(saved.tables if saved else ())
    trainer = setup.trainer()
    trainer.go_on_after(saved.facts.get("detours", ()) if saved else ())
    recorder = Recorder(setup.scenario, log, setup.evaluate, folder, progress, trainer.detours)
    recorder.tell("start", round=first)
    turns = range(first, setup.scenario.rounds)
    try:
        state = play(setup, start_s, setup.rules(), trainer, log, recorder, turns, state)
    finally:
        trainer.end()
    log.freeze()
    summary = summary_of(setup, log, warnings, trainer.notes)
    recorder.tell("trained", executor=trainer.executor_name, detours=list(trainer.notes))
    spent = {
        "wall_s": recorder.wall_s,
        "train_s": trainer.seconds,
        "evaluate_s": recorder.evaluate_s,
    }
    spent["engine_s"] = spent["wall_s"] - spent["train_s"] - spent["evaluate_s"]
    noted = {"executor": trainer.executor_name, "peak_memory_bytes": peak_bytes()}
    passes = (
        {"passes_taken": setup.reuse.taken, "passes_made": setup.reuse.made} if setup.reuse else {}
    )
    if folder is not None:
        keep(folder.path, setup, log, state, summary, {**spent, **noted, **passes})
    recorder.tell("end", round=setup.scenario.rounds - 1)
    return Run(folder.path if folder else None, summary, log, spent)


def play(setup: Setup, start_s: float, method: Any, *run: Any) -> State:
    """The rounds of a run from ``start_s``, by one process per device, or in lockstep where that gives the same."""
    env, mode = simpy.Environment(initial_time=start_s), setup.scenario.clock.mode
    cell = setup.cell(env)
    if needs_processes(cell, trained=not setup.counts_only):
        return env.run(env.process(getattr(servers, mode)(env, cell, method, *run)))
    clock = lockstep.Clock(float(start_s))
    return getattr(lockstep, mode)(clock, setup.cell(clock), method, *run)


def finished_run(folder: RunFolder, saved: Checkpoint) -> Run:
    """A run that had ended before: nothing is computed again."""
    import json

    log = EventLog()
    log.restore(saved.tables)
    try:
        summary = json.loads((folder.path / "summary.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise FolderError(
            f"{folder.path}/summary.json is damaged ({error}); use --fresh to start again"
        ) from error
    return Run(folder.path, summary, log)


def summary_of(
    setup: Setup, log: EventLog, warnings: list[str], detours: Sequence[str] = ()
) -> dict:
    """summary.json: what was run, and the figures that follow from the event log.

    ``detours``: what the training could not do as chosen, and did in another way; it changes no other number.
    """
    scenario = setup.scenario
    return {
        "scenario": scenario.name,
        "scheme": scheme_of(scenario),
        "method": scenario.learning.method.name,
        "solver": scenario.allocation.solver,
        "seed": setup.seed,
        "rounds": scenario.rounds,
        "devices": len(setup.fleet),
        "weights": setup.method.weights(),
        "training": {"arithmetic": setup.arithmetic(), "detours": list(detours)},
        "warnings": warnings,
        "stretched_rounds": log.stretched_rounds,
        **summarise(
            log.columns("rounds"), scenario.evaluate.targets, scenario.budget.latency_threshold_s
        ),
    }


def default_folder(scenario: Scenario, seed: int | None = None) -> Path:
    """Where `edgesim run` keeps a run: named by what it is, so that a changed scenario is another run."""
    seed = scenario.seed if seed is None else seed
    label = re.sub(r"\W+", "-", scheme_of(scenario)).strip("-")
    return Path("runs") / scenario.name / f"{label}-{scenario.digest()[:8]}-s{seed}"
