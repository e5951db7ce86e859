"""What a little more band or time would be worth: slopes of the pruning, from the allocator's multipliers."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from reports.run_data.schemes import Scheme
from reports.styling.house_style import RHO, Style, looks
from reports.styling.panels import legend, nest, stagger, two_panels, whole_numbers, wrap
from reports.styling.table_formats import Column, Table, figures

SLOPES = ("pruning_per_hz", "pruning_per_s")
STEPS = {"pruning_per_hz": ("MHz", 1e6), "pruning_per_s": ("ms", 1e-3)}


def slopes(scheme: Scheme) -> pd.DataFrame | None:
    """By how much the mean pruning ratio of those served would fall for 1 MHz and for 1 ms more, in points.

    Round -> columns of `SLOPES`, mean over the seeds; None where the allocator tells none, or the run is older.
    """
    tables = [run.rounds for run in scheme.runs]
    if any(name not in table for table in tables for name in SLOPES):
        return None
    parts = []
    for table in tables:
        served = (table["selected"] - table["infeasible"]).where(lambda count: count > 0)
        parts.append(
            pd.DataFrame({n: -table[n] * STEPS[n][1] / served * 100 for n in SLOPES}).set_index(
                table["round"]
            )
        )
    mean = pd.concat(parts).groupby(level=0).mean().dropna()
    return mean if len(mean) else None


def worth(schemes: list[Scheme], style: Style) -> Figure | None:
    """One panel for the band and one for the time, round by round."""
    found = [(scheme, table) for scheme in schemes if (table := slopes(scheme)) is not None]
    if not found:
        return None
    look = looks(schemes, style.grey)
    figure, panels = two_panels(style, 2.8, 1.9, False)
    for i, (scheme, table) in enumerate(found):
        mine, rounds = look[scheme.label], table.index.to_numpy()
        for panel, name in zip(panels, SLOPES, strict=True):
            panel.plot(
                rounds, table[name], color=mine.colour, ls=mine.line, marker=mine.marker, label=wrap(scheme.label),
                markevery=stagger(i, found, len(rounds)), ms=nest(i, found, len(rounds)),
            )  # fmt: skip
    for panel, name in zip(panels, SLOPES, strict=True):
        panel.set(xlabel="global round", ylabel=f"fall of mean {RHO} (points per {STEPS[name][0]})")
        panel.margins(x=0.02)
        panel.set_ylim(0.0, 1.1 * max(table[name].max() for _, table in found) or 1.0)
        whole_numbers(panel.xaxis)
    legend(figure, panels[0], style)
    return figure


def worth_data(schemes: list[Scheme]) -> Table:
    """One line per scheme and round."""
    columns = (
        Column("scheme", "Scheme", number=False),
        Column("round", "Round"),
        Column("points_per_mhz", "Points per MHz", figures(4)),
        Column("points_per_ms", "Points per ms", figures(4)),
    )
    rows = []
    for scheme in schemes:
        table = slopes(scheme)
        if table is not None:
            each = zip(
                table.index.tolist(), *(table[name].tolist() for name in SLOPES), strict=True
            )
            rows += [(scheme.label, int(g), *values) for g, *values in each]
    return Table("worth", "Fall of the mean pruning ratio, to first order.", columns, tuple(rows))
