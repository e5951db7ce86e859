"""Figures from event logs: each takes schemes and ``wide`` (page or IEEE column) and returns a matplotlib Figure."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import blended_transform_factory

from reports.run_data import measures
from reports.run_data.schemes import Scheme
from reports.styling.house_style import (
    INK,
    QUIET,
    RHO,
    THRESHOLD,
    Style,
    hatches,
    looks,
    phase_colours,
    with_own_markers,
)
from reports.styling.panels import legend, nest, plain_log, stagger, two_panels, whole_numbers, wrap

ROW_CHARACTERS = 46  # of a line of text in half a page, or in a column
DODGE_DEVICES = 16  # up to here every device gets its own error bars; beyond, a line and a band


def latency(schemes: list[Scheme], style: Style) -> Figure:
    """Latency of the rounds (mean, range) and over the rounds, with the threshold T_th."""
    look = looks(schemes, style.grey)
    figure, (left, right) = two_panels(
        style, 0.9 + 0.42 * max(5, len(schemes)), 0.3 + 0.3 * max(5, len(schemes)), False
    )
    for i, scheme in enumerate(schemes):
        mine, value = look[scheme.label], measures.latencies_s(scheme) * 1e3
        left.plot(
            [value.min(), value.max()],
            [i, i],
            color=mine.colour,
            lw=3,
            alpha=0.45,
            solid_capstyle="butt",
        )
        left.plot(value.mean(), i, color=mine.colour, marker=mine.marker, ls="none", zorder=3)
        _row_label(left, i, scheme.label, f"{value.mean():.4g} ms")
        _over_rounds(right, measures.curve(scheme, "latency_s"), mine, i, schemes)
    _rows(left, len(schemes))
    log = _stretch([measures.latencies_s(scheme) for scheme in schemes]) > 30
    limits = sorted(
        {scheme.threshold_s * 1e3 for scheme in schemes if scheme.threshold_s is not None}
    )
    for limit in limits:
        left.axvline(limit, color=THRESHOLD, ls="--", lw=0.9)
        right.axhline(limit, color=THRESHOLD, ls="--", lw=0.9)
    left.set(xlabel="latency per round (ms): mean, min to max")
    right.set(xlabel="global round", ylabel="latency per round (ms)")
    whole_numbers(right.xaxis)
    _latency_scale(left.xaxis, left.set_xscale, left.set_xlim, left.get_xlim, log)
    _latency_scale(right.yaxis, right.set_yscale, right.set_ylim, right.get_ylim, log)
    _name_limits(left, limits)
    return figure


def _over_rounds(panel: Axes, curve: measures.Curve, look, i: int, schemes: list[Scheme]) -> None:
    """The mean over seeds, with a band where there are several."""
    every, size = stagger(i, schemes, len(curve.round)), nest(i, schemes, len(curve.round))
    kind = {
        "color": look.colour,
        "ls": look.line,
        "marker": look.marker,
        "markevery": every,
        "ms": size,
    }
    panel.plot(curve.round, curve.mean * 1e3, **kind)
    if curve.over == "seeds":
        low, high = (curve.mean - curve.spread) * 1e3, (curve.mean + curve.spread) * 1e3
        panel.fill_between(
            curve.round, np.maximum(low, 0), high, color=look.colour, alpha=0.15, lw=0
        )


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
        plain_log(axis, set_scale)
    else:
        set_limits(0, get_limits()[1] * 1.02)


def devices(schemes: list[Scheme], style: Style) -> Figure:
    """Pruning ratio and band share of every device: mean over the rounds it took part in, min to max."""
    look = with_own_markers(looks(schemes, style.grey))
    figure = Figure(figsize=(style.width_in, 4.4 if style.wide else 3.6), layout="constrained")
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
    whole_numbers(panels[1].xaxis, 20)
    legend(figure, panels[0], style)
    return figure


def _range_per_device(panel: Axes, table, offset: float, look, label: str, stagger) -> None:
    """Error bars side by side; where ``stagger`` says which devices get a marker, a line and a band."""
    x, mean = table.index.to_numpy() + offset, table["mean"].to_numpy()
    low, high = table["min"].to_numpy(), table["max"].to_numpy()
    if stagger is None:
        spread = np.maximum([mean - low, high - mean], 0)
        panel.errorbar(
            x,
            mean,
            spread,
            color=look.colour,
            marker=look.marker,
            ls="none",
            elinewidth=1,
            label=label,
        )
    else:
        panel.plot(
            x,
            mean,
            color=look.colour,
            ls=look.line,
            lw=0.9,
            marker=look.marker,
            markevery=stagger,
            label=label,
        )
        panel.fill_between(x, low, high, color=look.colour, alpha=0.10, lw=0)


def costs(schemes: list[Scheme], style: Style) -> Figure:
    """Bits (up, down) and joules (by phase) per round of each scheme, means over rounds and seeds."""
    figure, (left, right) = two_panels(
        style, 1.3 + 0.42 * len(schemes), 0.8 + 0.3 * len(schemes), False
    )
    bits, energy = bits_per_round(schemes), joules_per_round(schemes)
    bits = {name: [value / 1e6 for value in row] for name, row in bits.items()}
    colours = phase_colours(list(energy))
    both = {"uplink": colours.get("upload", "#0072B2"), "downlink": "#9A9A9A"}
    stacked_bars(left, schemes, bits, both, hatches(list(bits), style), "Mbit")
    used = {name: row for name, row in energy.items() if any(row)}
    stacked_bars(right, schemes, used, colours, hatches(list(used), style), "J")
    left.set_xlabel("payload per round, all devices (Mbit)")
    right.set_xlabel("energy per round, all devices (J)")
    return figure


def bits_per_round(schemes: list[Scheme]) -> dict[str, list[float]]:
    """Way -> bits of all devices per round, for each scheme."""
    return {
        f"{way}link": [_per_round(scheme, lambda run, way=way: measures.total(run, f"bits_{way}"))
                       for scheme in schemes]
        for way in ("up", "down")
    }  # fmt: skip


def joules_per_round(schemes: list[Scheme]) -> dict[str, list[float]]:
    """Phase -> joules of all devices per round, for each scheme."""
    spent = [[measures.energy_by_phase(run) for run in scheme.runs] for scheme in schemes]
    names = measures.ordered_phases(
        list(dict.fromkeys(phase for runs in spent for parts in runs for phase in parts))
    )
    rounds = [sum(len(run.rounds) for run in scheme.runs) for scheme in schemes]
    return {
        phase: [
            sum(parts.get(phase, 0.0) for parts in runs) / n
            for runs, n in zip(spent, rounds, strict=True)
        ]
        for phase in names
    }


def _per_round(scheme: Scheme, value) -> float:
    return sum(value(run) for run in scheme.runs) / sum(len(run.rounds) for run in scheme.runs)


def stacked_bars(
    panel: Axes,
    schemes: list[Scheme],
    parts: dict[str, list[float]],
    colours: dict,
    hatched: dict,
    unit: str,
) -> None:
    """Stacked horizontal bars with the label and the total above each."""
    left = np.zeros(len(schemes))
    rows = np.arange(len(schemes))
    for name, row in parts.items():
        edge = {"edgecolor": INK if hatched[name] else "white", "lw": 0.3, "hatch": hatched[name]}
        panel.barh(rows, row, left=left, height=0.34, color=colours[name], label=name, **edge)
        left += np.asarray(row)
    for i, scheme in enumerate(schemes):
        _row_label(panel, i, scheme.label, f"{left[i]:.4g} {unit}")
    _rows(panel, len(schemes))
    if parts:
        columns = min(len(parts), ROW_CHARACTERS // (max(map(len, parts)) + 5))
        look = {
            "handlelength": 1.4,
            "handletextpad": 0.4,
            "columnspacing": 0.8,
            "borderaxespad": 0.2,
        }
        panel.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=columns, **look)


def _stretch(values: list[np.ndarray]) -> float:
    low = min(float(value.min()) for value in values)
    return max(float(value.max()) for value in values) / low if low > 0 else 1.0


def _row_label(panel: Axes, row: int, label: str, number: str) -> None:
    """A line of text above a row; it may run over the whole width of the panel."""
    place = blended_transform_factory(panel.transAxes, panel.transData)
    shown = f"{shortened(label, ROW_CHARACTERS - len(number))}: {number}"
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
    panel.text(
        0.012,
        row - 0.26,
        shown,
        transform=place,
        va="bottom",
        ha="left",
        color=INK,
        bbox=box,
        zorder=4,
    )


def shortened(label: str, most: int) -> str:
    """A label of so many characters: its name is cut, not the bracket that tells it from others of that name."""
    if len(label) <= most:
        return label
    bracket = "".join(label.partition(" (")[1:])
    if most - len(bracket) < 4:
        bracket = ""
    return f"{label[: most - len(bracket) - 1].rstrip()}…{bracket}"


def _rows(panel: Axes, count: int) -> None:
    panel.set_ylim(count - 0.55, -0.95)
    panel.set_yticks([])
    panel.grid(axis="y", visible=False)
    panel.spines["left"].set_color(QUIET)
