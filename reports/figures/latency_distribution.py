"""Where the time of a round goes: its distribution, and its parts."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reports.figures.bars import stacked_bars
from reports.run_data import measures
from reports.run_data.load_runs import Run
from reports.run_data.schemes import Scheme
from reports.styling.house_style import THRESHOLD, Style, hatches, looks, phase_colours
from reports.styling.panels import legend, one_panel, plain_log, two_panels, wrap
from reports.styling.table_formats import Column, Table

WAITING = "waiting"
SLOWEST, MEAN = "slowest device", "mean device"


def cdf(schemes: list[Scheme], style: Style) -> Figure:
    """Share of the rounds (all seeds) that took at most so long, with the threshold T_th."""
    look = looks(schemes, style.grey)
    figure, panel = one_panel(style, 3.2, 2.5)
    for scheme in schemes:
        mine, (x, y) = look[scheme.label], distribution(scheme)
        every = max(1, len(x) // 6)
        panel.step(
            np.r_[x[0], x] * 1e3, np.r_[0.0, y] * 100, where="post", color=mine.colour, ls=mine.line,
            marker=mine.marker, markevery=every, label=wrap(scheme.label),
        )  # fmt: skip
    limits = sorted(
        {scheme.threshold_s * 1e3 for scheme in schemes if scheme.threshold_s is not None}
    )
    for limit in limits:
        panel.axvline(limit, color=THRESHOLD, ls="--", lw=0.9)
    extra = [
        Line2D([], [], color=THRESHOLD, ls="--", lw=0.9, label=f"threshold {limit:.4g} ms")
        for limit in limits
    ]
    panel.set(xlabel="latency per round (ms)", ylabel="share of rounds (%)", ylim=(-2, 104))
    values = np.concatenate([measures.latencies_s(scheme) for scheme in schemes])
    if values.min() > 0 and values.max() > 30 * values.min():
        plain_log(panel.xaxis, panel.set_xscale)
    legend(figure, panel, style, extra if len(extra) <= 4 else extra[:0])
    return figure


def distribution(scheme: Scheme) -> tuple[np.ndarray, np.ndarray]:
    """Empirical distribution of the latency per round: (sorted latencies, s; share of rounds at most so long)."""
    values = np.sort(measures.latencies_s(scheme))
    return values, np.arange(1, len(values) + 1) / len(values)


def cdf_data(schemes: list[Scheme]) -> Table:
    """One line per scheme and latency."""
    columns = (
        Column("scheme", "Scheme", number=False),
        Column("latency_s", "Latency (s)"),
        Column("share", "Share"),
    )
    rows = [
        (s.label, float(x), float(y))
        for s in schemes
        for x, y in zip(*distribution(s), strict=True)
    ]
    return Table("cdf", "Share of the rounds that took at most so long.", columns, tuple(rows))


def decomposition(schemes: list[Scheme], style: Style) -> Figure | None:
    """Mean latency per round by phase: of the device that finishes last, and of the mean device."""
    parts = {who: [parts_s(scheme, who) for scheme in schemes] for who in (SLOWEST, MEAN)}
    names = [name for each in parts[MEAN] for name in each]
    names = [*measures.ordered_phases([n for n in dict.fromkeys(names) if n != WAITING]), WAITING]
    if len(names) == 1:
        return None
    colours, hatched = phase_colours(names), hatches(names, style)
    figure, panels = two_panels(style, 1.3 + 0.42 * len(schemes), 0.8 + 0.34 * len(schemes), False)
    for panel, who in zip(panels, parts, strict=True):
        rows = {name: [each.get(name, 0.0) * 1e3 for each in parts[who]] for name in names}
        rows = {name: row for name, row in rows.items() if max(row) > 1e-6}
        stacked_bars(panel, schemes, rows, colours, hatched, "ms")
        panel.set_xlabel(f"latency per round (ms), {who}")
    return figure


def parts_s(scheme: Scheme, who: str) -> dict[str, float]:
    """Phase -> seconds per round, mean over rounds and seeds; they and the waiting add up to the mean latency.

    who: SLOWEST, in every round the device whose last phase ends last; or MEAN, over the devices that took part.
    """
    found: dict[str, list[float]] = {}
    rounds = 0
    for run in scheme.runs:
        table = by_phase(run, who)
        rounds += len(table)
        for name in table:
            found.setdefault(name, []).append(float(table[name].sum()))
    return {name: sum(values) / rounds for name, values in found.items()}


def by_phase(run: Run, who: str):
    """Seconds of each round (rows) in each phase (columns); waiting is what is left of its latency."""
    spans = run.spans[run.spans["phase"] != "idle"]
    spans = spans.assign(length_s=spans["end_s"] - spans["start_s"])
    names = list(dict.fromkeys(spans["phase"]))
    device = spans.pivot_table(
        index=["round", "device"], columns="phase", values="length_s", aggfunc="sum", sort=False
    )
    device = device[names].fillna(0.0)
    if who == SLOWEST:
        last = spans.groupby(["round", "device"])["end_s"].max().groupby("round").idxmax()
        table = (
            device.loc[last.tolist()].droplevel("device")
            if len(last)
            else device.droplevel("device")
        )
    else:
        table = device.groupby("round").mean()
    latency = run.rounds.set_index("round")["latency_s"]
    table = table.reindex(latency.index, fill_value=0.0)
    return table.assign(**{WAITING: (latency - table.sum(axis=1)).clip(lower=0.0)})


def decomposition_data(schemes: list[Scheme]) -> Table:
    """One line per scheme, device and phase."""
    columns = (
        Column("scheme", "Scheme", number=False),
        Column("device", "Device", number=False),
        Column("phase", "Phase", number=False),
        Column("seconds", "Seconds per round"),
    )
    rows = [
        (scheme.label, who, name, seconds)
        for scheme in schemes
        for who in (SLOWEST, MEAN)
        for name, seconds in parts_s(scheme, who).items()
    ]
    return Table("decomposition", "Mean latency per round by phase.", columns, tuple(rows))
