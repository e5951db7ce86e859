"""Labels of schemes: that of their runs, where needed with the values that tell them apart."""

from __future__ import annotations

from collections.abc import Sequence

from edgesim.results.equal_runs import flat_without_targets
from edgesim.results.finished_run import FinishedRun
from edgesim.results.flat_scenario import FlatScenario
from reports.run_data.missing_runs import ListedBy
from reports.run_data.swept_keys import describe, distinguishing_keys, following_keys, short_names


def scheme_and_scenario(run: FinishedRun) -> tuple[str, str]:
    """Runs that differ in one of these are never of one scheme."""
    return str(run.summary["scheme"]), str(run.summary["scenario"])


def scheme_labels(
    firsts: Sequence[FinishedRun], sweeps: Sequence[ListedBy | None]
) -> list[tuple[str, str, FlatScenario, str]]:
    """(label, series, numbers, point): the runs' own labels, where needed with what differs."""
    flats = [flat_without_targets(run.scenario) for run in firsts]
    kinds = [scheme_and_scenario(run) for run in firsts]
    keys = {}
    for kind in dict.fromkeys(kinds):
        own = [i for i, each in enumerate(kinds) if each == kind]
        of_kind, by = [flats[i] for i in own], [sweeps[i] for i in own]
        keys[kind] = distinguishing_keys(of_kind, flats, _following(kind[0], of_kind, by))
    names = short_names(
        dict.fromkeys(key for words, numbers in keys.values() for key in (*words, *numbers))
    )
    labels = []
    for flat, (scheme, scenario) in zip(flats, kinds, strict=True):
        words, numbers = keys[scheme, scenario]
        several = len({kind for kind in keys if kind[0] == scheme}) > 1
        parts = [scenario] * several + describe(flat, words, names)
        series = f"{scheme} ({', '.join(parts)})" if parts else scheme
        point = describe(flat, numbers, names)
        label = f"{scheme} ({', '.join([*parts, *point])})" if parts or point else scheme
        known = {key: flat[key] for key in numbers if key in flat}
        labels.append((label, series, known, ", ".join(point)))
    return labels


def _following(
    label: str, flats: Sequence[FlatScenario], sweeps: Sequence[ListedBy | None]
) -> set[str]:
    """The keys that in every sweep of a scheme's runs follow from those that it varied.

    None where a run is in no sweep: what it was given, and what follows, nobody knows.
    """
    found = []
    for by in dict.fromkeys(sweeps):
        if by is None:
            return set()
        varied = [key.removeprefix(f"schemes.{label}.") for key in by.keys]
        own = [flat for flat, sweep in zip(flats, sweeps, strict=True) if sweep == by]
        found.append(following_keys(own, varied))
    return set.intersection(*found)
