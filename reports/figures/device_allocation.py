"""Pruning ratio and band share of every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.run_data.scheme_grouping import Scheme
from reports.run_data.statistics.metrics import RHO
from reports.styling.axes_and_legends import legend, staggered, whole_numbers, wrap
from reports.styling.colours_and_markers import scheme_styles, with_own_markers
from reports.styling.figure_style import FigureStyle
from reports.styling.number_formats import decimals
from reports.styling.table_formats import SCHEME, Column, Table

MOST_WITH_BARS = 16  # devices with error bars of their own; beyond, a line and a band


def device_allocation(schemes: list[Scheme], style: FigureStyle) -> Figure:
    """Mean over the rounds in which a device took part, min to max."""
    styles = with_own_markers(scheme_styles(schemes, style.grey))
    figure = Figure(figsize=(style.width_in, 4.4 if style.wide else 3.6), layout="constrained")
    panels = figure.subplots(2, 1, sharex=True)
    quantities = (("rho", 1.0, f"pruning ratio {RHO}"), ("share", 100.0, "band share b (%)"))
    for panel, (column, scale, title) in zip(panels, quantities, strict=True):
        for i, scheme in enumerate(schemes):
            table = per_device(scheme, column) * scale
            look, label = styles[scheme.label], wrap(scheme.label)
            if len(table) <= MOST_WITH_BARS:
                offset = (i - (len(schemes) - 1) / 2) * 0.84 / len(schemes)
                _draw_bars(panel, table, offset, look.points | {"label": label})
            else:
                every = staggered(i, len(schemes), len(table))["markevery"]
                _draw_band(panel, table, look.line | {"label": label, "markevery": every})
        panel.set_ylabel(title)
        panel.grid(axis="x", visible=False)
        top = max(panel.get_ylim()[1], 0.1) * 1.04
        panel.set_ylim(-0.03 * top, top)
    panels[1].set_xlabel("device")
    whole_numbers(panels[1].xaxis, 20)
    legend(figure, panels[0], style)
    return figure


def per_device(scheme: Scheme, column: str) -> pd.DataFrame:
    """Mean, min and max [K, 3] of a column over the rounds in which a device took part."""
    tables = [run.device_rounds for run in scheme.runs]
    parts = [each.loc[each["status"] != "infeasible", ["device", column]] for each in tables]
    return pd.concat(parts).groupby("device")[column].agg(["mean", "min", "max"])


def _draw_bars(panel: Axes, table: pd.DataFrame, offset: float, kind: dict[str, Any]) -> None:
    mean = table["mean"].to_numpy()
    ends = np.maximum([mean - table["min"].to_numpy(), table["max"].to_numpy() - mean], 0)
    panel.errorbar(table.index.to_numpy() + offset, mean, ends, elinewidth=1, **kind)


def _draw_band(panel: Axes, table: pd.DataFrame, kind: dict[str, Any]) -> None:
    devices = table.index.to_numpy()
    panel.plot(devices, table["mean"].to_numpy(), lw=0.9, **kind)
    low, high = table["min"].to_numpy(), table["max"].to_numpy()
    panel.fill_between(devices, low, high, color=kind["color"], alpha=0.10, lw=0)


def device_allocation_table(schemes: list[Scheme]) -> Table:
    """One line per scheme and device: mean and range over the rounds in which it took part."""
    columns = [SCHEME, Column("device", "Device")]
    for key, title in (("rho", "Pruning ratio"), ("share", "Band share")):
        for how in ("mean", "min", "max"):
            columns.append(Column(f"{key}_{how}", f"{title}, {how}", decimals(3)))
    rows = []
    for scheme in schemes:
        rho, share = (per_device(scheme, key) for key in ("rho", "share"))
        numbers = np.column_stack([rho.to_numpy(), share.to_numpy()]).tolist()
        rows += [(scheme.label, int(k), *row) for k, row in zip(rho.index, numbers, strict=True)]
    caption = "Over the rounds in which the device took part."
    return Table("devices-figure", caption, tuple(columns), tuple(rows))
