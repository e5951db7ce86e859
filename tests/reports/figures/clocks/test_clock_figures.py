"""Figures of clocks whose jobs overlap, from a run whose numbers can be worked out by hand."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from pytest import approx

from reports.figure_catalog import report_figures
from reports.figures import round_latency
from reports.figures.clocks import job_timeline, participation, staleness
from reports.run_data.scheme_grouping import load_schemes


def test_the_window_is_four_median_jobs_before_the_end(overlapping):
    assert job_timeline.window_length_s([overlapping]) == approx(4 * 0.75)
    window = job_timeline.last_window(overlapping.first, 2.0)
    assert (window.start_s, window.end_s) == (2.0, 4.0)
    assert window.versions_s.tolist() == [2.0, 3.0, 4.0]
    # job 2 ended at 1.75 s; job 3 is cut at the start of the window
    assert window.jobs["kind"].to_dict() == {
        3: "discarded",
        4: "fresh",
        5: "cancelled",
        6: "unfinished",
        7: "held",
    }
    assert window.spans.loc[window.spans["job"] == 3, "start_s"].min() == 2.0


def test_every_fate_has_its_mark_at_the_end_of_the_job(overlapping, drawn):
    figure = drawn(job_timeline.job_timeline, [overlapping])
    (panel,) = figure.axes
    marks = {
        line.get_marker(): np.asarray(line.get_xdata()).tolist()
        for line in panel.lines
        if line.get_linestyle() == "None"
    }
    ends = overlapping.first.spans.groupby("job")["end_s"].max()
    assert marks["|"] == approx([ends[5]]) and marks[">"] == approx([ends[6]])
    rings = [line for line in panel.lines if line.get_marker() == "o"]
    assert {line.get_markerfacecolor(): len(line.get_xdata()) for line in rings} == {
        "white": 2,
        job_timeline.INK: 1,
    }
    versions = [line for line in panel.lines if line.get_linestyle() == ":"]
    assert sorted(line.get_xdata()[0] for line in versions) == [1.0, 2.0, 3.0, 4.0]
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named[:5] == ["train", "upload", "new version", "stale", "discarded"]
    assert named[5:] == ["cancelled", "unfinished"]


@pytest.mark.slow
def test_staleness_of_used_updates_and_jobs_by_fate(overlapping, two_schemes, drawn):
    assert staleness.staleness_shares(overlapping).tolist() == [0.5, 0.5]
    counts = staleness.outcomes_per_run([overlapping])
    assert counts["discarded"] == [1.0] and counts["fresh"] == [2.0] and "late" not in counts
    left, right = drawn(staleness.staleness, [overlapping]).axes
    assert [line.get_ydata().tolist() for line in right.lines] == [[0, 50, 50, 0]]
    assert right.get_xlim() == (-0.55, 1.55)  # no staleness of -1
    assert left.get_legend() is not None
    assert [text.get_text() for text in left.texts] == ["clocked: 8 jobs"]
    rows = staleness.staleness_table([overlapping]).rows
    assert ("clocked", "used", 1, 2.0, 0.5) in rows
    assert "staleness" not in {figure.name for figure in report_figures(two_schemes)[0]}


def test_jobs_whose_devices_left_are_counted_and_marked(overlapping, drawn):
    overlapping.first.device_rounds.loc[6, "status"] = "left"
    assert staleness.outcomes_per_run([overlapping])["left"] == [1.0]
    drawn(staleness.staleness, [overlapping])
    (panel,) = drawn(job_timeline.job_timeline, [overlapping]).axes
    assert [len(line.get_xdata()) for line in panel.lines if line.get_marker() == "<"] == [1]


def test_participation_is_the_share_of_used_updates(overlapping, two_schemes, drawn):
    figure = drawn(participation.participation, [overlapping])
    (panel,) = figure.axes
    assert panel.lines[0].get_ydata().tolist() == [75.0, 25.0, 0.0]
    assert figure.legends[0].get_texts()[0].get_text() == "clocked: 0.533"
    assert panel.lines[-1].get_ydata()[0] == approx(100 / 3)
    assert participation.participation_differs([overlapping])
    assert not participation.participation_differs(two_schemes)  # all gave as many


def test_rounds_that_overlap_have_no_phases(overlapping, two_schemes, drawn):
    assert not round_latency.any_phase([overlapping]) and round_latency.any_phase(two_schemes)
    labels = {row[0] for row in round_latency.phase_table([*two_schemes, overlapping]).rows}
    assert labels == {scheme.label for scheme in two_schemes}


@pytest.mark.parametrize("others", [False, True])
def test_the_report_of_such_a_run(overlapping, two_schemes, others):
    figures = {
        figure.name: figure
        for figure in report_figures([overlapping, *(two_schemes if others else [])])[0]
    }
    assert figures["timeline"].title == "Timeline of the last jobs"
    assert figures["accuracy"].title == "Accuracy over simulated time and over joules"
    assert len(figures["timeline"].table().rows) > 4


def test_ordinary_runs_keep_their_timeline(two_schemes):
    figures = {figure.name: figure for figure in report_figures(two_schemes)[0]}
    assert figures["timeline"].title == "Timeline of one round"
    assert figures["accuracy"].title == "Accuracy over simulated time and over rounds"


@pytest.mark.slow
def test_jobs_of_rounds_are_named_by_round_and_device(overlapping, two_schemes, drawn):
    figure = drawn(job_timeline.job_timeline, [overlapping, two_schemes[1]])
    FigureCanvasAgg(figure).draw()
    late = [line for line in figure.axes[1].lines if line.get_marker() == "x"]
    assert not late  # late uploads without a deadline are used


def test_the_time_of_a_short_run_begins_at_zero(overlapping, drawn, monkeypatch):
    """Four seconds, of a window of six."""
    monkeypatch.setattr(job_timeline, "JOBS_LONG", 8.0)
    (panel,) = drawn(job_timeline.job_timeline, [overlapping]).axes
    assert panel.get_xlim() == approx((0, 6))


def test_the_marker_of_the_most_used_device_is_whole(overlapping, drawn, monkeypatch):
    counts = np.array([100.0, 99.0, 98.0])
    monkeypatch.setattr(participation, "updates_per_device", lambda scheme: counts)
    (panel,) = drawn(participation.participation, [overlapping]).axes
    largest = max(line.get_ydata().max() for line in panel.lines if line.get_marker() != "None")
    assert panel.get_ylim()[1] >= 1.04 * largest


def test_used_updates_of_one_run_are_whole_numbers(overlapping):
    counts = participation.updates_per_device(overlapping)
    shown = [row[3] for row in participation.participation_table([overlapping]).cells()]
    assert shown == [str(int(count)) for count in counts] and max(counts) >= 1


def test_the_numbers_along_an_axis_of_jobs_are_whole(overlapping, drawn, monkeypatch):
    monkeypatch.setattr(staleness, "outcomes_per_run", lambda schemes: {"fresh": [2.0]})
    panel = drawn(staleness.staleness, [overlapping]).axes[0]
    ticks = panel.get_xticks().tolist()
    assert len(ticks) > 1 and all(tick.is_integer() for tick in ticks)


def test_shares_of_few_used_updates_add_up_to_one(tmp_path, write_run):
    """Of two seeds one has one used update, half a one on average: it is all that was used."""
    (scheme,) = load_schemes([write_run(tmp_path / str(seed), seed=seed) for seed in (0, 1)])
    for run, used in zip(scheme.runs, (1, 0), strict=True):
        rows = len(run.device_rounds)
        run.device_rounds["status"] = ["arrived"] * used + ["failed"] * (rows - used)
    shares = [row[4] for row in participation.participation_table([scheme]).rows]
    assert shares == [1.0, 0.0]


def test_an_absence_is_no_job(overlapping):
    """Device 0 is off, and repaired later: not one job from the start to the end of the run."""
    off = {"round": 0, "device": 0, "phase": ["off", "repair"], "job": -1}
    off = pd.DataFrame({**off, "start_s": [0.0, 3.5], "end_s": [0.5, 4.0]})
    spans = pd.concat([overlapping.first.spans, off], ignore_index=True)
    object.__setattr__(overlapping.first, "spans", spans)
    assert job_timeline.job_lengths_s(overlapping.first) == approx([0.75] * 8)


def test_the_caption_says_that_some_of_many_versions_have_no_line(overlapping, monkeypatch):
    """The window of three seconds has versions at 1, 2, 3 and 4 s."""

    def caption():
        (found,) = (f for f in report_figures([overlapping])[0] if f.name == "timeline")
        return found.caption

    assert "not all of them" not in caption()
    monkeypatch.setattr(job_timeline, "MOST_VERSIONS", 3)
    assert "Dotted: new versions of the model, not all of them." in caption()
