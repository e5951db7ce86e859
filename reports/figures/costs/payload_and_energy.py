"""Bits by direction and joules by phase, per round of each scheme."""

from __future__ import annotations

from matplotlib.figure import Figure

from reports.run_data.scheme_grouping import Scheme
from reports.run_data.statistics.round_latencies import ordered_phases
from reports.run_data.statistics.run_totals import total
from reports.styling.axes_and_legends import two_panels
from reports.styling.colours_and_markers import hatches, phase_colours
from reports.styling.figure_style import FigureStyle
from reports.styling.labelled_bars import stacked_bars
from reports.styling.number_formats import significant
from reports.styling.table_formats import SCHEME, Column, Table

LINK_COLOURS = {"uplink": "#0072B2", "downlink": "#9A9A9A"}


def payload_and_energy(schemes: list[Scheme], style: FigureStyle) -> Figure:
    """Bits by direction and joules by phase, means over rounds, then seeds."""
    rows = len(schemes)
    figure, (left, right) = two_panels(style, 1.3 + 0.42 * rows, 0.8 + 0.3 * rows, False)
    bits, joules = bits_per_round(schemes), joules_per_round(schemes)
    used = {name: row for name, row in joules.items() if any(row)}
    for panel, name, rows_si, colours, unit in (
        (left, "payload", bits, LINK_COLOURS, "bits"),
        (right, "energy", used, phase_colours(joules), "energy"),
    ):
        scale, title = style.units.axis(f"{name} per round, all devices", unit)
        parts = {part: [value * scale for value in row] for part, row in rows_si.items()}
        symbol = getattr(style.units, unit)
        stacked_bars(panel, schemes, parts, colours, hatches(parts, style), symbol)
        panel.set_xlabel(title)
    return figure


def bits_per_round(schemes: list[Scheme]) -> dict[str, list[float]]:
    """Direction -> bits of all devices per round, for each scheme."""
    return {
        f"{way}link": [
            sum(total(run, f"bits_{way}") / len(run.rounds) for run in scheme.runs)
            / len(scheme.runs)
            for scheme in schemes
        ]
        for way in ("up", "down")
    }


def joules_per_round(schemes: list[Scheme]) -> dict[str, list[float]]:
    """Phase -> joules of all devices per round, for each scheme."""
    spent = [
        [
            run.spans.groupby("phase", sort=False)["energy_j"].sum() / len(run.rounds)
            for run in scheme.runs
        ]
        for scheme in schemes
    ]
    phases = ordered_phases([phase for runs in spent for each in runs for phase in each.index])
    return {
        phase: [sum(float(each.get(phase, 0.0)) for each in runs) / len(runs) for runs in spent]
        for phase in phases
    }


def payload_and_energy_table(schemes: list[Scheme]) -> Table:
    """One line per scheme and part: bits by direction, joules by phase."""
    columns = (
        SCHEME,
        Column("part", "Part", number=False),
        Column("unit", "Unit", number=False),
        Column("per_round", "Per round, all devices", significant(4)),
    )
    both = (("bit", bits_per_round(schemes)), ("J", joules_per_round(schemes)))
    rows = [
        (scheme.label, part, unit, row[i])
        for i, scheme in enumerate(schemes)
        for unit, parts in both
        for part, row in parts.items()
    ]
    return Table("costs-figure", "Means over rounds and seeds.", columns, tuple(rows))
