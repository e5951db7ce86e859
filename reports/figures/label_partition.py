"""Training samples of each label on each device."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.run_data.scheme_grouping import Scheme
from reports.styling.axes_and_legends import whole_numbers, wrap
from reports.styling.figure_style import INK, FigureStyle
from reports.styling.table_formats import Column, Table

MOST_PARTITIONS = 4
MOST_CELLS_WITH_COUNT = 200


def partitions(schemes: list[Scheme]) -> list[tuple[str, dict[str, Any]]]:
    """The distinct partitions of the schemes' first runs, each with the labels of its schemes."""
    found: list[tuple[list[str], dict[str, Any]]] = []
    for scheme in schemes:
        own = scheme.first.partition
        if own is None:
            continue
        same = next((labels for labels, known in found if known == own), None)
        if same is None:
            found.append(([scheme.label], own))
        else:
            same.append(scheme.label)
    return [(", ".join(labels), partition) for labels, partition in found]


def label_partition(schemes: list[Scheme], style: FigureStyle) -> Figure:
    """One panel per distinct partition, at most `MOST_PARTITIONS`."""
    found = partitions(schemes)[:MOST_PARTITIONS]
    tall = max(len(partition["counts"]) for _, partition in found)
    height = 0.9 + min(max(tall, 6) * (0.24 if style.wide else 0.17), 4.0)
    figure = Figure(figsize=(style.width_in, height * len(found)), layout="constrained")
    panels = figure.subplots(len(found), 1, squeeze=False).ravel()
    for panel, (schemes_text, partition) in zip(panels, found, strict=True):
        counts, labels = np.asarray(partition["counts"]), list(map(str, partition["labels"]))
        image = panel.imshow(counts, cmap="Blues", aspect="auto", vmin=0, interpolation="nearest")
        panel.set(xlabel="label", ylabel="device")
        panel.set_xticks(range(len(labels)), labels)
        if max(map(len, labels)) > 3:
            panel.tick_params(axis="x", rotation=35)
        whole_numbers(panel.yaxis, 12)
        panel.tick_params(length=0)
        panel.grid(visible=False)
        if len(found) > 1:
            panel.set_title(wrap(schemes_text))
        figure.colorbar(image, ax=panel, pad=0.015, aspect=25).set_label("training samples")
        if counts.size <= MOST_CELLS_WITH_COUNT:
            _write_counts(panel, counts)
    return figure


def _write_counts(panel: Axes, counts: np.ndarray) -> None:
    kind: dict[str, Any] = {"ha": "center", "va": "center"}
    if counts.max() >= 1000:
        kind["fontsize"] = "x-small"
    for (k, label), count in np.ndenumerate(counts):
        if count:
            colour = "white" if count > 0.6 * counts.max() else INK
            panel.text(label, k, str(count), color=colour, **kind)


def partition_table(schemes: list[Scheme]) -> Table:
    """One line per partition, device and label with samples."""
    columns = (
        Column("schemes", "Schemes", number=False),
        Column("device", "Device"),
        Column("label", "Label", number=False),
        Column("samples", "Samples"),
    )
    rows = [
        (labels, int(k), str(partition["labels"][c]), int(count))
        for labels, partition in partitions(schemes)
        for (k, c), count in np.ndenumerate(np.asarray(partition["counts"]))
        if count
    ]
    return Table("partition", "Training samples by device and label.", columns, tuple(rows))
