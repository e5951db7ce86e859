"""A run from start to end: checked, simulated, resumed, and its folder written."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import simpy

from edgesim.clocks.clock_choice import check_times
from edgesim.clocks.flights import Desk
from edgesim.clocks.resumed_jobs import first_dispatch_s, play_again
from edgesim.clocks.server_loop import ServerLoop
from edgesim.clocks.vectorised.version_loop import VersionLoop
from edgesim.engine.event_estimate import event_warnings
from edgesim.engine.vectorised import round_loop as array_rounds
from edgesim.engine.vectorised.round_loop import SteppedEnvironment, needs_processes
from edgesim.errors import InfeasibleScenarioError
from edgesim.hierarchy.cloud_loop import CloudLoop
from edgesim.hierarchy.edge_server import EdgeServer
from edgesim.hierarchy.make_hierarchy import Hierarchy
from edgesim.network.interference.sector_channel import SectorChannel
from edgesim.records.atomic_files import write_atomic
from edgesim.records.event_log import EventLog
from edgesim.records.run_checkpoint import Checkpoint, FolderError, RunFolder
from edgesim.records.table_files import rows_of
from edgesim.runs.artifacts import (
    peak_memory_bytes,
    resolved_scenario,
    summary_of,
    write_artifacts,
)
from edgesim.runs.continuation import continuable, without_unscheduled_scores
from edgesim.runs.error_sentences import user_errors
from edgesim.runs.feasibility import Feasibility, feasibility_table, joined_feasibility
from edgesim.runs.fingerprint import result_digest, training_digest
from edgesim.runs.learning_task import data_warnings
from edgesim.runs.round_observer import Progress, Recorder
from edgesim.runs.setup import Setup, set_up
from edgesim.scenario.loader import Scenario
from edgesim.tables.event_tables import EventTables
from edgesim.tables.table_checks import check_table
from fl.contracts import JobTrainer, State
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
        spent: wall seconds by purpose (wall_s, train_s, evaluate_s, engine_s); empty where the run
            had ended before.
    """

    folder: Path | None
    summary: dict
    log: EventLog
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
        where = f", {self.folder}" if self.folder else ""
        return f"<run {about['scheme']}, seed {about['seed']}, {about['rounds']} rounds{where}>"

    def _event_table(self, name: str) -> pd.DataFrame:
        return self.log.table(name)


def simulate(
    scenario: Scenario,
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
        scenario: the checked scenario.
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
    prepared = prepare(scenario, seed, data, allow_code, processes, model)
    return prepared.run(out, fresh, progress, shared)


def feasibility(
    scenario: Scenario,
    seed: int | None = None,
    data: Any = None,
    allow_code: bool = False,
) -> Feasibility:
    """What each device can reach at best in round 0, and what would be planned for it."""
    return prepare(scenario, seed, data, allow_code).feasibility


def prepare(
    scenario: Scenario,
    seed: int | None = None,
    data: Any = None,
    allow_code: bool = False,
    processes: int | None = None,
    model: Any = None,
) -> PreparedRun:
    """Set a scenario up and check who can take part; the arguments are those of `simulate`."""
    setup = set_up(scenario, seed, data, allow_code, processes, model)
    redrawn = any(each.capability_drawn == "round" for each in scenario.devices)
    with user_errors(scenario):
        table = feasibility_of(setup, redrawn)
        table.warnings.extend(data_warnings(scenario, setup.source.samples))
        table.warnings.extend(event_warnings(scenario, table.round_events))
        if (said := setup.meaning_of_shares()) and table.note not in table.warnings:
            table = replace(table, note=f"{table.note}; {said}")
    return PreparedRun(setup, table)


def feasibility_of(setup: Setup, redrawn: bool) -> Feasibility:
    """The table of round 0 of a cell, or of the cells of all edges."""
    if setup.hierarchy is None:
        return _feasibility_of_cell(setup, redrawn)
    tables = [_feasibility_of_cell(edge, redrawn) for edge in setup.edges]
    members = [(edge.number, edge.members.tolist()) for edge in setup.hierarchy.edges]
    return joined_feasibility(tables, members)


def _feasibility_of_cell(setup: Setup, redrawn: bool) -> Feasibility:
    cell = setup.cell(simpy.Environment())
    check_times(setup.scenario, cell, setup.method)
    wanted = setup.clock.room(Desk(cell.env, len(cell.fleet)))
    return feasibility_table(cell, setup.method, redrawn, wanted)


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
                self.setup.check_before_training()
            setup = share_training(self.setup, shared)
            folder = None if out is None else RunFolder(Path(out), result_digest(setup))
            try:
                saved = folder.open(fresh, continuable(setup, folder.path)) if folder else None
                if saved:
                    saved = without_unscheduled_scores(saved, setup)
                is_last = saved is not None and has_ended(setup, saved)
                if folder and saved and damage == [] and is_last and not saved.is_older:
                    return finished_run(setup, folder, saved)
                if folder:  # without summary.json it is no finished run, whose files have digests
                    (folder.path / "summary.json").unlink(missing_ok=True)
                if saved and damage:
                    names = ", ".join(file.name for file in damage)
                    saved.warnings.append(f"damaged files were written again: {names}")
                return run_rounds(setup, folder, saved, progress, self.feasibility.warnings)
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
    trainer = setup.trainer()
    trainer.restore_fallbacks(saved.facts.get("detours", ()) if saved else ())
    damage = saved.warnings if saved else []
    recorder = Recorder(
        setup.scenario,
        log,
        setup.evaluate,
        folder,
        progress,
        trainer.fallback_counts,
        damage,
        setup.stop_rule(),
    )
    recorder.report("start", round=first)
    over = saved is not None and has_ended(setup, saved)
    rounds = range(first, first if over else setup.scenario.rounds)
    state = play(setup, start_s, setup.rules(), trainer, log, recorder, rounds, state, saved)
    setup.add_presence(log)
    log.freeze()
    summary = summary_of(setup, log, [*warnings, *damage], trainer.fallbacks)
    recorder.report("trained", executor=trainer.executor_name, detours=list(trainer.fallbacks))
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
    return Run(folder.path if folder else None, summary, log, spent)


def has_ended(setup: Setup, saved: Checkpoint) -> bool:
    """Is the checkpoint that of the last round?"""
    return saved.g == setup.scenario.rounds - 1 or bool(saved.facts.get("ended"))


def new_log(setup: Setup) -> EventLog:
    """An empty log with the columns of this run."""
    absent, adaptation = setup.absences is not None, setup.scenario.network.adaptation
    errors = adaptation is not None and adaptation.csi is not None
    fails = setup.scenario.server is not None
    jobs = setup.clock.records_jobs or absent or fails
    sectors = setup.scenario.network.layout.kind != "single"
    moves = isinstance(setup.channel, SectorChannel) and setup.channel.moving is not None
    return EventLog(jobs, bool(setup.edges), absent, errors, fails, sectors, moves)


def restore(setup: Setup, saved: Checkpoint, log: EventLog) -> State:
    """Put the rows of a checkpoint into the log; its state.

    Raises:
        FolderError: another version wrote it, with other tables or another state.
    """
    try:
        log.restore(saved.tables)
        for name, columns in log.tables.items():
            if rows_of(columns):
                check_table(name, {c: np.asarray(values) for c, values in columns.items()})
        return setup.restored(saved)
    except (KeyError, TypeError, ValueError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise FolderError(
            f"the checkpoint is whole, but another version wrote it ({reason}); use --fresh to "
            "start again"
        ) from error


def play(
    setup: Setup,
    start_s: float,
    method: Any,
    trainer: JobTrainer,
    log: EventLog,
    recorder: Recorder,
    rounds: range,
    state: State | None,
    saved: Checkpoint | None = None,
) -> State:
    """Play rounds by one process per device, or as arrays where that gives the same tables.

    Args:
        setup: what is run.
        start_s: simulated time at which the first of the rounds starts, s.
        method: the method's hooks; with ``orders`` where nothing is trained.
        trainer: takes the jobs.
        log: takes spans and rows.
        recorder: observes the rounds.
        rounds: the rounds still to play.
        state: the method's state after the round before; None starts anew.
        saved: the checkpoint of that state, for the jobs that were at work.

    Returns:
        The last state.
    """
    if setup.hierarchy:
        env = SteppedEnvironment(initial_time=start_s)
        cloud = make_cloud(setup, setup.hierarchy, env, trainer, log, recorder)
        return env.run(env.process(cloud.rounds(rounds, state or cloud.start())))
    at_work = saved.facts.get("at_work") if saved else None
    first_s = first_dispatch_s(at_work, start_s) if at_work else start_s
    clock, env = setup.scenario.clock.mode, SteppedEnvironment(initial_time=first_s)
    cell = setup.cell(env)
    jobs_before = int(np.sum(log.columns("rounds")["selected"], dtype=int))
    tells_outcomes = not setup.counts_only or setup.selector is not None
    tells_outcomes = tells_outcomes or setup.scenario.server is not None
    if needs_processes(cell, clock, trained=tells_outcomes):
        if saved and not at_work:
            cell.restore_arrays(saved.arrays)
        parts = setup.clock, env, cell, method, trainer, log, recorder
        server = ServerLoop(*parts, recorder.stop, setup.server_failures())
        state = method.start() if state is None else state
        server.desk.jobs = jobs_before
        if saved and at_work:
            jobs = server.desk, env, cell, method, trainer, log, state, saved.arrays, at_work
            play_again(*jobs, start_s)
        return env.run(env.process(server.versions(rounds, state)))
    if clock in array_rounds.CLOCKS:
        ends = recorder.stop, jobs_before
        return array_rounds.serve(clock, env, cell, method, log, recorder, rounds, state, *ends)
    env.advance_to(start_s)
    loop = VersionLoop(setup.clock, env, cell, method, log, recorder, recorder.stop)
    state = method.start() if state is None else state
    if saved and at_work:
        loop.restore(state, saved.arrays, at_work, start_s)
    return loop.versions(rounds, state)


def make_cloud(
    setup: Setup,
    hierarchy: Hierarchy,
    env: simpy.Environment,
    trainer: Any,
    log: EventLog,
    recorder: Recorder,
) -> CloudLoop:
    """The cloud of a scenario with tiers and its edges, at the time of ``env``."""
    bits, weights = hierarchy.model_bits, []
    uplink = hierarchy.air.uplink(env) if hierarchy.air else None
    servers = []
    for edge, own, trains in zip(hierarchy.edges, setup.edges, trainer.of_edges, strict=True):
        cell = own.cell(env, uplink)
        parts = own.clock, env, cell, own.rules(), trains
        log_of = partial(new_log, own)
        servers.append(EdgeServer(edge, *parts, hierarchy.local_rounds, bits, log_of))
        view = cell.view(0, everyone=True)
        weights.append(sum(own.method.weight_of(view, k) for k in range(len(own.fleet))))
    shared = None if setup.counts_only else setup.method.shared_mask
    jobs_before = int(np.sum(log.columns("rounds")["selected"], dtype=int))
    ends = recorder.stop, jobs_before
    return CloudLoop(env, hierarchy, servers, shared, weights, log, recorder, *ends)


def finished_run(setup: Setup, folder: RunFolder, saved: Checkpoint) -> Run:
    """A run that had ended before: nothing is computed again."""
    log = new_log(setup)
    log.restore(saved.tables)
    setup.add_presence(log)
    summary = json.loads((folder.path / "summary.json").read_text(encoding="utf-8"))
    return Run(folder.path, summary, log)
