"""Sorts runs into schemes: the runs of one scheme differ in their seed only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from reports.load import ReportError, Run, load_run
from reports.paper import ROLE_ORDER, role_of

NOT_CONFIG = frozenset({"name", "scheme", "schemes", "seed", "provenance"})


@dataclass(frozen=True, eq=False)
class Scheme:
    """The runs of one scheme, ordered by seed. ``role`` is its place in Liu et al., Table I, if it has one."""

    label: str
    role: str | None
    runs: tuple[Run, ...]

    @property
    def first(self) -> Run:
        return self.runs[0]

    @property
    def threshold_s(self) -> float | None:
        return self.first.threshold_s


def load_schemes(folders: Sequence[Path]) -> list[Scheme]:
    """Read the runs and group them by configuration: schemes in the order of Liu et al., then by label.

    Raises:
        ReportError: runs with different target accuracies, or two runs of one scheme with the same seed.
    """
    runs = [load_run(folder) for folder in folders]
    _same_targets(runs)
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        config = json.dumps(sorted(flatten(run.scenario).items()))
        groups.setdefault((run.summary["scheme"], run.summary["scenario"], config), []).append(run)
    ordered = sorted(groups.values(), key=_place)
    labels = _labels([group[0] for group in ordered])
    return [_scheme(label, group) for label, group in zip(labels, ordered, strict=True)]


def _scheme(label: str, group: list[Run]) -> Scheme:
    runs = sorted(group, key=lambda run: run.seed)
    for one, other in pairwise(runs):
        if one.seed == other.seed:
            raise ReportError(
                f'{one.folder} and {other.folder} are the same scheme "{label}" with the same seed {one.seed}; '
                "give one of them."
            )
    return Scheme(label, role_of(runs[0].summary["method"], runs[0].summary["solver"]), tuple(runs))


def _same_targets(runs: Sequence[Run]) -> None:
    first = runs[0]
    for run in runs[1:]:
        if set(run.summary["targets"]) != set(first.summary["targets"]):
            raise ReportError(
                f"{first.folder} and {run.folder} have different target accuracies "
                f"({_listed(first)} and {_listed(run)}); report them separately."
            )


def _listed(run: Run) -> str:
    return ", ".join(sorted(run.summary["targets"], key=float)) or "none"


def _place(group: list[Run]) -> tuple:
    summary = group[0].summary
    role = role_of(summary["method"], summary["solver"])
    rank = ROLE_ORDER.index(role) if role else len(ROLE_ORDER)
    return rank, summary["scheme"], summary["scenario"], json.dumps(sorted(flatten(group[0].scenario).items()))


def flatten(scenario: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """The scenario as {"network.bandwidth": "200 MHz", ...}, without name, scheme, seed and provenance."""
    flat: dict[str, str] = {}
    for key, value in scenario.items():
        if not prefix and key in NOT_CONFIG:
            continue
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = str(value)
    return flat


def _labels(firsts: Sequence[Run]) -> list[str]:
    """The schemes' own labels; where several share one, what tells them apart is added."""
    labels = [str(run.summary["scheme"]) for run in firsts]
    return [
        label if labels.count(label) == 1 else f"{label} ({_difference(run, twins)})"
        for label, run in zip(labels, firsts, strict=True)
        for twins in [[other for other in firsts if other.summary["scheme"] == label]]
    ]


def _difference(run: Run, twins: list[Run]) -> str:
    """Scenario name and up to two settings in which the run differs from others of the same label."""
    parts = [str(run.summary["scenario"])] if len({twin.summary["scenario"] for twin in twins}) > 1 else []
    flats = [flatten(twin.scenario) for twin in twins]
    mine = flatten(run.scenario)
    keys = sorted({key for flat in flats for key in flat if any(other.get(key) != flat[key] for other in flats)})
    if not parts or len(keys) <= 2:
        parts += [f"{key.rpartition('.')[2]} {mine.get(key, 'unset')}" for key in keys[:2]]
    if len(keys) > 2:
        parts.append(f"no. {twins.index(run) + 1}")
    return ", ".join(parts)
