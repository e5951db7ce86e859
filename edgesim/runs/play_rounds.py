"""The rounds of a run, from the start or from a checkpoint, by processes or as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import simpy

from edgesim.clocks.resumed_jobs import first_dispatch_s, play_again
from edgesim.clocks.server_loop import ServerLoop
from edgesim.clocks.vectorised.resumed_columns import take_up_jobs
from edgesim.clocks.vectorised.version_loop import VersionLoop
from edgesim.engine.vectorised import round_loop as array_rounds
from edgesim.engine.vectorised.round_loop import SteppedEnvironment, needs_processes
from edgesim.errors import counted
from edgesim.hierarchy.cloud_loop import CloudLoop
from edgesim.hierarchy.edge_server import EdgeServer
from edgesim.hierarchy.make_hierarchy import Hierarchy
from edgesim.network.interference.sector_channel import SectorChannel
from edgesim.records.checkpoint.run_checkpoint import FOREIGN, Checkpoint, reason_of
from edgesim.records.checkpoint.usable_folder import USE_FRESH, FolderError
from edgesim.records.event_log import EventLog
from edgesim.records.run_tables.table_columns import (
    ABSENCE_COLUMNS,
    ERROR_COLUMNS,
    HANDOVER_COLUMNS,
    JOB_COLUMNS,
    SECTOR_COLUMNS,
    SERVER_COLUMNS,
    TIER_COLUMNS,
    rows_of,
)
from edgesim.runs.round_observer import Recorder
from edgesim.runs.setup.setup import Setup
from edgesim.runs.setup.training_and_evaluation import method_hooks, restored_state
from edgesim.tables.table_checks import check_table
from fl.contracts import JobTrainer, State
from fl.errors import LearningError
from fl.method_base.state_answers import first_state


def new_log(setup: Setup) -> EventLog:
    """An empty log with the columns of this run."""
    absent, adaptation = setup.absences is not None, setup.scenario.network.adaptation
    fails, channel = setup.scenario.server is not None, setup.channel
    sectors = channel if isinstance(channel, SectorChannel) else None
    has = (
        (JOB_COLUMNS, setup.clock.records_jobs or absent or fails),
        (TIER_COLUMNS, bool(setup.edges)),
        (ABSENCE_COLUMNS, absent),
        (SERVER_COLUMNS, fails),
        (ERROR_COLUMNS, adaptation is not None and adaptation.csi is not None),
        (SECTOR_COLUMNS, sectors is not None),
        (HANDOVER_COLUMNS, sectors is not None and sectors.moving is not None),
    )
    return EventLog(*(columns for columns, holds in has if holds))


def restore(setup: Setup, saved: Checkpoint, log: EventLog) -> State:
    """Put the rows of a checkpoint into the log; its state.

    Raises:
        FolderError: another version wrote it, with other tables or another state.
    """
    with refusing_other_versions():
        log.restore(saved.tables)
        for name, columns in log.tables.items():
            if rows_of(columns):
                check_table(name, {c: np.asarray(values) for c, values in columns.items()})
        if (rounds := rows_of(log.columns("rounds"))) != saved.g + 1:
            raise ValueError(f"it has {rounds} of {counted(saved.g + 1, 'round')}")
        if (end_s := float(log.columns("rounds")["time_s"][-1])) != saved.time_s:
            raise ValueError(f"its last round ends at {end_s:g} s, not at {saved.time_s:g} s")
        return restored_state(setup, saved)


@contextmanager
def refusing_other_versions() -> Iterator[None]:
    """Have what is raised over the content of a whole checkpoint end in a sentence.

    Around whatever reads it, the jobs that are played again with the rest.

    Raises:
        FolderError: something was raised that has no sentence of its own.
    """
    try:
        yield
    except LearningError:
        raise
    except FOREIGN as error:
        raise FolderError(
            f"the checkpoint is whole, but another version wrote it ({reason_of(error)}); "
            f"{USE_FRESH} to start again"
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
    with refusing_other_versions():
        first_s = first_dispatch_s(at_work, start_s) if at_work else start_s
    clock, env = setup.scenario.clock.mode, SteppedEnvironment(initial_time=first_s)
    cell = setup.cell(env)
    jobs_before = int(np.sum(log.columns("rounds")["selected"], dtype=int))
    tells_outcomes = not setup.counts_only or setup.selector is not None
    tells_outcomes = tells_outcomes or setup.scenario.server is not None
    if needs_processes(cell, clock, trained=tells_outcomes):
        if saved and not at_work:
            with refusing_other_versions():
                cell.restore_arrays(saved.arrays)
        parts = setup.clock, env, cell, method, trainer, log, recorder
        server = ServerLoop(*parts, recorder.stop, setup.server_failures())
        state = first_state(method) if state is None else state
        server.desk.jobs = jobs_before
        if saved and at_work:
            jobs = server.desk, env, cell, method, trainer, log, state, saved.arrays, at_work
            with refusing_other_versions():
                play_again(*jobs, start_s)
        return env.run(env.process(server.versions(rounds, state)))
    if clock in array_rounds.CLOCKS:
        ends = recorder.stop, jobs_before
        return array_rounds.serve(clock, env, cell, method, log, recorder, rounds, state, *ends)
    env.advance_to(start_s)
    loop = VersionLoop(setup.clock, env, cell, method, log, recorder, recorder.stop)
    state = first_state(method) if state is None else state
    if saved and at_work:
        with refusing_other_versions():
            take_up_jobs(loop.desk, cell, method, state, saved.arrays, at_work, start_s)
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
        parts = own.clock, env, cell, method_hooks(own), trains
        log_of = partial(new_log, own)
        servers.append(EdgeServer(edge, *parts, hierarchy.local_rounds, bits, log_of))
        view = cell.view(0, everyone=True)
        weights.append(sum(own.method.weight_of(view, k) for k in range(len(own.fleet))))
    shared = None if setup.counts_only else setup.method.shared_mask
    jobs_before = int(np.sum(log.columns("rounds")["selected"], dtype=int))
    ends = recorder.stop, jobs_before
    return CloudLoop(env, hierarchy, servers, shared, weights, log, recorder, *ends)
