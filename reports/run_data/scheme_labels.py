"""Labels of schemes: that of their runs, where needed with the values that tell them apart."""

from __future__ import annotations

from collections.abc import Sequence

from edgesim.results.equal_runs import flat_without_targets
from edgesim.results.finished_run import FinishedRun
from edgesim.results.flat_scenario import FlatScenario
from reports.run_data.missing_runs import ListedBy
from reports.run_data.swept_keys import describe, distinguishing_keys, short_names


def scheme_and_scenario(run: FinishedRun) -> tuple[str, str]:
    """Runs that differ in one of these are never of one scheme."""
    return str(run.summary["scheme"]), str(run.summary["scenario"])


def scheme_labels(
    firsts: Sequence[FinishedRun], sweeps: Sequence[ListedBy | None]
) -> list[tuple[str, str, FlatScenario, str]]:
    """(label, series, numbers, point): the runs' own labels, where needed with what differs."""
    flats = [flat_without_targets(run.scenario) for run in firsts]
    kinds = [scheme_and_scenario(run) for run in firsts]
    keys = {
        kind: distinguishing_keys(
            [flat for flat, own in zip(flats, kinds, strict=True) if own == kind],
            flats,
            _varied(kind[0], {by for by, own in zip(sweeps, kinds, strict=True) if own == kind}),
        )
        for kind in dict.fromkeys(kinds)
    }
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


def _varied(label: str, sweeps: set[ListedBy | None]) -> list[str]:
    """The keys that the one sweep of a scheme's runs varied; none where they are of several."""
    by, *more = sweeps
    if more or by is None:
        return []
    return [key.removeprefix(f"schemes.{label}.") for key in by.keys]
