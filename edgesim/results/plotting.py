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
        figure: accuracy, loss or latency.
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
    draws = (name for name in module.__all__ if "ax" in signature(getattr(module, name)).parameters)
    figures = list(draws)
    if figure not in figures:
        raise ResultsError(f'The figure "{figure}" is unknown; there are {", ".join(figures)}.')
    return getattr(module, figure)(runs, ax=ax, **({} if x is None else {"x": x}))
