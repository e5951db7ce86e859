"""A run that is set up: started, resumed or found finished, simulated, and its folder written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from edgesim.errors import InfeasibleScenarioError
from edgesim.network.mobility.range_warnings import range_warnings
from edgesim.records.atomic_files import write_atomic
from edgesim.records.checkpoint.run_checkpoint import Checkpoint, RunFolder
from edgesim.records.checksums import SUMS
from edgesim.records.summary import unsettled_warnings
from edgesim.results.summary_file import read_summary
from edgesim.runs.artifacts import (
    peak_memory_bytes,
    resolved_scenario,
    summary_of,
    write_artifacts,
)
from edgesim.runs.continuation import continuable, without_unscheduled_scores
from edgesim.runs.error_sentences import user_errors
from edgesim.runs.feasibility.round_0 import Feasibility
from edgesim.runs.fingerprint import result_digest, training_digest
from edgesim.runs.play_rounds import new_log, play, refusing_other_versions, restore
from edgesim.runs.round_observer import Progress, Recorder
from edgesim.runs.scheme_position import refuse_other_label, renew_scheme_position
from edgesim.runs.setup.checks_before_training import check_before_training
from edgesim.runs.setup.setup import Setup
from edgesim.runs.setup.training_and_evaluation import (
    evaluate_state,
    make_trainer,
    method_hooks,
    torch_on_one_thread,
)
from edgesim.runs.simulated_run import Run
from fl.training_cache.array_store import ArrayStore
from fl.training_cache.cache import TrainingCache


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
            setup, warnings = share_training(self.setup, shared), self.feasibility.warnings
            if out is None:
                return run_rounds(setup, None, None, progress, warnings)
            with closing_folder(RunFolder(Path(out), result_digest(setup))) as folder:
                saved = folder.open(fresh, continuable(setup, folder.path))
                if damage == []:
                    refuse_other_label(folder.path, setup.scenario)
                if saved:
                    with refusing_other_versions():
                        saved = without_unscheduled_scores(saved, setup)
                    if damage == [] and is_complete(setup, folder, saved):
                        renew_scheme_position(folder.path, setup.scenario)
                        return kept_run(setup, folder, saved)
                    if damage:
                        names = ", ".join(file.name for file in damage)
                        saved.warnings.append(f"damaged files were written again: {names}")
                for name in ("summary.json", SUMS):  # digests are those of finished runs
                    (folder.path / name).unlink(missing_ok=True)
                return run_rounds(setup, folder, saved, progress, warnings)


@contextmanager
def closing_folder(folder: RunFolder) -> Iterator[RunFolder]:
    """Close a run's folder at the end, and leave none where a run could not start."""
    try:
        yield folder
    except (Exception, SystemExit):  # sys.exit in the user's code is a failure too
        folder.discard_unstarted()
        raise
    finally:
        folder.close()


def is_complete(setup: Setup, folder: RunFolder, saved: Checkpoint) -> bool:
    """Whether nothing is left to compute or to write.

    The summary is gone where `stop` had ended the run and only its rounds were raised.
    """
    is_whole = (folder.path / "summary.json").exists()
    return is_whole and has_ended(setup, saved) and not saved.is_older


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
    import torch

    store = ArrayStore(Path(folder) / identity[:16])
    # workers of a cluster may have other processors
    identity += torch.backends.cpu.get_cpu_capability()
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
    with refusing_other_versions():
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
    ends_s = [float(each) for each in log.columns("rounds")["time_s"]]
    walked = range_warnings(setup.channel, ends_s[:-1])
    found = [*warnings, *damage, *recorder.divergence(), *unsettled, *walked]
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
        timing: dict[str, Any] = {**spent, "rounds": summary["rounds"] - first}
        timing["executor"] = trainer.executor_name
        timing["peak_memory_bytes"] = peak_memory_bytes()
        if setup.reuse:
            timing |= {"passes_taken": setup.reuse.taken, "passes_made": setup.reuse.made}
        write_artifacts(folder.path, setup, resolved, log, state, summary, timing)
    recorder.report("end", round=summary["rounds"] - 1)
    return Run(folder.path if folder else None, summary, log, setup.scenario, spent)


def has_ended(setup: Setup, saved: Checkpoint) -> bool:
    """Is the checkpoint that of the last round?"""
    return saved.g == setup.scenario.rounds - 1 or bool(saved.facts.get("ended"))


def kept_run(setup: Setup, folder: RunFolder, saved: Checkpoint) -> Run:
    """A run that had ended before: nothing is computed again."""
    log = new_log(setup)
    with refusing_other_versions():
        log.restore(saved.tables)
    setup.add_presence(log)
    summary = read_summary(folder.path / "summary.json")
    return Run(folder.path, summary, log, setup.scenario)
