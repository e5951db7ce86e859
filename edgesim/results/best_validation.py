"""Choice among the points of a sweep by validation accuracy, which never looks at test data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgesim.errors import ResultsError
from edgesim.results.sweep_file import point_folder, point_name, sweep_points
from edgesim.scenario.yaml_text import scalar, write_text
from edgesim.tables.table_reading import read_table

MEASURE = "validation_accuracy"
LAST_SHARE = 0.25  # of a run's evaluations, which are averaged
RULE = (
    "the best mean over the seeds of the validation accuracy, averaged over the last quarter of a "
    "run's evaluations; of equally good ones the first"
)


@dataclass(frozen=True)
class Candidate:
    """The values of some swept keys, and the validation accuracy with them.

    values: key -> its value as text.     score: by RULE, in [0, 1].     seeds: runs in the mean.
    """

    values: dict[str, str]
    score: float
    seeds: int


@dataclass(frozen=True)
class Choice:
    """What was chosen for a scheme; its candidates are in the order of the sweep."""

    label: str
    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> Candidate:
        return max(self.candidates, key=lambda each: each.score)

    @property
    def edges(self) -> list[str]:
        """Keys whose chosen value is the smallest or largest number of several: widen the grid."""
        return [key for key in self.best.values if self._on_edge(key)]

    def _on_edge(self, key: str) -> bool:
        given = [scalar(each.values[key]) for each in self.candidates]
        numbers = [value for value in given if isinstance(value, int | float)]
        if len(numbers) < len(given) or len(set(numbers)) < 2:
            return False
        return scalar(self.best.values[key]) in (min(numbers), max(numbers))


def choose(sweep: Path) -> list[Choice]:
    """For every scheme of a finished sweep the point with the best validation accuracy, by RULE.

    Args:
        sweep: its folder.

    Raises:
        ResultsError: a point is missing or failed, or a run held nothing out.
    """
    scores: dict[str, dict[tuple[tuple[str, str], ...], list[float]]] = {}
    for point in sweep_points(sweep):
        if point.get("status") != "done":
            name, status = point_name(point), point.get("status")
            raise ResultsError(
                f"{sweep}: {name} is {status}; --select needs every point, so run the sweep again."
            )
        values = tuple((point.get("values") or {}).items())
        of_scheme = scores.setdefault(str(point["label"]), {})
        of_scheme.setdefault(values, []).append(validation_score(point_folder(sweep, point)))
    return [
        Choice(
            label,
            tuple(
                Candidate(dict(values), math.fsum(found) / len(found), len(found))
                for values, found in candidates.items()
            ),
        )
        for label, candidates in scores.items()
    ]


def validation_score(run: Path) -> float:
    """Mean validation accuracy over the last quarter of a run's evaluations, one at least.

    Raises:
        ResultsError: the run held nothing out.
    """
    table = read_table(run, "measures")
    found = table.loc[table["name"] == MEASURE, "value"].tolist()
    if not found:
        raise ResultsError(
            f"{run} has no {MEASURE}; hold samples out, such as learning.validation=0.2."
        )
    last = found[-max(1, int(LAST_SHARE * len(found))) :]
    return math.fsum(last) / len(last)


def overlay(choices: Sequence[Choice], base: str, of_schemes: bool) -> str:
    """A scenario file that lays the chosen values over another one, as YAML.

    Args:
        choices: one per scheme.
        base: path of the other file, as its key ``base`` takes it.
        of_schemes: are they of the file's schemes? Else of the file itself.
    """
    chosen = {
        choice.label: {key: scalar(text) for key, text in choice.best.values.items()}
        for choice in choices
    }
    changes: dict[str, Any] = {"schemes": chosen} if of_schemes else next(iter(chosen.values()))
    content = {"base": base, **changes}
    return write_text(content)
