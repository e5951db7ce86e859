"""Every figure of a report: its name, title and caption, how it is drawn, and its numbers."""

from __future__ import annotations

from reports.catalog.clock_figures import clock_figures
from reports.catalog.cost_and_cell_figures import cell_figures, cost_figures
from reports.catalog.latency_figures import latency_figures
from reports.catalog.learning_figures import learning_figures
from reports.catalog.report_figure import ReportFigure, shown_text
from reports.catalog.sweep_figures import sweep_figures
from reports.report_options import ReportOptions
from reports.run_data.scheme_grouping import Scheme, few_schemes, swept_keys
from reports.run_data.scheme_selection import AbsentNameError


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
    asked = [each for each in every if each.name in options.figures] if options.figures else every
    there = [figure for figure in asked if figure.can_be_drawn()]
    names = {figure.name for figure in there}
    if absent := [name for name in options.figures if name not in names]:
        raise AbsentNameError("figures", absent, [f.name for f in every if f.can_be_drawn()])
    return there, notes


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
        *latency_figures(schemes, few, chosen),
        *clock_figures(schemes, few, shown),
        *cost_figures(schemes, few, shown),
        *cell_figures(schemes, few, shown),
    ]
    return every, notes
