"""Schemes of what a user holds in Python: folders, runs, lists of them, or names for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from dataclasses import replace
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

from edgesim.errors import ResultsError
from edgesim.results.finished_run import FinishedRun
from edgesim.results.run_search import RunFolders, find_runs
from edgesim.scenario.documents.yaml_text import read_text
from reports.run_data.missing_runs import (
    keys_linked_by,
    keys_swept_by,
    listed_folders,
    missing_runs,
    nothing_to_report,
)
from reports.run_data.scheme_grouping import Scheme, group_runs, load_schemes

GivenRuns = Any  # a folder, a run (with a folder, or of simulate), many, or a dict
NO_RUNS = "No runs are given{}; give a folder, a run of edgesim.simulate, or many."


def schemes_of(runs: GivenRuns) -> list[Scheme]:
    """The schemes of some runs, as a report would group them.

    Args:
        runs: a folder of a run, of runs or of a sweep; a run as `edgesim.simulate` returns it; a
            list of these; or a dict from display names to one of these, in the order to draw.

    Raises:
        ResultsError: no runs, nothing finished there, a broken run, or a name for several schemes.
    """
    given = [runs] if _is_single(runs) else list(runs)
    if not given:
        raise ResultsError(NO_RUNS.format(""))
    if isinstance(runs, Mapping):
        for name, own in runs.items():
            if isinstance(own, Sized) and not len(own):
                raise ResultsError(NO_RUNS.format(f' for "{name}"'))
        return [_named(str(name), schemes_of(own)) for name, own in runs.items()]
    places: list[Path] = []
    kept: list[FinishedRun] = []
    for one in given:
        if (place := _place(one)) is not None:
            places.append(place)
        else:
            kept.append(_in_memory(one, len(kept)))
    if kept and places:
        raise ResultsError("Some of these runs are kept in memory and some in folders; plot apart.")
    if kept:
        return group_runs(kept, [run.folder.resolve() for run in kept])  # as they are given
    found = _given_alone(find_runs(places), given)
    if not found.finished:
        raise ResultsError(nothing_to_report(places, missing_runs(found)))
    return found_schemes(found)


def _given_alone(found: RunFolders, given: list[Any]) -> RunFolders:
    """Without the runs that lie beside those of loaded results, as those of an earlier sweep."""
    loaded = [one for one in given if hasattr(one, "folders")]
    if not loaded:
        return found
    others = [place for one in given if not hasattr(one, "folders") and (place := _place(one))]
    asked = [*find_runs(others).finished, *chain(*(one.folders for one in loaded))]
    kept = {folder.resolve() for folder in asked}
    return found._replace(finished=[each for each in found.finished if each.resolve() in kept])


def _place(one: Any) -> Path | None:
    """The folder that is given, or that of a run or of results; None: kept in memory."""
    folder = one if isinstance(one, str | PathLike) else getattr(one, "folder", None)
    return None if folder is None else Path(folder)


def found_schemes(found: RunFolders) -> list[Scheme]:
    """The schemes of the finished runs that were found, with what sweeps say of them."""
    listed, linked = listed_folders(found), keys_linked_by(found)
    return load_schemes(found.finished, listed, linked, keys_swept_by(found))


def _is_single(runs: GivenRuns) -> bool:
    is_run = hasattr(runs, "folder") or hasattr(runs, "rounds")
    return is_run or isinstance(runs, str | PathLike) or not isinstance(runs, Iterable)


def _named(name: str, schemes: list[Scheme]) -> Scheme:
    if len(schemes) > 1:
        labels = ", ".join(scheme.label for scheme in schemes)
        raise ResultsError(f'The name "{name}" is given to several schemes ({labels}); give one.')
    return replace(schemes[0], label=name, series=name)


def _in_memory(run: Any, position: int) -> FinishedRun:
    """A run without a folder: its summary, scenario and tables are attributes."""
    tables = ("rounds", "device_rounds", "spans")
    if not all(hasattr(run, name) for name in ("summary", "scenario", *tables)):
        what = type(run).__name__
        raise ResultsError(
            f"A {what} is no run; give a folder, a run of edgesim.simulate, or many."
        )
    content = {name: getattr(run, name) for name in (*tables, "scores", "measures")}
    seed = run.summary["seed"]
    place = Path(f"(in memory, run {position + 1}, seed {seed})")
    text = run.scenario.to_yaml(seed=seed)
    scenario = read_text(text, str(place)).tree
    return FinishedRun(place, run.summary, scenario, text, **content, partition=None, devices=None)
