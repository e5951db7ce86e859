"""A run whose folder holds rounds already: may it go on there, and with which of its rows?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from edgesim.errors import ResultsError, counted
from edgesim.records.checkpoint.run_checkpoint import Checkpoint
from edgesim.records.checkpoint.usable_folder import REPLACE, FolderError
from edgesim.records.run_tables.table_columns import Columns, as_list
from edgesim.results.flat_scenario import differing_keys, flatten, versions
from edgesim.results.run_files import read_scenario
from edgesim.runs.artifacts import versions as installed_versions
from edgesim.runs.fingerprint import result_digest
from edgesim.runs.round_observer import is_evaluated
from edgesim.runs.setup.checks_before_training import check_before_training
from edgesim.runs.setup.setup import Setup
from edgesim.scenario.documents.yaml_text import read_text

EVALUATED = ("loss", "accuracy", "accuracy_std")  # columns of rounds


def continuable(setup: Setup, path: Path) -> Callable[[Checkpoint], None]:
    """A check for `RunFolder.open`: may a checkpoint of another fingerprint be gone on from?

    It may where the two runs differ in the number of rounds only, and this one has more. No method
    and no part of the simulation knows how many rounds there will be, but by parameters that
    follow from it (`Method.by_length`) and are then parameters in which the two runs differ; where
    the scenario of the folder keeps them, the checkpoint gets a warning.

    Args:
        setup: of the run that is to go on.
        path: of the folder.
    """

    def check(saved: Checkpoint) -> None:
        before = saved.facts.get("rounds", saved.g + 1)
        if not is_same_run(setup, saved.facts, before):
            raise FolderError(f"{path} holds another run{_difference(setup, path)}; {REPLACE}")
        if setup.scenario.rounds < before:
            raise FolderError(
                f"{path} holds this run with {counted(before, 'round')}, and rounds is "
                f"{setup.scenario.rounds}; rounds can only be raised there, or {REPLACE}"
            )
        if setup.clock.overlapping and saved.g == before - 1:
            raise FolderError(
                f"{path} holds this run with {counted(before, 'round')}, at whose end the jobs at "
                f"work were interrupted (clock.mode {setup.scenario.clock.mode}); {REPLACE}"
            )
        check_before_training(setup)
        saved.warnings.extend(kept_lengths(setup, before))

    return check


def is_same_run(setup: Setup, facts: dict[str, Any], rounds: int) -> bool:
    """Would a setup, with so many rounds, make the run of whose last state these facts are?"""
    return result_digest(setup.with_rounds(rounds)) == facts.get("fingerprint")


def kept_lengths(setup: Setup, before: int) -> list[str]:
    """Warnings about parameters that are as they follow from the number of rounds before."""
    method, devices, now = setup.method, setup.task.devices, setup.scenario.rounds
    asked = min(method.participants or devices, devices)
    old, new = (
        method.by_length(each.scenario.method_rounds, asked)
        for each in (setup.with_rounds(before), setup)
    )
    return [
        f"learning.method.{name} stays {old[name]:g}, as for {counted(before, 'round')}; a run of "
        f"{counted(now, 'round')} from the start has {new[name]:g}"
        for name in old
        if getattr(method, name) == old[name] != new[name]
    ]


def _difference(setup: Setup, path: Path) -> str:
    """What tells the run of a folder from this one, as a part of a sentence; "" if not known."""
    try:
        there = read_scenario(path / "scenario.yaml")[1]
    except ResultsError:
        return ""
    here = read_text(setup.scenario.to_yaml(seed=setup.seed), "scenario").tree
    flats = [{"seed": str(each.get("seed"))} | flatten(each) for each in (there, here)]
    keys = [key for key in differing_keys(flats) if key != "rounds"]
    what = "its {} is {}, not {}"
    if not keys:
        flats = [versions(there), {**versions(there), **installed_versions()}]
        keys, what = differing_keys(flats), "it was made with {} {}, not {}"
    if not keys:
        return ": its data, or the user's own code, differ"
    old, new = (flat.get(keys[0], "not set") for flat in flats)
    more = f" (and {len(keys) - 1} more differ)" if len(keys) > 1 else ""
    return f": {what.format(keys[0], old, new)}{more}"


def without_unscheduled_scores(saved: Checkpoint, setup: Setup) -> Checkpoint:
    """A checkpoint without the evaluations that a run of so many rounds does not make.

    The last round is always evaluated: in a run that goes on, it may be none of ``evaluate.every``.
    """
    if saved.facts.get("ended"):  # by stop: no round follows
        return saved
    rounds = [block["rounds"] for block in saved.tables if "rounds" in block]
    ends_s = [0.0, *(float(time_s) for rows in rounds for time_s in rows["time_s"])]
    due = [is_evaluated(setup.scenario, g, *pair) for g, pair in enumerate(pairwise(ends_s))]
    return replace(
        saved,
        tables=[
            {name: _scheduled(name, rows, due) for name, rows in block.items()}
            for block in saved.tables
        ],
    )


def _scheduled(name: str, rows: Columns, of_rounds: list[bool]) -> Columns:
    due = [of_rounds[int(g)] for g in rows["round"]]
    if all(due) or name not in ("rounds", "scores", "measures"):
        return rows
    if name == "rounds":
        blank = {column: _where(due, rows[column]) for column in EVALUATED}
        return {**rows, **blank}
    return {
        column: [value for value, kept in zip(as_list(values), due, strict=True) if kept]
        for column, values in rows.items()
    }


def _where(due: list[bool], values: Any) -> list[float]:
    return [value if kept else math.nan for value, kept in zip(as_list(values), due, strict=True)]
