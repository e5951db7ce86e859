"""Several runs of one scenario and seed: one run where their targets differ, else an error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from edgesim.errors import ResultsError
from edgesim.results.flat_scenario import FlatScenario, flatten
from edgesim.results.summary_file import summary_row

TARGETS = "evaluate.targets"  # are read of the curves: they make no other run of a scenario


class SeededRun(Protocol):
    """A dataclass of a run, with the content of its summary.json."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def folder(self) -> Path: ...

    @property
    def seed(self) -> int: ...

    @property
    def summary(self) -> dict[str, Any]: ...


OneRun = TypeVar("OneRun", bound=SeededRun)


def flat_without_targets(scenario: dict[str, Any]) -> FlatScenario:
    """What makes a run another one than others, as `flatten` gives it."""
    return {key: text for key, text in flatten(scenario).items() if key != TARGETS}


def one_per_seed(label: str, runs: Iterable[OneRun]) -> list[OneRun]:
    """The runs of one scheme and scenario, in their order, with the targets of all of a seed.

    Args:
        label: of the scheme.
        runs: which differ in seed and targets only.

    Raises:
        ResultsError: two runs of one seed with the same targets, or with other figures.
    """
    given: dict[int, list[OneRun]] = {}
    for run in runs:
        for same in given.setdefault(run.seed, []):
            equal = same.summary["targets"].keys() == run.summary["targets"].keys()
            if equal or _figures(same) != _figures(run):
                raise ResultsError(
                    f'{same.folder} and {run.folder} are the same scheme "{label}" with the same '
                    f"seed {run.seed}; give one of them."
                )
        given[run.seed].append(run)
    return [_with_all_targets(same) for same in given.values()]


def _with_all_targets(runs: list[OneRun]) -> OneRun:
    targets = {name: cost for run in runs for name, cost in run.summary["targets"].items()}
    return replace(runs[0], summary={**runs[0].summary, "targets": targets})


def _figures(run: SeededRun) -> dict[str, float | int | None]:
    return summary_row({**run.summary, "targets": {}})
