"""A run from start to end: checked, simulated, resumed, and its folder written."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgesim.errors import InfeasibleScenarioError, RunError, counted
from edgesim.records.atomic_files import write_atomic
from edgesim.records.checkpoint.run_checkpoint import Checkpoint, RunFolder
from edgesim.records.checksums import SUMS
from edgesim.records.event_log import EventLog
from edgesim.records.summary import unsettled_warnings
from edgesim.runs.artifacts import (
    peak_memory_bytes,
    resolved_scenario,
    summary_of,
    write_artifacts,
)
from edgesim.runs.continuation import continuable, without_unscheduled_scores
from edgesim.runs.error_sentences import user_errors
from edgesim.runs.feasibility.feasibility_of_run import feasibility_of_run
from edgesim.runs.feasibility.round_0 import Feasibility
from edgesim.runs.fingerprint import result_digest, training_digest
from edgesim.runs.own_files import refuse_changed_copies, refuse_names_of_run_files
from edgesim.runs.play_rounds import new_log, play, restore
from edgesim.runs.round_observer import Progress, Recorder
from edgesim.runs.scheme_position import refuse_other_label, renew_scheme_position
from edgesim.runs.setup.checks_before_training import (
    check_before_training,
    check_own_data,
)
from edgesim.runs.setup.make_setup import set_up
from edgesim.runs.setup.setup import Setup
from edgesim.runs.setup.training_and_evaluation import (
    evaluate_state,
    make_trainer,
    method_hooks,
    torch_on_one_thread,
)
from edgesim.scenario.loader import Scenario, load
from edgesim.tables.event_tables import EventTables
from fl.training_cache.array_store import ArrayStore
from fl.training_cache.cache import TrainingCache

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class Run(EventTables):
    """A finished run.

    Args:
        folder: of its files; None: kept in memory only.
        summary: content of summary.json.
        log: the event log.
        scenario: that was run.
        spent: wall seconds by purpose (wall_s, train_s, evaluate_s, engine_s); empty where the run
            had ended before.
    """

    folder: Path | None
    summary: dict
    log: EventLog
    scenario: Scenario
    spent: dict[str, float] = field(default_factory=dict)

    def plot(self, figure: str = "accuracy", ax: Any = None, x: str | None = None) -> Any:
        """Draw a figure, such as accuracy, loss or latency: see `edgesim.results.plotting.plot`."""
        from edgesim.results.plotting import plot

        return plot(self, figure, ax, x)

    def _repr_html_(self) -> str:
        from edgesim.results.notebook_html import run_html

        return run_html(self.summary, self.folder)

    def __repr__(self) -> str:
        about = self.summary
        rounds = counted(about["rounds"], "round")
        where = f", {self.folder}" if self.folder else ""
        return f"<run {about['scheme']}, seed {about['seed']}, {rounds}{where}>"

    def _event_table(self, name: str) -> pd.DataFrame:
        return self.log.table(name)


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


@dataclass(frozen=True)
class PreparedRun:
    """A run that is set up and was checked, and has not started."""

    setup: Setup
    feasibility: Feasibility

    def run(
        self,
        out: str | Path | None = None,
        fresh: bool = False,
        progress: Progress | None = None,
        shared: str | Path | None = None,
    ) -> Run:
        """Start or resume the run; arguments and errors are those of `simulate`."""
        if not self.feasibility.feasible:
            raise InfeasibleScenarioError(self.feasibility.note)
        with user_errors(self.setup.scenario):
            damage = None
            if out is not None:  # before what trains loads, which the digests need
                place = RunFolder(Path(out))
                place.refuse_unusable()
                damage = None if fresh else place.damage()
            if damage != []:
                check_before_training(self.setup)
            setup = share_training(self.setup, shared)
            folder = None if out is None else RunFolder(Path(out), result_digest(setup))
            try:
                saved = folder.open(fresh, continuable(setup, folder.path)) if folder else None
                if folder and damage == []:
                    refuse_other_label(folder.path, setup.scenario)
                if saved:
                    saved = without_unscheduled_scores(saved, setup)
                is_last = saved is not None and has_ended(setup, saved)
                if folder:
                    # It is gone where `stop` had ended the run and only its rounds were raised.
                    is_whole = damage == [] and (folder.path / "summary.json").exists()
                    if saved and is_whole and is_last and not saved.is_older:
                        renew_scheme_position(folder.path, setup.scenario)
                        return finished_run(setup, folder, saved)
                    for name in ("summary.json", SUMS):  # digests are those of finished runs
                        (folder.path / name).unlink(missing_ok=True)
                if saved and damage:
                    names = ", ".join(file.name for file in damage)
                    saved.warnings.append(f"damaged files were written again: {names}")
                return run_rounds(setup, folder, saved, progress, self.feasibility.warnings)
            except (Exception, SystemExit):  # sys.exit in the user's code is a failure too
                if folder is not None:
                    folder.discard_unstarted()
                raise
            finally:
                if folder is not None:
                    folder.close()


def share_training(setup: Setup, folder: str | Path | None) -> Setup:
    """The same run, which shares what it trains with other runs through a folder.

    See `fl.training_cache.cache`. Without a folder, or with code of the user's own, nothing is
    shared.
    """
    # A job with fewer steps has the key of the whole one.
    alone = bool(setup.edges) or setup.scenario.clock.partial != "none"
    identity = None if folder is None or alone else training_digest(setup)
    if folder is None or identity is None:
        return setup
    store = ArrayStore(Path(folder) / identity[:16])
    return replace(setup, reuse=TrainingCache(store, identity, setup.task.tensor))


def run_rounds(
    setup: Setup,
    folder: RunFolder | None,
    saved: Checkpoint | None,
    progress: Progress | None,
    warnings: list[str],
) -> Run:
    """Simulate from the start, or from a checkpoint, to the last round, and write the files.

    Args:
        setup: what is run.
        folder: open; None keeps all in memory.
        saved: the checkpoint to go on from.
        progress: called with a dict after each round.
        warnings: for summary.json.
    """
    start_s, state, first, log = 0.0, None, 0, new_log(setup)
    resolved = "" if folder is None else resolved_scenario(setup)
    if folder is not None:
        write_atomic(folder.path / "scenario.yaml", resolved)
    if saved is not None:
        start_s, first = saved.time_s, saved.g + 1
        state = restore(setup, saved, log)
    trainer = make_trainer(setup)
    trainer.restore_fallbacks(saved.facts.get("detours", ()) if saved else ())
    damage = saved.warnings if saved else []
    recorder = Recorder(
        setup.scenario,
        log,
        partial(evaluate_state, setup),
        folder,
        progress,
        lambda: list(trainer.fallbacks.counts().items()),
        damage,
        setup.stop_rule(),
    )
    recorder.started(first)
    over = saved is not None and has_ended(setup, saved)
    rounds = range(first, first if over else setup.scenario.rounds)
    with torch_on_one_thread(setup):
        played = setup, start_s, method_hooks(setup), trainer, log, recorder, rounds, state, saved
        state = play(*played)
    setup.add_presence(log)
    log.freeze()
    unsettled = unsettled_warnings(log.columns("unsettled_plans"))
    found = [*warnings, *damage, *recorder.divergence(), *unsettled]
    detours = trainer.fallbacks.lines()
    summary = summary_of(setup, log, found, detours)
    recorder.report("trained", executor=trainer.executor_name, detours=detours)
    spent = {
        "wall_s": recorder.wall_s,
        "train_s": trainer.seconds,
        "evaluate_s": recorder.evaluate_s,
    }
    spent["engine_s"] = spent["wall_s"] - spent["train_s"] - spent["evaluate_s"]
    if folder is not None:
        timing: dict[str, Any] = {**spent, "executor": trainer.executor_name}
        timing["peak_memory_bytes"] = peak_memory_bytes()
        if setup.reuse:
            timing |= {"passes_taken": setup.reuse.taken, "passes_made": setup.reuse.made}
        write_artifacts(folder.path, setup, resolved, log, state, summary, timing)
    recorder.report("end", round=summary["rounds"] - 1)
    return Run(folder.path if folder else None, summary, log, setup.scenario, spent)


def has_ended(setup: Setup, saved: Checkpoint) -> bool:
    """Is the checkpoint that of the last round?"""
    return saved.g == setup.scenario.rounds - 1 or bool(saved.facts.get("ended"))


def finished_run(setup: Setup, folder: RunFolder, saved: Checkpoint) -> Run:
    """A run that had ended before: nothing is computed again."""
    log = new_log(setup)
    log.restore(saved.tables)
    setup.add_presence(log)
    summary = json.loads((folder.path / "summary.json").read_text(encoding="utf-8"))
    return Run(folder.path, summary, log, setup.scenario)
