"""Figures of loaded results, drawn by the package that registers them.

The entry point ``plot`` of the group ``edgesim.modules`` in pyproject.toml names its module.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from edgesim.results.run_files import ResultsError


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
    for entry in entry_points(group="edgesim.modules", name="plot"):
        module = entry.load()
        figures = [name for name in module.__all__ if name != "style"]
        if figure not in figures:
            raise ResultsError(f'The figure "{figure}" is unknown; there are {", ".join(figures)}.')
        return getattr(module, figure)(runs, ax=ax, **({} if x is None else {"x": x}))
    raise ResultsError("No package for figures is installed; install edgesim with its reports.")
