"""Latency per round: round by round, its distribution, and its parts by phase."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import combinations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import blended_transform_factory

from edgesim.results.finished_run import FinishedRun
from reports.figures.learning_curves import draw_interval
from reports.run_data.job_outcomes import overlaps
from reports.run_data.scheme_grouping import Scheme
from reports.run_data.statistics.round_curves import round_curve
from reports.run_data.statistics.round_latencies import (
    latencies_s,
    mean_latency_s,
    ordered_phases,
    thresholds_s,
)
from reports.styling.axes_and_legends import (
    legend,
    one_panel,
    set_scales,
    show_whole_share,
    staggered,
    threshold_handles,
    threshold_label,
    threshold_text,
    two_panels,
    whole_numbers,
    widen_equal,
    wrap,
)
from reports.styling.colours_and_markers import (
    hatches,
    phase_colours,
    scheme_styles,
)
from reports.styling.figure_style import THRESHOLD, THRESHOLD_LINE, FigureStyle
from reports.styling.labelled_bars import row_labels, rows_from_above, stacked_bars
from reports.styling.number_formats import significant
from reports.styling.table_formats import SCHEME, Column, Table

WAITING = "waiting"
SLOWEST, MEAN = "slowest device", "mean device"


def latency_by_round(schemes: list[Scheme], style: FigureStyle) -> Figure:
    """Latency of the rounds (mean, range) and over the rounds, with the threshold T_th."""
    styles = scheme_styles(schemes, style.grey)
    rows, (scale, title) = max(5, len(schemes)), latency_axis(style)
    figure, (left, right) = two_panels(style, 0.9 + 0.42 * rows, 0.3 + 0.3 * rows, False)
    for i, scheme in enumerate(schemes):
        look, value = styles[scheme.label], latencies_s(scheme) * scale
        ends = [value.min(), value.max()]
        left.plot(ends, [i, i], color=look.colour, lw=3, alpha=0.45, solid_capstyle="butt")
        left.plot(mean_latency_s(scheme) * scale, i, **look.points, zorder=3)
        curve = round_curve(scheme, "latency_s")
        if curve is not None:
            markers = staggered(i, len(schemes), len(curve.rounds)) | {"label": wrap(scheme.label)}
            right.plot(curve.rounds, curve.mean * scale, **look.line, **markers)
            draw_interval(right, curve.rounds, curve, scale, look.colour)
    means = [significant(4)(mean_latency_s(scheme) * scale) for scheme in schemes]
    unit = style.units.latency
    row_labels(left, [scheme.label for scheme in schemes], [f"{mean} {unit}" for mean in means])
    rows_from_above(left, len(schemes))
    limits_s = thresholds_s(schemes)
    for limit_s in limits_s:
        left.axvline(limit_s * scale, **THRESHOLD_LINE)
        name = threshold_label(limit_s, style.units)
        right.axhline(limit_s * scale, **THRESHOLD_LINE, label=name)
    left.set(xlabel=f"{title}: mean, min to max")
    right.set(xlabel="global round", ylabel=title)
    whole_numbers(right.xaxis)
    own = "log" if _spans_decades(schemes) else "linear"
    set_scales(right, style, y=own)
    # the left one has latencies along x
    set_scales(left, replace(style, x_scale=style.y_scale, y_scale="linear"), x=own)
    if right.get_yscale() == "linear":
        left.set_xlim(0, left.get_xlim()[1] * 1.02)
        right.set_ylim(0, right.get_ylim()[1] * 1.02)
    _name_thresholds(left, limits_s, style)
    return figure


def latency_axis(style: FigureStyle) -> tuple[float, str]:
    """From seconds to the unit of latencies, and the title of their axis."""
    return style.units.axis("latency per round", "latency")


def _spans_decades(schemes: list[Scheme]) -> bool:
    """Is the longest round more than 30 times as long as the shortest?"""
    values = np.concatenate([latencies_s(scheme) for scheme in schemes])
    return bool(0 < 30 * values.min() < values.max())


def _name_thresholds(panel: Axes, limits_s: list[float], style: FigureStyle) -> None:
    """Write each threshold above its line, or all above one where their names would touch."""
    limits = [limit_s * latency_axis(style)[0] for limit_s in limits_s]
    names = [threshold_text(limit_s, style.units) for limit_s in limits_s]
    apart = [threshold_label(limit_s, style.units) for limit_s in limits_s[:1]] + names[1:]
    written = [_above(panel, *each) for each in zip(limits, apart, strict=True)]
    boxes = [text.get_window_extent() for text in written]
    if any(one.overlaps(other) for one, other in combinations(boxes, 2)):
        for text in written:
            text.remove()
        between = ", " if len(names) <= 3 else " to "
        shown = names if len(names) <= 3 else [names[0], names[-1]]
        _above(panel, limits[0], f"thresholds {between.join(shown)}")


def _above(panel: Axes, limit: float, name: str) -> Text:
    """A text above the line of a threshold, towards the side where there is room."""
    place = blended_transform_factory(panel.transData, panel.transAxes)
    across = panel.transAxes.inverted().transform(panel.transData.transform((limit, 0)))[0]
    side = "left" if across < 0.6 else "right"
    return panel.text(limit, 1.01, name, color=THRESHOLD, transform=place, ha=side, va="bottom")


def latency_cdf(schemes: list[Scheme], style: FigureStyle) -> Figure:
    """Share of the rounds (all seeds) that took at most so long, with the threshold T_th."""
    styles = scheme_styles(schemes, style.grey)
    figure, panel = one_panel(style, 3.2, 2.5)
    scale, title = latency_axis(style)
    for scheme in schemes:
        look, (x, y) = styles[scheme.label], distribution(scheme)
        kind = look.line | {"markevery": max(1, len(x) // 6), "label": wrap(scheme.label)}
        panel.step(np.r_[x[0], x] * scale, np.r_[0.0, y] * 100, where="post", **kind)
    limits_s = thresholds_s(schemes)
    for limit_s in limits_s:
        panel.axvline(limit_s * scale, **THRESHOLD_LINE)
    panel.set(xlabel=title, ylabel="share of rounds (%)")
    set_scales(panel, style, x="log" if _spans_decades(schemes) else "linear")
    widen_equal(panel.xaxis)
    show_whole_share(panel)
    handles = threshold_handles(limits_s, style.units) if len(limits_s) <= 4 else ()
    legend(figure, panel, style, handles)
    return figure


def distribution(scheme: Scheme) -> tuple[np.ndarray, np.ndarray]:
    """Empirical distribution: (sorted latencies, s; share of rounds that took at most so long)."""
    values = np.sort(latencies_s(scheme))
    return values, np.arange(1, len(values) + 1) / len(values)


def cdf_table(schemes: list[Scheme]) -> Table:
    """One line per scheme and latency."""
    latency = Column("latency_s", "Latency (s)", significant(5))
    columns = (SCHEME, latency, Column("share", "Share", significant(4)))
    rows = [
        (scheme.label, float(x), float(y))
        for scheme in schemes
        for x, y in zip(*distribution(scheme), strict=True)
    ]
    return Table("cdf", "Share of the rounds that took at most so long.", columns, tuple(rows))


def any_phase(schemes: list[Scheme]) -> bool:
    """Does any round of these schemes have phases?"""
    lengths_s = (phase_lengths_s(scheme, MEAN) for scheme in with_rounds(schemes))
    return any(each.keys() - {WAITING} for each in lengths_s)


def latency_by_phase(schemes: list[Scheme], style: FigureStyle) -> Figure:
    """Mean latency per round by phase: of the device that finishes last, and of the mean device."""
    schemes = with_rounds(schemes)
    parts = {who: [phase_lengths_s(scheme, who) for scheme in schemes] for who in (SLOWEST, MEAN)}
    phases = [name for each in parts[MEAN] for name in each if name != WAITING]
    names = [*ordered_phases(phases), WAITING]
    colours, hatched = phase_colours(names), hatches(names, style)
    figure, panels = two_panels(style, 1.3 + 0.42 * len(schemes), 0.8 + 0.34 * len(schemes), False)
    scale, title = latency_axis(style)
    for panel, who in zip(panels, parts, strict=True):
        rows_s = {name: [each.get(name, 0.0) for each in parts[who]] for name in names}
        rows = {n: [s * scale for s in row] for n, row in rows_s.items() if max(row) > 1e-9}
        stacked_bars(panel, schemes, rows, colours, hatched, style.units.latency)
        panel.set_xlabel(f"{title}, {who}")
    return figure


def with_rounds(schemes: list[Scheme]) -> list[Scheme]:
    """The schemes whose rounds have phases: not those with jobs that go on over versions."""
    return [scheme for scheme in schemes if not overlaps(scheme.first)]


@lru_cache(maxsize=32)  # the figure and its table ask for the same
def phase_lengths_s(scheme: Scheme, who: str) -> dict[str, float]:
    """Phase -> seconds per round, mean over rounds, then seeds; the sum is the mean latency.

    Args:
        scheme: its runs are taken together.
        who: SLOWEST, in every round the device whose last phase ends last; or MEAN, over the
            devices that took part.
    """
    means = [_mean_lengths_s(run, who) for run in scheme.runs]
    names = dict.fromkeys(name for each in means for name in each)
    return {name: sum(each.get(name, 0.0) for each in means) / len(means) for name in names}


def _mean_lengths_s(run: FinishedRun, who: str) -> dict[str, float]:
    """Phase -> seconds per round, mean over the rounds; waiting is the rest of their latency."""
    spans = run.spans[~run.spans["phase"].isin(("idle", "off"))]
    ends_s = spans["end_s"].to_numpy()
    phases, names = pd.factorize(spans["phase"])
    # a job of this figure is a device in a round, and its number is in the order of both
    g, k = (spans[name].to_numpy() for name in ("round", "device"))
    devices = k.max(initial=0) + 1
    jobs, job = np.unique(g * devices + k, return_inverse=True)
    lengths_s = np.zeros((len(jobs), len(names)))
    np.add.at(lengths_s, (job, phases), ends_s - spans["start_s"].to_numpy())
    rounds, first, count = np.unique(jobs // devices, return_index=True, return_counts=True)
    if who == MEAN:
        in_round_s = np.add.reduceat(lengths_s, first, axis=0) / count[:, None]
    else:
        last_s = np.full(len(jobs), -np.inf)
        np.maximum.at(last_s, job, ends_s)
        bounds = zip(first, first + count, strict=True)
        in_round_s = lengths_s[[i + int(last_s[i:j].argmax()) for i, j in bounds]]
    played, latency_s = (run.rounds[name].to_numpy() for name in ("round", "latency_s"))
    in_phases_s = np.zeros((len(played), len(names)))
    in_phases_s[np.searchsorted(played, rounds)] = in_round_s
    waiting_s = np.maximum(latency_s - in_phases_s.sum(axis=1), 0.0)
    means = np.mean(np.column_stack([in_phases_s, waiting_s]), axis=0)
    return dict(zip([*names, WAITING], means.tolist(), strict=True))


def phase_table(schemes: list[Scheme]) -> Table:
    """One line per scheme, device and phase."""
    columns = (
        SCHEME,
        Column("device", "Device", number=False),
        Column("phase", "Phase", number=False),
        Column("seconds", "Seconds per round", significant(4)),
    )
    rows = [
        (scheme.label, who, name, seconds)
        for scheme in with_rounds(schemes)
        for who in (SLOWEST, MEAN)
        for name, seconds in phase_lengths_s(scheme, who).items()
    ]
    return Table("decomposition", "Mean latency per round by phase.", columns, tuple(rows))
