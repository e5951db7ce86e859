"""Timeline of one round: who downloads, computes and uploads when."""

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
from reports.run_data.scheme_grouping import Scheme
from reports.styling.axes_and_legends import threshold_handles, wrap
from reports.styling.figure_style import INK, THRESHOLD, THRESHOLD_LINE, FigureStyle
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

OF_JOB = ["device", "edge_round"]  # columns
MOST_DEVICES = 20  # rows of a timeline; of more devices, this many are shown
MOST_HANDED_OVER = 8  # of these, devices that are shown because they were handed over
STATUS_MARKS: dict[str, dict[str, Any]] = {
    "late": {"color": THRESHOLD, "marker": "x", "ms": 4, "mew": 1.1},
    "failed": {"color": INK, "marker": "+", "ms": 5, "mew": 1.1},
    "left": {"color": INK, "marker": "<", "ms": 4, "mew": 0.6},
}


class LoggedRound(NamedTuple):
    """One round of a run: its spans, its start in simulated seconds, and what became of its jobs.

    status: by device and round of its edge; without edges below a cloud that is 0, also in spans.
    """

    spans: pd.DataFrame
    start_s: float
    latency_s: float
    status: pd.Series


def logged_round(run: FinishedRun, g: int) -> LoggedRound:
    """Round g of a run."""
    row = run.rounds[run.rounds["round"] == g].iloc[0]
    found = (table[table["round"] == g] for table in (run.device_rounds, run.spans))
    ended, spans = (each if "edge_round" in each else each.assign(edge_round=0) for each in found)
    # Where jobs overlap, a device can end several in a round.
    status = ended.drop_duplicates(OF_JOB, keep="last").set_index(OF_JOB)["status"]
    time_s, latency_s = float(row["time_s"]), float(row["latency_s"])
    return LoggedRound(spans, time_s - latency_s, latency_s, status)


def middle_round(schemes: list[Scheme]) -> int:
    """A round in the middle of the shortest run, one that every scheme has; from 0."""
    rounds = min((scheme.first.rounds["round"].to_numpy() for scheme in schemes), key=len)
    return int(rounds[len(rounds) // 2])


def shares_axis(schemes: list[Scheme]) -> bool:
    """One time axis for all panels, unless the longest round would squeeze the shortest."""
    g = middle_round(schemes)
    rounds = [scheme.first.rounds for scheme in schemes]
    latency_s = [table["latency_s"].to_numpy()[table["round"] == g][0] for table in rounds]
    return bool(max(latency_s) <= 3 * min(latency_s))


def shown_devices(logged: LoggedRound) -> list[int]:
    """At most `MOST_DEVICES`: the one that finishes last, some that were handed over, and others
    evenly spaced by number.
    """
    devices = np.unique(logged.status.index.get_level_values("device"))
    if len(devices) > MOST_DEVICES:
        spans = logged.spans
        moved = np.unique(spans.loc[spans["phase"] == "handover", "device"])[:MOST_HANDED_OVER]
        others = MOST_DEVICES - 1 - len(moved)
        spaced = np.linspace(0, len(devices) - 1, others).round().astype(int)
        devices = np.union1d(devices[spaced], moved)
        if len(spans):
            last = spans["device"].iloc[int(spans["end_s"].to_numpy().argmax())]
            devices = np.union1d(devices, [last])
    return [int(device) for device in devices]


def round_timeline(schemes: list[Scheme], style: FigureStyle) -> Figure:
    """The middle round; one panel per scheme, time since the start of the round."""
    g = middle_round(schemes)
    fill = phase_fills(schemes, style)
    columns = min(2, len(schemes)) if style.wide else 1
    rows = math.ceil(len(schemes) / columns)
    logged = [logged_round(scheme.first, g) for scheme in schemes]
    lanes = max(len(shown_devices(each)) for each in logged)
    same_axis = shares_axis(schemes)
    title = 0.0 if same_axis else 0.15  # of a time axis that every panel has for itself
    # room for the number of every device, or of every second one
    lane_in = (0.14 if style.wide else 0.12) if lanes <= MOST_NUMBERED else 0.09
    height = rows * (0.55 + title + lane_in * max(lanes, 4)) + 0.7
    figure = Figure(figsize=(style.width_in, height), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=same_axis, squeeze=False).ravel()
    drawn: set[str] = set()
    scale, name = style.units.axis("time since the start of the round", "latency")
    for panel, scheme, each in zip(panels, schemes, logged, strict=False):
        drawn |= _draw_round(panel, scheme, each, fill, scale)
    for panel in panels[len(schemes) :]:
        panel.set_visible(False)
    for panel in panels[max(0, len(schemes) - columns) if same_axis else 0 : len(schemes)]:
        panel.set_xlabel(name)
        panel.tick_params(labelbottom=True)
    for panel in panels:
        panel.set_xlim(left=0)
    handles: list[Artist] = [Patch(label=wrap(p), **fill[p]) for p in fill if p in drawn]
    handles += _line_handles(schemes, logged, style)
    name_marks(figure, handles, 8 if style.wide else 4)
    return figure


def _draw_round(
    panel: Axes, scheme: Scheme, logged: LoggedRound, fill: dict[str, dict[str, Any]], scale: float
) -> set[str]:
    """Bars of one scheme; returns the phases that have a visible length."""
    shown = shown_devices(logged)
    lane = {device: i for i, device in enumerate(shown)}
    spans, start = logged.spans[logged.spans["device"].isin(shown)], logged.start_s
    drawn = draw_spans(panel, spans, lane, fill, start, scale)
    ends_s = spans.groupby(OF_JOB)["end_s"].max().to_dict()
    for job, status in logged.status.items():
        if job[0] in lane:
            end = (ends_s.get(job, math.nan) - start) * scale
            _mark_status(panel, lane[job[0]], status, end)
    if scheme.threshold_s is not None:
        line = THRESHOLD_LINE | {"path_effects": white_edge(0.9)}
        panel.axvline(scheme.threshold_s * scale, **line)
    panel.set_title(wrap(scheme.label))
    name_lanes(panel, shown)
    return drawn


def _mark_status(panel: Axes, lane: int, status: str, end: float) -> None:
    """A mark where a job came late or failed; a word for a device that was left out."""
    if status in STATUS_MARKS and not math.isnan(end):
        mark: dict[str, Any] = STATUS_MARKS[status] | {
            "clip_on": False,
            "path_effects": white_edge(1.1),
        }
        panel.plot(end, lane, **mark)
    elif status == "infeasible":
        panel.text(0.0, lane, " infeasible, left out", va="center", color=INK)


def _line_handles(
    schemes: list[Scheme], logged: list[LoggedRound], style: FigureStyle
) -> list[Line2D]:
    limits_s = sorted({s.threshold_s for s in schemes if s.threshold_s is not None})
    handles = threshold_handles(limits_s[:1], style.units)
    if len(limits_s) > 1:
        handles[0].set_label("threshold")
    for status, mark in STATUS_MARKS.items():
        if any((each.status == status).any() for each in logged):
            handles.append(Line2D([], [], ls="none", label=status, **mark))
    return handles


def timeline_table(schemes: list[Scheme]) -> Table:
    """One line per scheme, device and phase of the round, in seconds since its start."""
    g = middle_round(schemes)
    columns = (
        SCHEME,
        Column("round", "Round"),
        Column("device", "Device"),
        Column("status", "Status", number=False),
        Column("phase", "Phase", number=False),
        Column("start_s", "Start (s)", significant(5)),
        Column("end_s", "End (s)", significant(5)),
    )
    rows = []
    for scheme in schemes:
        spans, start, _, statuses = logged_round(scheme.first, g)
        for row in spans.itertuples():
            status = str(statuses.get((row.device, row.edge_round), ""))
            times = (row.start_s, row.end_s)
            since = (time - start for time in times)
            rows.append((scheme.label, g + 1, int(row.device), status, row.phase, *since))
    caption = f"Round {g + 1} of the run with the smallest seed."
    return Table("timeline", caption, columns, tuple(rows))
