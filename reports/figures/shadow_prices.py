"""What a little more band or time would buy: slopes of the pruning ratio, from the multipliers."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from reports.run_data.scheme_grouping import Scheme
from reports.run_data.statistics.metrics import RHO
from reports.styling.axes_and_legends import (
    legend,
    set_scales,
    staggered,
    two_panels,
    whole_numbers,
    wrap,
)
from reports.styling.colours_and_markers import scheme_styles
from reports.styling.figure_style import FigureStyle
from reports.styling.number_formats import significant
from reports.styling.table_formats import SCHEME, Column, Table

# slope -> the step of its axis, and how many percentage points for it 1/Hz or 1/s are
STEPS = {"pruning_per_hz": ("MHz", 1e6 * 100), "pruning_per_s": ("ms", 1e-3 * 100)}
SLOPES = tuple(STEPS)


def slopes(scheme: Scheme) -> pd.DataFrame | None:
    """By how much the mean pruning ratio of those served would fall for more band and time.

    Returns:
        Round, from 1 -> columns of `SLOPES`, 1/Hz and 1/s, mean over the seeds; None where the
        allocator gives none, or the run is older.
    """
    parts = []
    for run in scheme.runs:
        table = run.rounds
        if any(name not in table for name in SLOPES):
            return None
        # Where jobs overlap, the plans of a version are for those that were handed out in it.
        asked = table.get("dispatched", table["selected"])
        served = (asked - table["infeasible"]).where(lambda count: count > 0)
        falls = {name: -table[name] / served for name in SLOPES}
        parts.append(pd.DataFrame(falls).set_index(table["round"] + 1))
    mean = pd.concat(parts).groupby(level=0).mean().dropna()
    return mean if len(mean) else None


def any_slopes(schemes: list[Scheme]) -> bool:
    """Does any scheme have an allocator that gives them?"""
    return any(slopes(scheme) is not None for scheme in schemes)


def shadow_prices(schemes: list[Scheme], style: FigureStyle) -> Figure:
    """One panel for the band and one for the time, round by round."""
    found = [(scheme, table) for scheme in schemes if (table := slopes(scheme)) is not None]
    styles = scheme_styles(schemes, style.grey)
    figure, panels = two_panels(style, 2.8, 1.9, False)
    for i, (scheme, table) in enumerate(found):
        kind = styles[scheme.label].line | staggered(i, len(found), len(table))
        kind["label"] = wrap(scheme.label)
        for panel, name in zip(panels, SLOPES, strict=True):
            panel.plot(table.index.to_numpy(), table[name] * STEPS[name][1], **kind)
    for panel, (name, (step, points)) in zip(panels, STEPS.items(), strict=True):
        panel.set(xlabel="global round", ylabel=f"fall of mean {RHO} (points per {step})")
        panel.margins(x=0.02)
        set_scales(panel, style)
        if panel.get_yscale() == "linear":
            largest = max(table[name].max() for _, table in found) * points
            panel.set_ylim(0.0, 1.1 * largest or 1.0)
        if panel.get_xscale() == "linear":
            whole_numbers(panel.xaxis)
    legend(figure, panels[0], style)
    return figure


def shadow_price_table(schemes: list[Scheme]) -> Table:
    """One line per scheme and round."""
    shown = [significant(4, points) for _, points in STEPS.values()]
    columns = (
        SCHEME,
        Column("round", "Round"),
        Column("rho_fall_per_hz", "Points per MHz", shown[0]),
        Column("rho_fall_per_s", "Points per ms", shown[1]),
    )
    rows = []
    for scheme in schemes:
        table = slopes(scheme)
        if table is not None:
            falls = zip(table.index.tolist(), table[list(SLOPES)].to_numpy().tolist(), strict=True)
            rows += [(scheme.label, int(g), *values) for g, values in falls]
    caption = "Fall of the mean pruning ratio, to first order."
    return Table("worth", caption, columns, tuple(rows))
