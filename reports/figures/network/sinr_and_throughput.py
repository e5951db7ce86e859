"""Distributions of the SINR of uploads and of the devices' throughput."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from reports.run_data.scheme_grouping import Scheme
from reports.styling.axes_and_legends import (
    legend,
    set_scales,
    show_whole_share,
    two_panels,
    wrap,
)
from reports.styling.colours_and_markers import scheme_styles
from reports.styling.figure_style import FigureStyle
from reports.styling.number_formats import shortest, significant
from reports.styling.table_formats import SCHEME, Column, Table

SHARES = np.arange(101) / 100  # of the table
SINR, THROUGHPUT = "sinr_db", "throughput_bps"
TITLES = {
    SINR: ("SINR of an upload (dB)", 1.0),
    THROUGHPUT: ("throughput of a device (Mbit/s)", 1e-6),
}


def values_of(scheme: Scheme, quantity: str) -> np.ndarray:
    """Sorted values of all seeds, without those that are not known.

    Args:
        scheme: its runs are taken together.
        quantity: SINR, of every upload, dB; or THROUGHPUT, the bits of each device that were sent
            by the seconds of its uploads, over a run, bit/s.
    """
    found = []
    for run in scheme.runs:
        table = run.device_rounds
        if SINR not in table:
            continue
        if quantity == SINR:
            found.append(table[SINR].to_numpy(dtype=float))
        else:
            sums = table.groupby("device")[["bits_up", "upload_s"]].sum()
            sums = sums[sums["upload_s"] > 0]
            found.append((sums["bits_up"] / sums["upload_s"]).to_numpy(dtype=float))
    values = np.concatenate(found) if found else np.zeros(0)
    return np.sort(values[np.isfinite(values)])


def with_sinr(schemes: list[Scheme]) -> list[Scheme]:
    """The schemes whose runs have recorded the SINR."""
    return [scheme for scheme in schemes if len(values_of(scheme, SINR))]


def sinr_and_throughput(schemes: list[Scheme], style: FigureStyle) -> Figure:
    """Distribution functions."""
    known = with_sinr(schemes)
    styles = scheme_styles(schemes, style.grey)
    figure, panels = two_panels(style, 2.8, 2.0)
    for panel, quantity in zip(panels, (SINR, THROUGHPUT), strict=True):
        title, scale = TITLES[quantity]
        for scheme in known:
            values = values_of(scheme, quantity) * scale
            look, share = styles[scheme.label], np.arange(1, len(values) + 1) / len(values) * 100
            line = look.line | {"marker": "", "label": wrap(scheme.label)}
            panel.step(np.r_[values[0], values], np.r_[0.0, share], where="post", **line)
        panel.set_xlabel(title)
        if not style.wide or panel is panels[0]:
            panel.set_ylabel("share (%)")
    set_scales(panels[0], replace(style, x_scale="linear"))  # decibels are a logarithm already
    set_scales(panels[1], style)
    for panel in panels:
        show_whole_share(panel)
    legend(figure, panels[0] if len(schemes) > 1 else None, style)
    return figure


def sinr_and_throughput_table(schemes: list[Scheme]) -> Table:
    """One line per scheme, quantity and percentile."""
    columns = (
        SCHEME,
        Column("quantity", "Quantity", number=False),
        Column("share", "Share", shortest()),
        Column("value", "Value", significant(4)),
    )
    rows = []
    for scheme in schemes:
        for quantity in (SINR, THROUGHPUT):
            values = values_of(scheme, quantity)
            if len(values):
                at = np.quantile(values, SHARES).tolist()
                pairs = zip(SHARES.tolist(), at, strict=True)
                rows += [(scheme.label, quantity, *pair) for pair in pairs]
    caption = "Percentiles over all uploads (SINR, dB) and over all devices (throughput, bit/s)."
    return Table("sinr", caption, columns, tuple(rows))
