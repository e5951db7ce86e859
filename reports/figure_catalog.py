"""Every figure of a report: its name, title and caption, how it is drawn, and its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from reports.catalog.clock_figures import clock_figures
from reports.catalog.cost_and_cell_figures import cell_figures, cost_figures
from reports.catalog.latency_figures import latency_figures
from reports.catalog.learning_figures import learning_figures
from reports.catalog.report_figure import ReportFigure, shown_text
from reports.catalog.sweep_figures import sweep_figures
from reports.report_options import ReportOptions
from reports.run_data.scheme_grouping import Scheme, few_schemes, swept_keys
from reports.run_data.scheme_selection import AbsentNameError
from reports.styling.figure_style import SCREEN


def report_figures(
    schemes: list[Scheme], options: ReportOptions | None = None
) -> tuple[list[ReportFigure], list[str]]:
    """The figures of these schemes, in the order of the page, and what could not be drawn.

    Raises:
        UnfitOptionError: the options name a figure or a swept key that there is not, or one key
            as `along` and as `family`.
    """
    options = options or ReportOptions()
    every, notes = _every_figure(schemes, options)
    if options.figures:
        known = [figure.name for figure in every]
        if unknown := [name for name in options.figures if name not in known]:
            raise missing_figures(unknown, schemes, options)
        every = [figure for figure in every if figure.name in options.figures]
    return every, notes


def missing_figures(
    names: Sequence[str], schemes: list[Scheme], options: ReportOptions
) -> AbsentNameError:
    """The error about figures that were asked for, and that these results do not have.

    Draws all figures to know which ones they have.
    """
    there = [f.name for f in _every_figure(schemes, options)[0] if f.draw(SCREEN) is not None]
    return AbsentNameError("figures", names, there)


def _every_figure(
    schemes: list[Scheme], options: ReportOptions
) -> tuple[list[ReportFigure], list[str]]:
    keys = swept_keys(schemes, apart=bool(options.along))
    few, chosen = few_schemes(schemes, keys)
    sweep, notes = sweep_figures(schemes, keys, options)
    shown = shown_text(chosen)
    every = [
        *sweep,
        *learning_figures(schemes, few, shown, options),
        *latency_figures(schemes, few, shown),
        *clock_figures(schemes, few, shown),
        *cost_figures(schemes, few, shown),
        *cell_figures(schemes, few, shown),
    ]
    return every, notes
