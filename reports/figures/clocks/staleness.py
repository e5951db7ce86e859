"""What became of the jobs, and how old the updates were that were used."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from reports.run_data.job_outcomes import KINDS, USED, kinds, overlaps
from reports.run_data.scheme_grouping import Scheme
from reports.styling.axes_and_legends import two_panels, whole_numbers, wrap
from reports.styling.colours_and_markers import OUTCOME_COLOURS, hatches, scheme_styles
from reports.styling.figure_style import FigureStyle
from reports.styling.labelled_bars import bars_legend, stacked_bars
from reports.styling.number_formats import MEAN_COUNT, significant
from reports.styling.table_formats import SCHEME, Column, Table


def outcomes_per_run(schemes: list[Scheme]) -> dict[str, list[float]]:
    """Kind -> jobs a run of each scheme, mean over seeds; kinds that no scheme has are left out."""
    found = [[kinds(run) for run in scheme.runs] for scheme in schemes]
    counts = {
        kind: [float(np.mean([np.sum(each == kind) for each in runs])) for runs in found]
        for kind in KINDS
    }
    return {kind: row for kind, row in counts.items() if any(row)}


def staleness_shares(scheme: Scheme) -> np.ndarray:
    """Share of the used updates of all seeds with staleness 0, 1, 2, ...; empty where none is."""
    used = [
        run.device_rounds["staleness"].to_numpy()[np.isin(kinds(run), USED)]
        for run in scheme.runs
        if overlaps(run)
    ]
    counts = np.bincount(np.concatenate(used).astype(int)) if used else np.zeros(0)
    return counts / counts.sum() if counts.sum() else counts


def staleness(schemes: list[Scheme], style: FigureStyle) -> Figure:
    """Jobs by what became of them, and the histogram of staleness."""
    styles, rows = scheme_styles(schemes, style.grey), len(schemes)
    figure, (left, right) = two_panels(style, 1.3 + 0.42 * rows, 1.1 + 0.3 * rows, False)
    counts = outcomes_per_run(schemes)
    looks = OUTCOME_COLOURS, hatches(counts, style)
    stacked_bars(left, schemes, counts, *looks, "jobs", MEAN_COUNT)
    left.set_xlabel("jobs in a run")
    whole_numbers(left.xaxis)
    for scheme in schemes:
        shares = staleness_shares(scheme) * 100
        if len(shares):
            look = styles[scheme.label]
            kind: dict[str, Any] = {"color": look.colour, "ls": look.dashes}
            kind |= {"drawstyle": "steps-mid", "label": wrap(scheme.label)}
            # a step of zero at both ends, so that a single value is a bar
            right.plot(np.arange(-1, len(shares) + 1), np.pad(shares, 1), **kind)
    right.set(xlabel="staleness (versions)", ylabel="share of used updates (%)")
    right.set_ylim(bottom=0)
    most = max((line.get_xdata()[-1] for line in right.lines), default=1)
    right.set_xlim(-0.55, most - 0.45)  # half a step beside the least and the largest one
    whole_numbers(right.xaxis)
    bars_legend(right, [line.get_label() for line in right.lines])
    return figure


def staleness_table(schemes: list[Scheme]) -> Table:
    """One line per scheme and staleness, and one per scheme and kind of job."""
    columns = (
        SCHEME,
        Column("what", "What", number=False),
        Column("staleness", "Staleness"),
        Column("jobs", "Jobs a run", MEAN_COUNT),
        Column("share", "Share of used updates", significant(4)),
    )
    counts = outcomes_per_run(schemes)
    rows: list[tuple[Any, ...]] = []
    for i, scheme in enumerate(schemes):
        rows += [(scheme.label, kind, None, row[i], None) for kind, row in counts.items()]
        used = sum(counts[kind][i] for kind in USED if kind in counts)
        for tau, share in enumerate(staleness_shares(scheme).tolist()):
            rows.append((scheme.label, "used", tau, share * used, share))
    caption = "Jobs by what became of them, means over seeds, and used updates by staleness."
    return Table("staleness", caption, columns, tuple(rows))
