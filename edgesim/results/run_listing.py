"""What runs and sweeps lie below a folder, and how far each of them is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from edgesim.errors import ResultsError, counted
from edgesim.records.checkpoint.run_checkpoint import UNREADABLE, RunFolder, reason_of
from edgesim.results.flat_scenario import FlatScenario, chosen_keys, flatten
from edgesim.results.run_files import read_json, read_scenario
from edgesim.results.run_search import find_runs
from edgesim.results.summary_file import read_summary
from edgesim.results.sweep_file import DONE, point_status, sweep_points
from fl.regular_files import open_regular
from fl.stored_files import read_sealed_arrays

FINISHED, RUNNING, SWEEP = "finished", "running", "sweep"


@dataclass(frozen=True)
class ListedRun:
    """A run or a sweep.

    Args:
        folder: of it.
        scheme: label of the scheme or method; for a sweep ``sweep`` and the scenario's name.
        seed: as text; of a sweep the number of seeds.
        rounds: that have ended, or that are planned where the run has ended.
        accuracy: the last one that is known.
        state: finished, running, interrupted at round n of N, or how many points are done.
        changed_at: when something was written there for the last time.
        keys: key -> text, of the keys in which runs of one scheme differ; of a sweep what it
            varies.
        scenario: flat; empty for a sweep.
        name: of the scenario.
    """

    folder: Path
    scheme: str
    state: str
    changed_at: datetime
    seed: str = ""
    rounds: int | None = None
    accuracy: float | None = None
    keys: dict[str, str] = field(default_factory=dict)
    scenario: FlatScenario = field(default_factory=dict)
    name: str = ""


def list_runs(place: Path) -> list[ListedRun]:
    """Sweeps and runs in or below a folder; the points of a sweep only where it is the folder.

    Raises:
        ResultsError: it is no folder, or there is nothing below it.
    """
    found = find_runs([place])
    inside = [sweep / "points" for sweep in found.sweeps if sweep.resolve() != place.resolve()]
    folders = sorted(
        folder
        for folder in (*found.finished, *found.unfinished)
        if not any(folder.is_relative_to(points) for points in inside)
    )
    runs = [_listed(folder) for folder in folders]
    return [*map(_listed_sweep, found.sweeps), *_with_keys(runs)]


def _listed(folder: Path) -> ListedRun:
    scenario: dict[str, Any] = {}
    damage = ""
    try:
        scenario = read_scenario(folder / "scenario.yaml")[1]
    except ResultsError as error:
        damage = f"damaged: {error}"
    scheme = str(scenario.get("scheme") or _method_name(scenario) or folder.name)
    seed = str(scenario.get("seed", ""))
    name, flat = str(scenario.get("name", "")), flatten(scenario)
    listed = ListedRun(folder, scheme, "", _changed_at(folder), seed, scenario=flat, name=name)
    try:
        if (folder / "summary.json").is_file():
            summary = read_summary(folder / "summary.json")
            accuracy = summary.get("final_accuracy")
            return replace(
                listed, state=damage or FINISHED, rounds=summary["rounds"], accuracy=accuracy,
                scheme=summary["scheme"], seed=str(summary["seed"]),
            )  # fmt: skip
        if damage and (folder / "scenario.yaml").exists():  # older runs have it at their end only
            return replace(listed, state=damage)
        return _unfinished(listed, scenario)
    except ResultsError as error:
        return replace(listed, state=f"damaged: {error}")
    except UNREADABLE as error:
        return replace(listed, state=f"damaged: state.safetensors: {reason_of(error)}")


def _method_name(scenario: Any) -> Any:
    """The value of learning.method.name; None where a foreign file has another form."""
    for key in ("learning", "method", "name"):
        scenario = scenario.get(key) if isinstance(scenario, dict) else None
    return scenario


def _unfinished(listed: ListedRun, scenario: dict[str, Any]) -> ListedRun:
    checkpoint = listed.folder / "checkpoint"
    facts: dict[str, Any] = {}
    for file in RunFolder(listed.folder).states:  # none before the first round has ended
        with suppress(FileNotFoundError):
            facts = read_sealed_arrays(file)[1]
            break
    done, accuracy = int(facts.get("g", -1)) + 1, facts.get("accuracy")
    planned = facts.get("rounds", scenario.get("rounds", "?"))
    state = RUNNING if _is_locked(checkpoint / "lock") else "interrupted"
    return replace(
        listed,
        state=f"{state} at round {done} of {scenario.get('rounds', planned)}",
        rounds=done,
        accuracy=None if accuracy is None else float(accuracy),
    )


def _listed_sweep(folder: Path) -> ListedRun:
    try:
        content, points = read_json(folder / "sweep.json"), sweep_points(folder)
    except ResultsError as error:
        return ListedRun(folder, SWEEP, f"damaged: {error}", _changed_at(folder))
    counts = Counter(point_status(folder, each) for each in points)
    done = counts.pop(DONE, 0)
    rest = ", ".join(f"{count} {status}" for status, count in counts.items())
    state = f"{done} of {counted(len(points), 'point')} done{f', {rest}' if rest else ''}"
    if _is_locked(folder / "lock"):
        state = f"{RUNNING}, {state}"
    varied: dict[str, list[str]] = {}
    for point in points:
        for key, text in (point.get("values") or {}).items():
            varied.setdefault(key, [])
            varied[key] += [text] if text not in varied[key] else []
    seeds = len({point.get("seed") for point in points})
    return ListedRun(
        folder,
        f"{SWEEP} of {content.get('name', '')}",
        state,
        _changed_at(folder),
        seed=counted(seeds, "seed"),
        keys={key: f"{len(texts)} values" for key, texts in varied.items()},
    )


def _with_keys(runs: Sequence[ListedRun]) -> list[ListedRun]:
    """The runs, each with what tells it from the others of its scheme and scenario."""
    groups: dict[tuple[str, str], list[ListedRun]] = {}
    for run in runs:
        groups.setdefault((run.name, run.scheme), []).append(run)
    keys = {
        name: [key for key in chosen_keys([run.scenario for run in group]) if key != "rounds"]
        for name, group in groups.items()
    }
    return [
        replace(run, keys={key: run.scenario[key] for key in own if key in run.scenario})
        for run in runs
        for own in [keys[run.name, run.scheme]]
    ]


def _changed_at(folder: Path) -> datetime:
    names = ("summary.json", "sweep.json", "scenario.yaml")
    times = [0.0]
    for file in (*(folder / name for name in names), *RunFolder(folder).states):
        with suppress(OSError):
            times.append(file.stat().st_mtime)
    return datetime.fromtimestamp(max(times))


def _is_locked(path: Path) -> bool:
    """Does another process hold this lock, where the system has flock?"""
    try:
        import fcntl

        with open_regular(path) as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (ImportError, OSError):
        return False
    return False
