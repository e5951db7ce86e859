"""Figures from event logs: each takes schemes and ``wide`` (page or IEEE column) and returns a matplotlib Figure."""

from __future__ import annotations

import textwrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter
from matplotlib.transforms import blended_transform_factory

from reports import measures
from reports.panels import legend, nest, stagger, two_panels, wrap
from reports.schemes import Scheme
from reports.style import COLUMN_IN, INK, PAGE_IN, QUIET, RHO, THRESHOLD, looks, phase_colours

DODGE_DEVICES = 16  # up to here every device gets its own error bars; beyond, a line and a band


def latency(schemes: list[Scheme], wide: bool) -> Figure:
    """Latency of the rounds (mean, range) and over the rounds, with the threshold T_th."""
    look = looks(schemes)
    figure, (left, right) = two_panels(wide, 0.9 + 0.42 * max(5, len(schemes)), 0.3 + 0.3 * max(5, len(schemes)), False)
    for i, scheme in enumerate(schemes):
        mine, value = look[scheme.label], measures.latencies_s(scheme) * 1e3
        left.plot([value.min(), value.max()], [i, i], color=mine.colour, lw=3, alpha=0.45, solid_capstyle="butt")
        left.plot(value.mean(), i, color=mine.colour, marker=mine.marker, ls="none", zorder=3)
        _row_label(left, i, f"{scheme.label}: {value.mean():.4g} ms")
        first = scheme.first.rounds
        right.plot(
            first["round"], first["latency_s"] * 1e3, color=mine.colour, ls=mine.line, marker=mine.marker,
            markevery=stagger(i, schemes, len(first)), ms=nest(i, schemes, len(first)),
        )  # fmt: skip
    _rows(left, len(schemes))
    log = _stretch([measures.latencies_s(scheme) for scheme in schemes]) > 30
    limits = sorted({scheme.threshold_s * 1e3 for scheme in schemes if scheme.threshold_s is not None})
    for limit in limits:
        left.axvline(limit, color=THRESHOLD, ls="--", lw=0.9)
        right.axhline(limit, color=THRESHOLD, ls="--", lw=0.9)
    left.set(xlabel="latency per round (ms): mean, min to max")
    right.set(xlabel="global round", ylabel="latency per round (ms)")
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    _latency_scale(left.xaxis, left.set_xscale, left.set_xlim, left.get_xlim, log)
    _latency_scale(right.yaxis, right.set_yscale, right.set_ylim, right.get_ylim, log)
    _name_limits(left, limits)
    return figure


def _name_limits(panel: Axes, limits_ms: list[float]) -> None:
    """Write each threshold above its line, towards the side where there is room."""
    place = blended_transform_factory(panel.transData, panel.transAxes)
    for i, limit in enumerate(limits_ms):
        across = panel.transAxes.inverted().transform(panel.transData.transform((limit, 0)))[0]
        text = f"threshold {limit:.4g} ms" if i == 0 else f"{limit:.4g} ms"
        side = "left" if across < 0.6 else "right"
        panel.text(limit, 1.01, text, color=THRESHOLD, transform=place, ha=side, va="bottom")


def _latency_scale(axis, set_scale, set_limits, get_limits, log: bool) -> None:
    if log:
        set_scale("log")
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    else:
        set_limits(0, get_limits()[1] * 1.02)


def devices(schemes: list[Scheme], wide: bool) -> Figure:
    """Pruning ratio and band share of every device: mean over the rounds it took part in, min to max."""
    look = looks(schemes)
    width = PAGE_IN if wide else COLUMN_IN
    figure = Figure(figsize=(width, 4.4 if wide else 3.6), layout="constrained")
    panels = figure.subplots(2, 1, sharex=True)
    for panel, column, label in zip(
        panels, ("rho", "share"), (f"pruning ratio {RHO}", "band share b (%)"), strict=True
    ):
        scale = 100.0 if column == "share" else 1.0
        for i, scheme in enumerate(schemes):
            table = measures.per_device(scheme, column) * scale
            few = len(table) <= DODGE_DEVICES
            every = None if few else stagger(i, schemes, len(table))
            offset = (i - (len(schemes) - 1) / 2) * 0.84 / len(schemes) if few else 0.0
            _range_per_device(panel, table, offset, look[scheme.label], wrap(scheme.label), every)
        panel.set_ylabel(label)
        panel.grid(axis="x", visible=False)
        top = max(panel.get_ylim()[1], 0.1) * 1.04
        panel.set_ylim(-0.03 * top, top)
    panels[1].set_xlabel("device")
    panels[1].xaxis.set_major_locator(MaxNLocator(integer=True, nbins=20))
    legend(figure, panels[0], wide)
    return figure


def _range_per_device(panel: Axes, table, offset: float, look, label: str, stagger) -> None:
    """Error bars side by side; where ``stagger`` says which devices get a marker, a line and a band."""
    x, mean = table.index.to_numpy() + offset, table["mean"].to_numpy()
    low, high = table["min"].to_numpy(), table["max"].to_numpy()
    if stagger is None:
        spread = np.maximum([mean - low, high - mean], 0)
        panel.errorbar(x, mean, spread, color=look.colour, marker=look.marker, ls="none", elinewidth=1, label=label)
    else:
        panel.plot(x, mean, color=look.colour, ls=look.line, lw=0.9, marker=look.marker, markevery=stagger, label=label)
        panel.fill_between(x, low, high, color=look.colour, alpha=0.10, lw=0)


def costs(schemes: list[Scheme], wide: bool) -> Figure:
    """Bits (up, down) and joules (by phase) per round of each scheme, means over rounds and seeds."""
    figure, (left, right) = two_panels(wide, 1.3 + 0.42 * len(schemes), 0.8 + 0.3 * len(schemes), False)
    bits = {
        f"{way}link": [_per_round(scheme, lambda run, way=way: measures.total(run, f"bits_{way}")) / 1e6
                       for scheme in schemes]
        for way in ("up", "down")
    }  # fmt: skip
    joules = [[measures.energy_by_phase(run) for run in scheme.runs] for scheme in schemes]
    names = measures.ordered_phases(list(dict.fromkeys(p for runs in joules for parts in runs for p in parts)))
    lookup = dict(zip(schemes, joules, strict=True))
    energy = {
        phase: [
            sum(parts.get(phase, 0.0) for parts in lookup[scheme]) / sum(len(run.rounds) for run in scheme.runs)
            for scheme in schemes
        ]
        for phase in names
    }
    colours = phase_colours(names)
    _bars(left, schemes, bits, {"uplink": colours.get("upload", "#0072B2"), "downlink": "#9A9A9A"}, "Mbit")
    _bars(right, schemes, {name: row for name, row in energy.items() if any(row)}, colours, "J")
    left.set_xlabel("payload per round, all devices (Mbit)")
    right.set_xlabel("energy per round, all devices (J)")
    return figure


def _per_round(scheme: Scheme, value) -> float:
    return sum(value(run) for run in scheme.runs) / sum(len(run.rounds) for run in scheme.runs)


def _bars(panel: Axes, schemes: list[Scheme], parts: dict[str, list[float]], colours: dict, unit: str) -> None:
    """Stacked horizontal bars with the label and the total above each."""
    left = np.zeros(len(schemes))
    rows = np.arange(len(schemes))
    for name, row in parts.items():
        panel.barh(rows, row, left=left, height=0.34, color=colours[name], label=name, edgecolor="white", lw=0.3)
        left += np.asarray(row)
    for i, scheme in enumerate(schemes):
        _row_label(panel, i, f"{scheme.label}: {left[i]:.4g} {unit}")
    _rows(panel, len(schemes))
    if parts:
        columns = min(len(parts), 5)
        look = {"handlelength": 0.8, "handletextpad": 0.4, "columnspacing": 0.8, "fontsize": "small"}
        panel.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=columns, **look)


def _stretch(values: list[np.ndarray]) -> float:
    low = min(float(value.min()) for value in values)
    return max(float(value.max()) for value in values) / low if low > 0 else 1.0


def _row_label(panel: Axes, row: int, text: str) -> None:
    """A line of text above a row; it may run over the whole width of the panel."""
    place = blended_transform_factory(panel.transAxes, panel.transData)
    shown = textwrap.shorten(text, 64, placeholder="…")
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
    panel.text(0.012, row - 0.26, shown, transform=place, va="bottom", ha="left", color=INK, bbox=box, zorder=4)


def _rows(panel: Axes, count: int) -> None:
    panel.set_ylim(count - 0.55, -0.95)
    panel.set_yticks([])
    panel.grid(axis="y", visible=False)
    panel.spines["left"].set_color(QUIET)
