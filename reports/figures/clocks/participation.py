"""How often the server used an update of each device, and how fair that is."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from reports.run_data.job_outcomes import jain_of, used_updates
from reports.run_data.scheme_grouping import Scheme
from reports.run_data.statistics.seed_intervals import seed_mean
from reports.styling.axes_and_legends import legend, staggered, whole_numbers, wrap
from reports.styling.colours_and_markers import scheme_styles, with_own_markers
from reports.styling.figure_style import INK, FigureStyle
from reports.styling.number_formats import MEAN_COUNT, decimals
from reports.styling.table_formats import SCHEME, Column, Table

MOST_WITH_MARKERS = 16  # devices side by side; beyond, curves from the most to the least used


def updates_per_device(scheme: Scheme) -> np.ndarray:
    """Used updates of each device in a run, mean over seeds [K]."""
    return np.mean([used_updates(run) for run in scheme.runs], axis=0)


def participation_differs(schemes: list[Scheme]) -> bool:
    """Did any device give more of the used updates than another one?"""
    return any(np.ptp(updates_per_device(scheme)) > 0 for scheme in schemes)


def participation(schemes: list[Scheme], style: FigureStyle) -> Figure:
    """Share of the used updates that each device gave."""
    counts = [updates_per_device(scheme) for scheme in schemes]
    styles = with_own_markers(scheme_styles(schemes, style.grey))
    size = (style.width_in, 2.8 if style.wide else 2.6)
    figure = Figure(figsize=size, layout="constrained")
    panel = figure.subplots()
    most = max(map(len, counts))
    for i, (scheme, each) in enumerate(zip(schemes, counts, strict=True)):
        share = each / (each.sum() or 1.0) * 100
        look, fair = styles[scheme.label], seed_mean(scheme, jain_of)
        label: dict[str, Any] = {"label": wrap(f"{scheme.label}: {fair:.3f}")}
        if most <= MOST_WITH_MARKERS:
            offset = (i - (len(schemes) - 1) / 2) * 0.7 / len(schemes)
            panel.plot(np.arange(len(share)) + offset, share, **look.points, **label)
        else:
            markers = staggered(i, len(schemes), len(share))
            panel.plot(np.sort(share)[::-1], **look.line, **label, **markers)
    for devices in dict.fromkeys(map(len, counts)):
        panel.axhline(100 / devices, color=INK, lw=0.7, ls=":", zorder=0)
    whole_numbers(panel.xaxis, 20)
    titles = "device", "device, most used first"
    panel.set(xlabel=titles[most > MOST_WITH_MARKERS], ylabel="share of used updates (%)")
    top = 1.05 * panel.dataLim.y1  # the largest marker is whole
    panel.set_ylim(-0.03 * top, top)
    panel.grid(axis="x", visible=False)
    legend(figure, panel, style)
    figure.legends[0].set_title("Jain's index")
    figure.legends[0].set_alignment("left")
    return figure


def participation_table(schemes: list[Scheme]) -> Table:
    """One line per scheme and device."""
    columns = (
        SCHEME,
        Column("jain", "Jain's index", decimals(4)),
        Column("device", "Device"),
        Column("updates", "Used updates a run", MEAN_COUNT),
        Column("share", "Share", decimals(4)),
    )
    rows = []
    for scheme in schemes:
        each, fair = updates_per_device(scheme), seed_mean(scheme, jain_of)
        share = each / (each.sum() or 1.0)
        rows += [
            (scheme.label, fair, k, *row)
            for k, row in enumerate(zip(each.tolist(), share.tolist(), strict=True))
        ]
    caption = "Used updates of each device, mean over seeds, and Jain's fairness index of a run."
    return Table("participation", caption, columns, tuple(rows))
