"""Every figure of a report: its name, title and caption, how it is drawn, and its numbers."""

from __future__ import annotations

from edgesim.errors import ResultsError
from reports.catalog.clock_figures import clock_figures
from reports.catalog.cost_and_cell_figures import cell_figures, cost_figures
from reports.catalog.latency_figures import latency_figures
from reports.catalog.learning_figures import learning_figures
from reports.catalog.report_figure import ReportFigure, shown_text
from reports.catalog.sweep_figures import sweep_figures
from reports.report_options import ReportOptions
from reports.run_data.scheme_grouping import Scheme, few_schemes, swept_keys
from reports.run_data.scheme_selection import unknown_name


def report_figures(
    schemes: list[Scheme], options: ReportOptions | None = None
) -> tuple[list[ReportFigure], list[str]]:
    """The figures of these schemes, in the order of the page, and what could not be drawn.

    Raises:
        ResultsError: the options name a figure or a swept key that there is not.
    """
    options = options or ReportOptions()
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
    if options.figures:
        known = {figure.name: figure for figure in every}
        for name in options.figures:
            if name not in known:
                raise ResultsError(unknown_name("figures", name, list(known)))
        every = [figure for figure in every if figure.name in options.figures]
    return every, notes
