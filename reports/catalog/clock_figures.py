"""Figures of who took part, and of what became of the jobs."""

from __future__ import annotations

from functools import partial

from reports.catalog.report_figure import CLOCK, ReportFigure
from reports.figures.clocks import participation, staleness
from reports.run_data.job_outcomes import any_overlaps
from reports.run_data.scheme_grouping import Scheme


def clock_figures(schemes: list[Scheme], few: list[Scheme], shown: str) -> list[ReportFigure]:
    """Drawn of a few schemes; the tables have all."""
    return [
        ReportFigure(
            CLOCK,
            "staleness",
            "Jobs and their staleness",
            "What became of the jobs: fresh and stale updates were used, the rest was for nothing; "
            "and with clocks whose jobs overlap, how many versions of the model were made between "
            f"download and use. Means over seeds.{shown}",
            partial(staleness.staleness, few),
            partial(staleness.staleness_table, schemes),
            partial(any_overlaps, few),
        ),
        ReportFigure(
            CLOCK,
            "participation",
            "Who took part",
            "Share of the used updates that came from each device; dotted: all alike. Behind each "
            "name Jain's index, (sum x)² / (K sum x²): 1 where all devices gave as many, 1/K where "
            f"one gave all. Means over seeds.{shown}",
            partial(participation.participation, few),
            partial(participation.participation_table, schemes),
            partial(participation.participation_differs, few),
        ),
    ]
