"""Figures of the latency per round."""

from __future__ import annotations

from functools import partial

from reports.catalog.report_figure import TIME, ReportFigure, seeds_text, shown_text
from reports.figures import learning_curves, round_latency, round_timeline
from reports.figures.clocks import job_timeline
from reports.run_data.job_outcomes import any_overlaps
from reports.run_data.scheme_grouping import Scheme
from reports.run_data.statistics.round_latencies import thresholds_s


def latency_figures(schemes: list[Scheme], few: list[Scheme], chosen: str) -> list[ReportFigure]:
    """Figures with a line, bar or panel for each of a few schemes; their tables have all, but for
    timelines, whose spans are many.
    """
    shown = shown_text(chosen)
    return [
        ReportFigure(
            TIME,
            "latency",
            "Latency per round",
            _latency_caption(few) + shown,
            partial(round_latency.latency_by_round, few),
            partial(learning_curves.curve_table, schemes, "latency", "latency_s", "Latency (s)"),
        ),
        ReportFigure(
            TIME,
            "cdf",
            "Distribution of the latency",
            f"Share of the rounds of all seeds that took at most so long{_dashed(few)}.{shown}",
            partial(round_latency.latency_cdf, few),
            partial(round_latency.cdf_table, schemes),
        ),
        ReportFigure(
            TIME,
            "decomposition",
            "Where the latency comes from",
            "Mean seconds of a round in each phase: of the device that finishes last, whose "
            "phases make the round so long, and of the mean device that took part. Waiting is "
            "what is left of the round; both bars are as long as the mean latency."
            f"{_without_overlapping(few)}{shown}",
            partial(round_latency.latency_by_phase, few),
            partial(round_latency.phase_table, schemes),
            partial(round_latency.any_phase, few),
        ),
        _timeline(few, shown_text(chosen, data="")),
    ]


def _timeline(few: list[Scheme], shown: str) -> ReportFigure:
    """Of one round; of the last jobs, where a clock lets them overlap."""
    if any_overlaps(few):
        return ReportFigure(
            TIME,
            "timeline",
            "Timeline of the last jobs",
            _job_timeline_caption(few) + shown,
            partial(job_timeline.job_timeline, few),
            partial(job_timeline.job_timeline_table, few),
        )
    return ReportFigure(
        TIME,
        "timeline",
        "Timeline of one round",
        _timeline_caption(few) + shown,
        partial(round_timeline.round_timeline, few),
        partial(round_timeline.timeline_table, few),
    )


def _latency_caption(schemes: list[Scheme]) -> str:
    several = any(len(scheme.runs) > 1 for scheme in schemes)
    return (
        "Simulated time that each global round took: mean (marker) and range over all rounds, and "
        f"round by round{_dashed(schemes)}. Markers are staggered, so that equal lines show all of "
        "theirs." + (f" Curves: mean over seeds{seeds_text(schemes)}." * several)
    )


def _dashed(schemes: list[Scheme]) -> str:
    """The words about the lines of thresholds, where there are some."""
    return "; dashed: the latency threshold" if thresholds_s(schemes) else ""


def _timeline_caption(schemes: list[Scheme]) -> str:
    text = f"Round {round_timeline.middle_round(schemes) + 1} of the run with the smallest seed."
    if not round_timeline.shares_axis(schemes):
        text += " The panels have different time axes."
    if any(scheme.first.summary["devices"] > round_timeline.MOST_DEVICES for scheme in schemes):
        text += f" Shown are {round_timeline.MOST_DEVICES} devices, among them the last to finish."
    return f"{text} Phases without a duration are not visible."


def _without_overlapping(schemes: list[Scheme]) -> str:
    if not any_overlaps(schemes):
        return ""
    return " Clocks whose jobs go on while versions are made have no such rounds."


def _job_timeline_caption(schemes: list[Scheme]) -> str:
    length_s = job_timeline.window_length_s(schemes)
    windows = (job_timeline.last_window(scheme.first, length_s) for scheme in schemes)
    many = any(len(each.versions_s) > job_timeline.MOST_VERSIONS for each in windows)
    dotted = "new versions of the model, not all of them" if many else "a new version of the model"
    text = (
        f"The last {length_s:.3g} s of the run with the smallest seed. Dotted: {dotted}. "
        "Rings: updates that were stale when they were used (white) or too stale (black)."
    )
    if any(scheme.first.summary["devices"] > round_timeline.MOST_DEVICES for scheme in schemes):
        text += f" Shown are {round_timeline.MOST_DEVICES} devices."
    return text
