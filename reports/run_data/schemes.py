"""Sorts runs into schemes: the runs of one scheme differ in their seed only."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from reports.run_data.liu_claims import ROLE_ORDER, role_of
from reports.run_data.load_runs import ReportError, Run, load_run
from reports.run_data.swept_keys import Axis, Flat, axis, flatten, short_names, telling, words

__all__ = ["MOST_SERIES", "Scheme", "axes_of", "flatten", "load_schemes", "slice_of"]
MOST_SERIES = 8  # lines that a figure still shows apart


@dataclass(frozen=True, eq=False)
class Scheme:
    """The runs of one scheme, ordered by seed. ``role`` is its place in Liu et al., Table I, if it has one.

    series: the label without the numeric keys that were swept.     values: the resolved scenario, key -> text.
    numbers: the numeric keys that tell it from others of its label -> text.
    """

    label: str
    role: str | None
    runs: tuple[Run, ...]
    series: str = ""
    values: Flat = field(default_factory=dict)
    numbers: Flat = field(default_factory=dict)

    @property
    def first(self) -> Run:
        return self.runs[0]

    @property
    def threshold_s(self) -> float | None:
        return self.first.threshold_s


def load_schemes(folders: Sequence[Path], listed: Collection[Path] = ()) -> list[Scheme]:
    """Read the runs and group them by configuration: schemes in the order of Liu et al., then by label.

    listed: resolved folders that a sweep lists; of runs with the same scheme and seed, others give way to them.

    Raises:
        ReportError: runs with different target accuracies, or two runs of one scheme with the same seed.
    """
    runs = [load_run(folder) for folder in folders]
    _same_targets(runs)
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        config = json.dumps(sorted(flatten(run.scenario).items()))
        groups.setdefault((run.summary["scheme"], run.summary["scenario"], config), []).append(run)
    ordered = sorted((_current(group, listed) for group in groups.values()), key=_place)
    named = _names([group[0] for group in ordered])
    schemes = [_scheme(group, *name) for group, name in zip(ordered, named, strict=True)]
    return sorted(schemes, key=partial(_by_number, axes_of(schemes)))


def axes_of(schemes: Sequence[Scheme]) -> list[Axis]:
    """The numeric keys in which schemes of one label differ, in the order of the scenario."""
    keys = dict.fromkeys(key for scheme in schemes for key in scheme.numbers)
    names = short_names(keys)
    texts = {
        key: [scheme.values[key] for scheme in schemes if key in scheme.values] for key in keys
    }
    made = [axis(key, texts[key], names[key]) for key in keys]
    return [each for each in made if each is not None]


def slice_of(schemes: list[Scheme], axes: Sequence[Axis]) -> tuple[list[Scheme], str]:
    """At most `MOST_SERIES` schemes for figures with a line each, and what was chosen: "" where all are shown.

    Of a sweep those at the middle value of every axis.
    """
    if len(schemes) <= MOST_SERIES:
        return schemes, ""
    kept, chosen = schemes, []
    for each in axes:
        values = sorted(
            {number for scheme in kept if (number := each.of(scheme.values)) is not None}
        )
        if len(values) > 1:
            middle = values[(len(values) - 1) // 2]
            kept = [scheme for scheme in kept if each.of(scheme.values) in (middle, None)]
            chosen.append(f"{each.name} {middle:g} {each.unit}".rstrip())
    if len(kept) > MOST_SERIES:
        chosen.append(f"the first {MOST_SERIES} of {len(kept)} schemes")
    if len({scheme.series for scheme in kept}) == len(
        kept
    ):  # what they share need not be said in every label
        kept = [replace(scheme, label=scheme.series) for scheme in kept]
    return kept[:MOST_SERIES], ", ".join(chosen)


def _current(group: list[Run], listed: Collection[Path]) -> list[Run]:
    """Without the runs that a listed one of the same seed replaces."""
    is_listed = [run.folder.resolve() in listed for run in group]
    replaced = {run.seed for run, yes in zip(group, is_listed, strict=True) if yes}
    return [
        run for run, yes in zip(group, is_listed, strict=True) if yes or run.seed not in replaced
    ]


def _scheme(group: list[Run], label: str, series: str, numbers: Flat) -> Scheme:
    runs = sorted(group, key=lambda run: run.seed)
    for one, other in pairwise(runs):
        if one.seed == other.seed:
            raise ReportError(
                f'{one.folder} and {other.folder} are the same scheme "{label}" with the same seed {one.seed}; '
                "give one of them."
            )
    role = role_of(runs[0].summary["method"], runs[0].summary["solver"])
    return Scheme(label, role, tuple(runs), series, flatten(runs[0].scenario), numbers)


def _by_number(axes: Sequence[Axis], scheme: Scheme) -> tuple:
    """Within a series by its numbers, those without one last; Python's sort leaves the rest in place."""
    rank = ROLE_ORDER.index(scheme.role) if scheme.role else len(ROLE_ORDER)
    numbers = [each.of(scheme.values) if each.key in scheme.numbers else None for each in axes]
    return rank, scheme.series, tuple(math.inf if number is None else number for number in numbers)


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
    return (
        rank,
        summary["scheme"],
        summary["scenario"],
        json.dumps(sorted(flatten(group[0].scenario).items())),
    )


def _names(firsts: Sequence[Run]) -> list[tuple[str, str, Flat]]:
    """(label, series, numbers): the schemes' own labels; where several share one, what tells them apart is added."""
    flats = [flatten(run.scenario) for run in firsts]
    kinds = [(str(run.summary["scheme"]), str(run.summary["scenario"])) for run in firsts]
    told = {
        kind: telling([flat for flat, own in zip(flats, kinds, strict=True) if own == kind])
        for kind in set(kinds)
    }
    short = short_names(
        dict.fromkeys(key for keys in told.values() for key in (*keys[0], *keys[1]))
    )
    names = []
    for flat, (scheme, scenario) in zip(flats, kinds, strict=True):
        by_word, by_number = told[scheme, scenario]
        several = len({kind for kind in told if kind[0] == scheme}) > 1
        parts = [scenario] * several + words(flat, by_word, short)
        series = f"{scheme} ({', '.join(parts)})" if parts else scheme
        parts += words(flat, by_number, short)
        label = f"{scheme} ({', '.join(parts)})" if parts else scheme
        names.append((label, series, {key: flat[key] for key in by_number if key in flat}))
    return names
