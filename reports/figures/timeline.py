"""Two figures about devices: the timeline of one round, and who holds which labels."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import Normal, Stroke

from reports.run_data import measures
from reports.run_data.load_runs import Run
from reports.run_data.schemes import Scheme
from reports.styling.house_style import INK, THRESHOLD, Style, hatches, phase_colours
from reports.styling.panels import whole_numbers, wrap

MOST_DEVICES = 20  # rows of a timeline; of more devices, this many are shown
FULL_LANES = 12  # of a timeline with every device's number
MOST_PARTITIONS = 4

MARKS = {  # at the end of a device that was late or lost
    "late": {"color": THRESHOLD, "marker": "x", "ms": 4, "mew": 1.1},
    "failed": {"color": INK, "marker": "+", "ms": 5, "mew": 1.1},
}


def on_dark(width: float) -> list:
    """A white edge around a line so wide (pt), which a dark bar would swallow, above all in grey."""
    return [Stroke(linewidth=width + 1.4, foreground="white"), Normal()]


def timeline(schemes: list[Scheme], style: Style) -> Figure:
    """Who downloads, computes and uploads when in one middle round; one panel per scheme, time since its start."""
    g = measures.middle_round(schemes)
    phases = measures.ordered_phases(
        list(
            dict.fromkeys(
                phase for scheme in schemes for phase in scheme.first.spans["phase"].unique()
            )
        )
    )
    colours, hatched = phase_colours(phases), hatches(phases, style)
    columns = min(2, len(schemes)) if style.wide else 1
    rows = math.ceil(len(schemes) / columns)
    lanes = max(len(_shown(scheme.first, g)) for scheme in schemes)
    same_axis = shares_axis(schemes)
    title = 0.0 if same_axis else 0.15  # of a time axis that every panel has for itself
    height = rows * (0.55 + title + _lane_in(lanes, style) * max(lanes, 4)) + 0.7
    figure = Figure(figsize=(style.width_in, height), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=same_axis, squeeze=False).ravel()
    drawn: set[str] = set()
    for panel, scheme in zip(panels, schemes, strict=False):
        drawn |= _gantt(panel, scheme, g, colours, hatched)
    for panel in panels[len(schemes) :]:
        panel.set_visible(False)
    for panel in panels[max(0, len(schemes) - columns) if same_axis else 0 : len(schemes)]:
        panel.set_xlabel("time since the start of the round (ms)")
        panel.tick_params(labelbottom=True)
    for panel in panels:
        panel.set_xlim(left=0)
    seen = [phase for phase in phases if phase in drawn]
    handles = [Patch(label=phase, lw=0, **_fill(colours, hatched, phase)) for phase in seen]
    _timeline_legend(figure, handles, schemes, g, style)
    return figure


def _lane_in(lanes: int, style: Style) -> float:
    """Height of a device's lane, inches: room for its number, or for every second one."""
    return (0.14 if style.wide else 0.12) if lanes <= FULL_LANES else 0.09


def shares_axis(schemes: list[Scheme]) -> bool:
    """One time axis for all panels, unless the longest round would squeeze the shortest to under a third."""
    g = measures.middle_round(schemes)
    latency = [
        float(scheme.first.rounds.loc[scheme.first.rounds["round"] == g, "latency_s"].iloc[0])
        for scheme in schemes
    ]
    return max(latency) <= 3 * min(latency)


def _shown(run: Run, g: int) -> list[int]:
    """Devices of round g, at most MOST_DEVICES: the one that finishes last, and others evenly spaced by number."""
    table = run.device_rounds[run.device_rounds["round"] == g]
    devices = np.sort(table["device"].to_numpy())
    if len(devices) <= MOST_DEVICES:
        return [int(device) for device in devices]
    picked = set(devices[np.linspace(0, len(devices) - 1, MOST_DEVICES - 1).round().astype(int)])
    spans = run.spans[run.spans["round"] == g]
    if len(spans):
        picked.add(spans["device"].iloc[int(spans["end_s"].to_numpy().argmax())])
    return sorted(int(device) for device in picked)


def _gantt(panel: Axes, scheme: Scheme, g: int, colours: dict, hatched: dict) -> set[str]:
    """Bars of one scheme's round g; returns the phases that have a visible length."""
    shown = _shown(scheme.first, g)
    lane = {device: i for i, device in enumerate(shown)}
    spans, start, status = spans_of(scheme.first, g)
    spans = spans[spans["device"].isin(shown)]
    drawn: set[str] = set()
    for phase, part in spans.groupby("phase", sort=False):
        width = ((part["end_s"] - part["start_s"]) * 1e3).to_numpy()
        lanes = [lane[int(device)] for device in part["device"]]
        panel.barh(
            lanes,
            width,
            left=(part["start_s"] - start) * 1e3,
            height=0.78,
            lw=0,
            **_fill(colours, hatched, phase),
        )
        if (width > 0).any():
            drawn.add(phase)
    for device in shown:
        _mark(panel, lane[device], status.loc[device], spans[spans["device"] == device], start)
    if scheme.threshold_s is not None:
        panel.axvline(
            scheme.threshold_s * 1e3, color=THRESHOLD, ls="--", lw=0.9, path_effects=on_dark(0.9)
        )
    panel.set_title(wrap(scheme.label))
    panel.set_ylim(len(shown) - 0.4, -0.6)
    step = 1 if len(shown) <= FULL_LANES else 2
    panel.set_yticks(range(0, len(shown), step), [str(device) for device in shown[::step]])
    panel.tick_params(axis="y", length=0)
    panel.set_ylabel("device")
    panel.grid(axis="y", visible=False)
    return drawn


def spans_of(run: Run, g: int):
    """(spans of round g, its start in simulated seconds, status by device)."""
    row = run.rounds[run.rounds["round"] == g].iloc[0]
    status = run.device_rounds[run.device_rounds["round"] == g].set_index("device")["status"]
    return run.spans[run.spans["round"] == g], float(row["time_s"] - row["latency_s"]), status


def _mark(panel: Axes, lane: int, status: str, spans, start: float) -> None:
    """A cross at the end of a device that came late or was lost; the word for one that was left out."""
    if status in MARKS and len(spans):
        end = (spans["end_s"].max() - start) * 1e3
        panel.plot(end, lane, **MARKS[status], clip_on=False, path_effects=on_dark(1.1))
    elif status == "infeasible":
        panel.text(0.2, lane, " infeasible, left out", va="center", color=INK)


def _fill(colours: dict, hatched: dict, phase: str) -> dict:
    return {"facecolor": colours[phase], "hatch": hatched[phase], "edgecolor": INK}


def _timeline_legend(
    figure: Figure, handles: list, schemes: list[Scheme], g: int, style: Style
) -> None:
    limits = sorted({scheme.threshold_s for scheme in schemes if scheme.threshold_s is not None})
    if limits:
        text = f"threshold {limits[0] * 1e3:.4g} ms" if len(limits) == 1 else "threshold"
        handles.append(Line2D([], [], color=THRESHOLD, ls="--", lw=0.9, label=text))
    for status, mark in MARKS.items():
        if any((_at(scheme, g)["status"] == status).any() for scheme in schemes):
            handles.append(Line2D([], [], **mark, ls="none", label=status))
    columns = min(len(handles), 8 if style.wide else 4)
    figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=columns,
        handlelength=1.2,
        columnspacing=1.0,
    )


def _at(scheme: Scheme, g: int):
    table = scheme.first.device_rounds
    return table[table["round"] == g]


def partitions(schemes: list[Scheme]) -> list[tuple[str, dict]]:
    """The distinct partitions of the schemes' first runs, each with the labels of those who use it."""
    found: list[tuple[list[str], dict]] = []
    for scheme in schemes:
        mine = scheme.first.partition
        if mine is None:
            continue
        same = next((labels for labels, partition in found if partition == mine), None)
        if same is None:
            found.append(([scheme.label], mine))
        else:
            same.append(scheme.label)
    return [(", ".join(labels), partition) for labels, partition in found]


def partition(schemes: list[Scheme], style: Style) -> Figure | None:
    """Training samples of each label on each device."""
    found = partitions(schemes)[:MOST_PARTITIONS]
    if not found:
        return None
    tall = max(len(partition["counts"]) for _, partition in found)
    height = 0.9 + min(max(tall, 6) * (0.24 if style.wide else 0.17), 4.0)
    figure = Figure(figsize=(style.width_in, height * len(found)), layout="constrained")
    for panel, (labels, part) in zip(
        figure.subplots(len(found), 1, squeeze=False).ravel(), found, strict=True
    ):
        counts = np.asarray(part["counts"])
        image = panel.imshow(counts, cmap="Blues", aspect="auto", vmin=0, interpolation="nearest")
        panel.set(xlabel="label", ylabel="device")
        panel.set_xticks(range(counts.shape[1]), [str(label) for label in part["labels"]])
        if max(len(str(label)) for label in part["labels"]) > 3:
            panel.tick_params(axis="x", rotation=35)
        whole_numbers(panel.yaxis, 12)
        panel.tick_params(length=0)
        panel.grid(visible=False)
        if len(found) > 1:
            panel.set_title(wrap(labels))
        figure.colorbar(image, ax=panel, pad=0.015, aspect=25).set_label("training samples")
        if counts.size <= 200:
            _write_counts(panel, counts)
    return figure


def _write_counts(panel: Axes, counts: np.ndarray) -> None:
    size = {} if counts.max() < 1000 else {"fontsize": "x-small"}
    for (k, label), count in np.ndenumerate(counts):
        if count:
            dark = count > 0.6 * counts.max()
            panel.text(
                label,
                k,
                str(count),
                ha="center",
                va="center",
                color="white" if dark else INK,
                **size,
            )
