"""Choice among the points of a sweep by validation accuracy, which never looks at test data."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from edgesim.errors import ResultsError
from edgesim.results.flat_scenario import si_column
from edgesim.results.sweep_file import DONE, INFEASIBLE, point_folder, point_name, sweep_points
from edgesim.scenario.base_file import base_of, read_with_base
from edgesim.scenario.documents.document import Document, key_path
from edgesim.scenario.documents.layers import lay_over
from edgesim.scenario.documents.scalars import write_text
from edgesim.scenario.documents.yaml_text import read_text
from edgesim.scenario.overrides import parse_override, resolve
from edgesim.tables.table_reading import read_table

SELECTED = "best-validation.yaml"  # in the sweep's folder
MEASURE = "validation_accuracy"
OF_TUNING = ("learning.validation", "seed")  # keys of a tuning alone
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
        numbers, _ = si_column(key, [each.values[key] for each in self.candidates])
        if len(set(numbers)) < 2 or not all(isinstance(each, int | float) for each in numbers):
            return False
        return numbers[self.candidates.index(self.best)] in (min(numbers), max(numbers))


def choose(sweep: Path) -> list[Choice]:
    """For every scheme of a finished sweep the point with the best validation accuracy, by RULE.

    Args:
        sweep: its folder.

    Raises:
        ResultsError: a point is missing or failed, or a run held nothing out.
    """
    scores: dict[str, dict[tuple[tuple[str, str], ...], list[float]]] = {}
    for point in sweep_points(sweep):
        if point.get("status") != DONE:
            name, status = point_name(point), point.get("status")
            again = status != INFEASIBLE  # which it would be again
            cure = "run the sweep again" if again else "leave its values out"
            raise ResultsError(
                f"{sweep}: {name} is {status}; --select needs every point, so {cure}."
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
        cure = "hold samples out, such as learning.validation=0.2"
        raise ResultsError(f"{run} has no {MEASURE}; {cure}.")
    last = found[-max(1, int(LAST_SHARE * len(found))) :]
    return math.fsum(last) / len(last)


def chosen_scenario(
    choices: Sequence[Choice],
    source: Path,
    sweep: Path,
    of_schemes: bool,
    changes: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The `overlay` on the base of the file that was swept, or on the file itself.

    Args:
        choices: one per scheme.
        source: the file.
        sweep: folder in which the overlay will lie.
        of_schemes: are the choices those of the file's schemes? Else of the file itself.
        changes: key -> value as text, of the command line or the sweep of the base, for all points
            of the file or of a scheme alike.

    Raises:
        ResultsError: a scheme is of the command line alone or was replaced there, the command line
            removed those of the file, or the base would add keys of its own to a mapping.
    """
    below = base_of(source)
    # links are followed but for the file's own, whose folder is what its paths are relative to
    base = Path(os.path.relpath(below.parent.resolve() / below.name, sweep.resolve())).as_posix()
    document, whole = read_with_base(below)[0], read_with_base(source)[0]
    if whole.tree.get("schemes") and not of_schemes:
        problem = "which no file over it can remove; remove them there and sweep again"
        raise ResultsError(f"{source} has schemes, {problem}, which runs no point twice.")
    for label in (choice.label for choice in choices if of_schemes):
        # the resolved file of a run has its scheme's label alone
        if label not in (whole.tree.get("schemes") or {}) and label != whole.tree.get("scheme"):
            problem = "write it there and sweep again, which runs no point twice"
            raise ResultsError(f'{source} has no scheme "{label}"; {problem}.')
    blocks = {"schemes", *(f"schemes.{choice.label}" for choice in choices)}
    for key in (*changes, *(key for choice in choices for key in choice.best.values)):
        if key in blocks:
            problem = f"the sweep replaced {key}, which no file over {source} can"
            cure = "write it there and sweep again, which runs no point twice"
            raise ResultsError(f"{problem}; {cure}.")
    choices = [
        _with_changes(choice, changes, whole.tree.get("schemes") or {}) for choice in choices
    ]
    text = overlay(choices, base, of_schemes, _own_blocks(whole, document))
    _check(choices, document, text)
    return text


def _with_changes(choice: Choice, changes: Mapping[str, str], labels: Iterable[str]) -> Choice:
    """The best candidate alone, with what was changed for all but `OF_TUNING`.

    Args:
        choice: for a scheme.
        changes: see `chosen_scenario`.
        labels: of the file's schemes, whose own keys are left out where, as v1.5 beside v1, they
            begin as those of this scheme.
    """
    own, best = f"schemes.{choice.label}.", choice.best
    others = tuple(f"schemes.{label}." for label in labels if label.startswith(f"{choice.label}."))
    kept = {key: text for key, text in changes.items() if key.removeprefix(own) not in OF_TUNING}
    values = {
        key: text for key, text in (kept | best.values).items() if not f"{key}.".startswith(others)
    }
    return replace(choice, candidates=(replace(best, values=values),))


def _own_blocks(whole: Document, base: Document) -> dict[str, dict[str, Any]]:
    """Label -> block, without its sweep, of the schemes that a file has and its base has not."""
    known, blocks = (each.tree.get("schemes") or {} for each in (base, whole))
    return {
        label: {key: value for key, value in (block or {}).items() if key.split(".")[0] != "sweep"}
        for label, block in blocks.items()
        if label not in known
    }


def overlay(
    choices: Sequence[Choice],
    base: str,
    of_schemes: bool,
    own: Mapping[str, Mapping[str, Any]] | None = None,
) -> str:
    """A scenario file that lays the chosen values over another one, as YAML.

    Args:
        choices: one per scheme, or per method.
        base: path of the other file, as its key ``base`` takes it.
        of_schemes: are they of the file's schemes? Else of the file itself, in which several
            methods become schemes.
        own: label -> block of the schemes that the other file lacks.
    """
    chosen = {
        choice.label: {key: _read(text, key) for key, text in _own_values(choice).items()}
        for choice in choices
    }
    for label, block in (own or {}).items() if of_schemes else ():
        if label in chosen:
            rest = {key: value for key, value in block.items() if key not in chosen[label]}
            chosen[label] = rest | chosen[label]  # what is chosen comes last, and so wins
    schemes = of_schemes or len(chosen) > 1
    changes: dict[str, Any] = {"schemes": chosen} if schemes else next(iter(chosen.values()))
    return write_text({"base": base, **changes})


def _own_values(choice: Choice) -> dict[str, str]:
    """The chosen values by their keys in the scheme, as ``schemes.b.rounds`` is rounds in b.

    Those of all schemes win over them, as on the command line.
    """
    own, values = f"schemes.{choice.label}.", choice.best.values
    inside = {key.removeprefix(own): text for key, text in values.items() if key.startswith(own)}
    return inside | {key: text for key, text in values.items() if not key.startswith("schemes.")}


def _read(text: str, key: str) -> Any:
    return read_text(text, key, numbered=False).tree


def _check(choices: Sequence[Choice], base: Document, text: str) -> None:
    """Refuse an overlay in which a chosen mapping is mixed with what its base has there."""
    changed = base.copy()
    patch = read_text(text, SELECTED)
    del patch.tree["base"]
    lay_over(changed, patch)
    for choice in choices:
        label = choice.label if choice.label in patch.tree.get("schemes", {}) else None
        values = _own_values(choice)
        overrides = [parse_override(f"{key}={value}") for key, value in values.items()]
        # what was chosen within a mapping that was given stands in it
        written, ran = resolve(changed, (), label), resolve(changed, overrides, label)
        for key, value in values.items():
            if written.find(key_path(key)) != ran.find(key_path(key)):
                raise ResultsError(
                    f"{choice.label}: no file over a base can replace {key} by {value}, since keys "
                    "that the base has there stay; copy the values that were chosen."
                )
