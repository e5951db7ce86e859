"""Runs grouped into schemes: the runs of one scheme differ in their seed only."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from edgesim.results.equal_runs import flat_without_targets, one_per_seed
from edgesim.results.finished_run import FinishedRun, read_run
from edgesim.results.flat_scenario import NONE, FlatScenario, flatten
from reports.run_data.missing_runs import ListedBy
from reports.run_data.scheme_labels import scheme_and_scenario, scheme_labels
from reports.run_data.scheme_order import GroupKey, in_order, role_of_runs
from reports.run_data.swept_keys import SweptKey, short_names, swept_key

# the band of a downlink without its own is the cell's, and then changes along with it
BANDS = ("network.bandwidth", "network.downlink.bandwidth")
NO_SWEEPS: Mapping[Path, ListedBy] = {}
MOST_SERIES = 8  # lines that a figure still shows apart


@dataclass(frozen=True, eq=False)
class Scheme:
    """The runs of one scheme, ordered by seed.

    role: which scheme of Liu et al. it is, if its scenario says so.
    series: the label without the numeric keys that were swept.
    values: the resolved scenario, key -> text.
    numbers: the numeric keys that tell it from others of its label -> text.
    point: these numbers as words, "bandwidth 10 MHz".
    linked: groups of keys that its sweep changed together.
    listed_by: its sweep; None where there is none.
    """

    label: str
    role: str | None
    runs: tuple[FinishedRun, ...]
    series: str = ""
    values: FlatScenario = field(default_factory=dict)
    numbers: FlatScenario = field(default_factory=dict)
    point: str = ""
    linked: tuple[tuple[str, ...], ...] = ()
    listed_by: ListedBy | None = None

    @property
    def first(self) -> FinishedRun:
        return self.runs[0]

    @property
    def threshold_s(self) -> float | None:
        return self.first.threshold_s

    @property
    def untuned(self) -> str:
        """Why its accuracy is compared with nobody's, as its scenario says; "" where it may be.

        The first reason of its runs, of which some may be older than what their file says.
        """
        sections = (flatten({"of": run.scenario.get("report")}) for run in self.runs)
        reasons = (section.get("of.untuned", NONE) for section in sections)
        return next((reason for reason in reasons if reason != NONE), "")


def untuned_notes(schemes: Sequence[Scheme]) -> list[str]:
    """A sentence for each reason why the schemes' accuracies are no comparison."""
    reasons = dict.fromkeys(scheme.untuned for scheme in schemes if scheme.untuned)
    return [f"Not a comparison of accuracies: {reason}" for reason in reasons]


def load_schemes(
    folders: Sequence[Path],
    listed: Collection[Path] = (),
    linked: Sequence[tuple[str, ...]] = (),
    swept: Mapping[Path, ListedBy] = NO_SWEEPS,
) -> list[Scheme]:
    """Read the runs and group them by scenario.

    Schemes come as `reports.run_data.scheme_order.in_order` has them.

    Args:
        folders: folders of finished runs.
        listed: resolved folders that a sweep lists, in its order; of runs with the same scheme
            and seed, others give way to them.
        linked: groups of keys that a sweep changed together.
        swept: resolved folder -> the sweep that lists it.

    Raises:
        ResultsError: two runs of one scheme and seed.
    """
    return group_runs([read_run(folder) for folder in folders], listed, linked, swept)


def group_runs(
    runs: Sequence[FinishedRun],
    listed: Collection[Path] = (),
    linked: Sequence[tuple[str, ...]] = (),
    swept: Mapping[Path, ListedBy] = NO_SWEEPS,
) -> list[Scheme]:
    """`load_schemes` of runs that are read already."""
    groups: dict[GroupKey, list[FinishedRun]] = {}
    for run in _without_beginnings(runs, listed) if listed else runs:
        scenario = json.dumps(sorted(flat_without_targets(run.scenario).items()))
        groups.setdefault((*scheme_and_scenario(run), scenario), []).append(run)
    places = {folder: i for i, folder in enumerate(listed)}
    ordered = [_without_superseded(group, places) for group in in_order(groups, places)]
    sweeps = [swept.get(group[0].folder.resolve()) for group in ordered]
    named = scheme_labels([group[0] for group in ordered], sweeps)
    schemes = [
        replace(_scheme(group, *name), linked=tuple(linked), listed_by=sweep)
        for group, name, sweep in zip(ordered, named, sweeps, strict=True)
    ]
    keys = swept_keys(schemes)
    series = list(dict.fromkeys((scheme.role, scheme.series) for scheme in schemes))
    return sorted(schemes, key=lambda s: (series.index((s.role, s.series)), _place(s, keys)))


def swept_keys(schemes: Sequence[Scheme], apart: bool = False) -> list[SweptKey]:
    """The numeric keys in which schemes of one label differ, in the order of the scenario.

    Of keys that a sweep changed together, or of the two `BANDS`, only the first one is left, with
    the names of the others, unless they are wanted ``apart``.
    """
    keys = dict.fromkeys(key for scheme in schemes for key in scheme.numbers)
    names, made = short_names(keys), []
    for key in keys:
        texts = [scheme.values[key] for scheme in schemes if key in scheme.values]
        made.append(swept_key(key, texts, names[key]))
    found = [key for key in made if key is not None]
    for group in () if apart or not schemes else (*schemes[0].linked, BANDS):
        found = _merged(schemes, found, group)
    return found


def _merged(
    schemes: Sequence[Scheme], keys: list[SweptKey], group: Sequence[str]
) -> list[SweptKey]:
    """The keys with only the first of this group, where its value says those of the others."""
    together = sorted((key for key in keys if key.key in group), key=lambda k: group.index(k.key))
    if len(together) < 2:
        return keys
    first = together[0]
    tied = [key for key in tied_keys(schemes, keys, first) if key.key in group]
    if len(tied) < len(together) - 1:
        return keys
    axis = replace(first, tied=(*first.tied, *(key.name for key in tied)))
    return [axis if key is first else key for key in keys if key not in tied]


def tied_keys(
    schemes: Sequence[Scheme], keys: Sequence[SweptKey], along: SweptKey
) -> list[SweptKey]:
    """The keys that have one value at each value of another one, in every series."""
    tied = []
    for key in keys:
        found: dict[tuple[str, float | None], set[float | None]] = {}
        for scheme in schemes:
            place = scheme.series, along.of(scheme.values)
            found.setdefault(place, set()).add(key.of(scheme.values))
        if key.key != along.key and all(len(values) == 1 for values in found.values()):
            tied.append(key)
    return tied


def at_middle_value(
    schemes: list[Scheme], key: SweptKey, among: Sequence[Scheme] = ()
) -> tuple[list[Scheme], list[str]]:
    """The schemes at the middle number of a key, or of a series without numbers, and its text.

    All schemes and no text where there are not two values.

    Args:
        schemes: of a sweep.
        key: one of its keys.
        among: those of them whose numbers the middle one is of; empty: all.
    """
    numbers, wanted = (
        {key.of(scheme.values) for scheme in group} - {None} for group in (schemes, among)
    )
    if len(numbers) < 2:
        return schemes, []
    values = sorted(number for number in wanted or numbers if number is not None)
    middle = values[(len(values) - 1) // 2]
    with_number = {each.series for each in schemes if key.of(each.values) is not None}
    kept = [
        each
        for each in schemes
        if key.value_in(each.values) in (middle, None) or each.series not in with_number
    ]
    return kept, [key.text(middle)]


def few_schemes(schemes: list[Scheme], keys: Sequence[SweptKey]) -> tuple[list[Scheme], str]:
    """At most `MOST_SERIES` schemes for figures with a line each: those at the middle values.

    Returns:
        The schemes, and what was chosen: "" where all are shown.
    """
    if len(schemes) <= MOST_SERIES:
        return schemes, ""
    kept, chosen = schemes, []
    for key in keys:
        kept, text = at_middle_value(kept, key)
        chosen += text
    if len(kept) > MOST_SERIES:
        chosen.append(f"the first {MOST_SERIES} of {len(kept)} schemes")
    # values that all of them share need not be part of every label
    if len({scheme.series for scheme in kept}) == len(kept):
        kept = [replace(scheme, label=scheme.series) for scheme in kept]
    return kept[:MOST_SERIES], ", ".join(chosen)


def target_accuracies(schemes: Sequence[Scheme]) -> list[float]:
    """The target accuracies of all runs, smallest first; how far one got is read of its rounds."""
    runs = [run for scheme in schemes for run in scheme.runs]
    return sorted({float(target) for run in runs for target in run.summary["targets"]})


def _without_beginnings(runs: Sequence[FinishedRun], listed: Collection[Path]) -> list[FinishedRun]:
    """Without the runs beside a listed one from which it went on: fewer rounds, else the same."""
    kinds: list[tuple[tuple, int]] = []
    most: dict[tuple, int] = {}
    for run in runs:
        flat = flat_without_targets(run.scenario)
        length = int(flat.pop("rounds", run.summary["rounds"]))
        folder = run.folder.resolve()
        flat |= {"folder": str(folder.parent)}
        kind = (*scheme_and_scenario(run), run.seed, json.dumps(sorted(flat.items())))
        kinds.append((kind, length))
        if folder in listed:
            most[kind] = max(length, most.get(kind, 0))
    return [
        run
        for run, (kind, length) in zip(runs, kinds, strict=True)
        if length >= most.get(kind, 0) or run.folder.resolve() in listed
    ]


def _without_superseded(group: list[FinishedRun], listed: Collection[Path]) -> list[FinishedRun]:
    """Without the runs that a listed one of the same seed replaces."""
    is_listed = {run: run.folder.resolve() in listed for run in group}
    replaced = {run.seed for run in group if is_listed[run]}
    return [run for run in group if is_listed[run] or run.seed not in replaced]


def _scheme(
    group: list[FinishedRun], label: str, series: str, numbers: FlatScenario, point: str
) -> Scheme:
    runs = tuple(sorted(one_per_seed(label, group), key=lambda run: run.seed))
    values = flat_without_targets(runs[0].scenario)
    return Scheme(label, role_of_runs(runs), runs, series, values, numbers, point)


def _place(scheme: Scheme, keys: Sequence[SweptKey]) -> tuple:
    """Within a series by its numbers, schemes without one last; the rest stays as it is."""
    numbers = [key.of(scheme.values) if key.key in scheme.numbers else None for key in keys]
    return tuple(math.inf if number is None else number for number in numbers)
