"""Timeline of the end of a run, for clocks whose jobs do not begin and end with a round."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from edgesim.results.finished_run import FinishedRun
from reports.figures.round_timeline import MOST_DEVICES, STATUS_MARKS
from reports.run_data.job_outcomes import STALE, kinds, numbers_jobs
from reports.run_data.scheme_grouping import Scheme
from reports.styling.axes_and_legends import wrap
from reports.styling.figure_style import INK, FigureStyle
from reports.styling.number_formats import significant
from reports.styling.table_formats import SCHEME, Column, Table
from reports.styling.timeline_lanes import (
    MOST_NUMBERED,
    draw_spans,
    name_lanes,
    name_marks,
    phase_fills,
    white_edge,
)

JOBS_LONG = 4.0  # length of the window, in median jobs
MOST_VERSIONS = 60  # with a line each; of more, every second, third, ... has one
RING: dict[str, Any] = {"marker": "o", "mec": INK, "ms": 3.6, "mew": 0.8}
MARKS: dict[str, dict[str, Any]] = STATUS_MARKS | {
    STALE: RING | {"mfc": "white"},
    "discarded": RING | {"mfc": INK},
    "cancelled": {"color": INK, "marker": "|", "ms": 8, "mew": 1.6},
    "unfinished": {"color": INK, "marker": ">", "ms": 4, "mew": 0.6},
}
VERSION: dict[str, Any] = {"color": INK, "lw": 0.6, "ls": ":", "zorder": 2.5}


class Window(NamedTuple):
    """The last seconds of a run: the spans in them, their jobs, and when versions were made.

    jobs: columns device, kind, staleness, end_s (of the job's last span), by job.
    """

    start_s: float
    end_s: float
    spans: pd.DataFrame
    jobs: pd.DataFrame
    versions_s: np.ndarray


def job_keys(run: FinishedRun) -> list[str]:
    """The columns that name a job: its number, or round and device where jobs have none."""
    return ["job"] if numbers_jobs(run) else ["round", "device"]


def job_lengths_s(run: FinishedRun) -> np.ndarray:
    """Seconds from the start to the end of every job [jobs]."""
    spans = run.spans[run.spans["phase"] != "idle"]
    if numbers_jobs(run):
        spans = spans[spans["job"] >= 0]  # an absence belongs to none
    of_jobs = spans.groupby(job_keys(run))
    return (of_jobs["end_s"].max() - of_jobs["start_s"].min()).to_numpy()


def window_length_s(schemes: list[Scheme]) -> float:
    """Of all panels: some jobs of the scheme whose median job is longest."""
    medians = (float(np.median(job_lengths_s(scheme.first))) for scheme in schemes)
    return JOBS_LONG * max(medians)


def last_window(run: FinishedRun, length_s: float) -> Window:
    """The last ``length_s`` seconds of a run; spans are cut at their start."""
    end_s = float(run.rounds["time_s"].iloc[-1])
    start_s = max(0.0, end_s - length_s)
    keys, work = job_keys(run), run.spans[run.spans["phase"] != "idle"]
    spans = work[work["end_s"] > start_s]
    spans = spans.assign(start_s=spans["start_s"].clip(lower=start_s))
    table = run.device_rounds
    staleness = table["staleness"] if numbers_jobs(run) else 0
    jobs = table[list(dict.fromkeys([*keys, "device"]))].assign(
        kind=kinds(run), staleness=staleness
    )
    jobs = jobs.set_index(keys, drop=False)
    jobs = jobs.join(spans.groupby(keys)["end_s"].max(), how="inner")
    times = run.rounds["time_s"].to_numpy(dtype=float)
    return Window(start_s, end_s, spans, jobs, times[times >= start_s])


def shown_devices(windows: list[Window]) -> list[int]:
    """At most `MOST_DEVICES` that are at work in any window, evenly spaced by number."""
    devices = np.unique(np.concatenate([each.spans["device"].to_numpy() for each in windows]))
    if len(devices) > MOST_DEVICES:
        devices = devices[np.linspace(0, len(devices) - 1, MOST_DEVICES).round().astype(int)]
    return [int(device) for device in devices]


def job_timeline(schemes: list[Scheme], style: FigureStyle) -> Figure:
    """The last jobs; one panel per scheme, all of one length, in simulated seconds."""
    fill, length_s = phase_fills(schemes, style), window_length_s(schemes)
    windows = [last_window(scheme.first, length_s) for scheme in schemes]
    shown = shown_devices(windows)
    columns = min(2, len(schemes)) if style.wide else 1
    rows = math.ceil(len(schemes) / columns)
    lane_in = (0.15 if style.wide else 0.13) if len(shown) <= MOST_NUMBERED else 0.1
    height = rows * (0.7 + lane_in * max(len(shown), 4)) + 0.8
    figure = Figure(figsize=(style.width_in, height), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    drawn: set[str] = set()
    for panel, scheme, window in zip(panels, schemes, windows, strict=False):
        drawn |= _draw_window(panel, window, shown, fill, length_s, style)
        panel.set_title(wrap(scheme.label))
    for panel in panels[len(schemes) :]:
        panel.set_visible(False)
    handles: list[Artist] = [Patch(label=wrap(p), **fill[p]) for p in fill if p in drawn]
    handles.append(Line2D([], [], label="new version", **VERSION | {"lw": 0.9}))
    marked = {kind for window in windows for kind in window.jobs["kind"]}
    handles += [Line2D([], [], ls="none", label=k, **MARKS[k]) for k in MARKS if k in marked]
    name_marks(figure, handles, 8 if style.wide else 4)
    return figure


def _draw_window(
    panel: Axes,
    window: Window,
    shown: list[int],
    fill: dict[str, dict[str, Any]],
    length_s: float,
    style: FigureStyle,
) -> set[str]:
    """Bars, marks and versions of one scheme; returns the phases that have a visible length."""
    lane = {device: i for i, device in enumerate(shown)}
    scale, title = style.units.axis("simulated time", "time")
    spans = window.spans[window.spans["device"].isin(shown)]
    drawn = draw_spans(panel, spans, lane, fill, 0.0, scale)
    every = math.ceil(len(window.versions_s) / MOST_VERSIONS) or 1
    for time_s in window.versions_s[::-1][::every]:
        panel.axvline(time_s * scale, **VERSION)
    jobs = window.jobs[window.jobs["device"].isin(shown)]
    for kind, part in jobs.groupby("kind", sort=False):
        if kind in MARKS:
            y = [lane[int(device)] for device in part["device"]]
            look = MARKS[str(kind)] | {"ls": "none", "clip_on": False, "zorder": 3}
            panel.plot(part["end_s"] * scale, y, path_effects=white_edge(look["mew"]), **look)
    name_lanes(panel, shown)
    panel.set_xlim(window.start_s * scale, (window.start_s + length_s) * scale)
    panel.set_xlabel(title)
    panel.grid(axis="x", visible=False)
    return drawn


def job_timeline_table(schemes: list[Scheme]) -> Table:
    """One line per scheme and span of the window, in simulated seconds."""
    columns = (
        SCHEME,
        Column("job", "Job"),
        Column("device", "Device"),
        Column("kind", "What became of it", number=False),
        Column("staleness", "Staleness"),
        Column("phase", "Phase", number=False),
        Column("start_s", "Start (s)", significant(5)),
        Column("end_s", "End (s)", significant(5)),
    )
    length_s, rows = window_length_s(schemes), []
    for scheme in schemes:
        window, keys = last_window(scheme.first, length_s), job_keys(scheme.first)
        jobs = window.jobs[["kind", "staleness"]]
        for row in window.spans.join(jobs, on=keys, how="inner").itertuples():
            about = getattr(row, "job", None), row.device, row.kind, row.staleness
            rows.append((scheme.label, *about, row.phase, row.start_s, row.end_s))
    caption = f"The last {length_s:.3g} s of the run with the smallest seed."
    return Table("timeline", caption, columns, tuple(rows))
