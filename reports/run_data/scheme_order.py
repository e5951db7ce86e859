"""The order of schemes in a report: as in the paper, the sweep or the scenario's file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from edgesim.results.finished_run import FinishedRun
from edgesim.results.flat_scenario import scheme_places
from reports.run_data.liu_reported_results import role_of, role_rank

GroupKey = tuple[str, str, str]  # scheme, scenario, what else differs
Groups = Mapping[GroupKey, list[FinishedRun]]


def in_order(groups: Groups, listed: Mapping[Path, int]) -> list[list[FinishedRun]]:
    """Groups of runs in the order in which their schemes are shown.

    That is the order of Liu et al., where they are asked to stand beside them, then that of the
    sweep. Schemes of a scenario whose runs are not all in a sweep come in the order of its file,
    then by label.

    Args:
        groups: runs of one scheme each.
        listed: resolved folder of a run -> its place in the sweep.
    """
    files = scheme_places(
        (scenario, scheme, run.scenario)
        for (scheme, scenario, _), group in groups.items()
        for run in group
    )
    at = {key: min(_place(run, listed) for run in group) for key, group in groups.items()}
    of_scenario: dict[str, list[int]] = {}
    for (_, scenario, _), place in at.items():
        of_scenario.setdefault(scenario, []).append(place)

    def sorting(key: GroupKey) -> tuple:
        scheme, scenario, rest = key
        places = of_scenario[scenario]
        in_sweep = at[key] if max(places) < len(listed) else 0
        in_file = files[scenario, scheme]
        rank = role_rank(role_of_runs(groups[key]))
        return rank, min(places), scenario, in_sweep, in_file, at[key], rest

    return [groups[key] for key in sorted(groups, key=sorting)]


def role_of_runs(runs: Sequence[FinishedRun]) -> str | None:
    """Which scheme of Liu et al. they are, as the first says that was asked; older runs lack it."""
    roles = (role_of(run.scenario, str(run.summary["scheme"])) for run in runs)
    return next(filter(None, roles), None)


def _place(run: FinishedRun, listed: Mapping[Path, int]) -> int:
    """In the sweep; of runs that it does not list the last one."""
    return listed.get(run.folder.resolve(), len(listed))
