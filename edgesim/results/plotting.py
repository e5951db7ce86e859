"""Figures of loaded results, drawn by ``edgesim.plot``, a module of another package."""

from __future__ import annotations

from inspect import signature
from typing import Any

from edgesim.errors import ResultsError
from edgesim.plugin_modules import plugin_module


def plot(runs: Any, figure: str, ax: Any = None, x: str | None = None) -> Any:
    """Draw a figure of ``edgesim.plot``.

    Args:
        runs: loaded results, or a run.
        figure: accuracy, loss, latency, or the name of the runs' own metric; of one that is
            called latency it is latency_metric, as in a report.
        ax: matplotlib axes to draw on; None: new ones.
        x: time, rounds, bits or energy; None: as the figure chooses.

    Returns:
        The matplotlib axes.

    Raises:
        ResultsError: no package draws, or there is no such figure.
    """
    module = plugin_module("plot")
    if module is None:
        raise ResultsError("No package for figures is installed; install edgesim with its reports.")
    takes = {name: signature(getattr(module, name)).parameters for name in module.__all__}
    figures = [name for name in takes if "ax" in takes[name] and "name" not in takes[name]]
    metrics = {f"{each}_metric" if each in figures else each: each for each in own_metrics(runs)}
    options = {} if x is None else {"x": x}
    if figure in figures:
        return getattr(module, figure)(runs, ax=ax, **options)
    if figure in metrics:
        return module.metric(runs, metrics[figure], ax=ax, **options)
    known = ", ".join([*figures, *metrics])
    raise ResultsError(f'The figure "{figure}" is unknown; there are {known}.')


def own_metrics(runs: Any) -> list[str]:
    """The names of the metrics that loaded results, or a run, have by ``learning.metric``."""
    summaries = [each.summary for each in getattr(runs, "runs", [runs])]
    return list(dict.fromkeys(name for each in summaries for name in each.get("final_metric", ())))
