"""The numbers behind the figures, one table per figure, in SI units: what a reader needs to draw it again."""

from __future__ import annotations

import numpy as np

from reports.figures.bars import bits_per_round, joules_per_round
from reports.figures.timeline import partitions, spans_of
from reports.run_data import measures
from reports.run_data.schemes import Scheme
from reports.styling.table_formats import Column, Table, digits, figures

SCHEME = Column("scheme", "Scheme", number=False)
ROUND = Column("round", "Round")
DEVICE = Column("device", "Device")
PHASE = Column("phase", "Phase", number=False)
SECONDS, SHORT = figures(5), digits(3)


def curve(schemes: list[Scheme], name: str, column: str) -> Table:
    """One line per scheme and evaluated round: what had passed by then, the mean, its spread and what that is over."""
    columns = (
        SCHEME,
        ROUND,
        Column("time_s", "Time (s)", SECONDS),
        Column("bits", "Bits (Mbit)", figures(4, 1e-6)),
        Column("energy_j", "Energy (J)", figures(4)),
        Column(column, column.replace("_s", " (s)").capitalize(), figures(4)),
        Column("spread", "±", figures(3)),
        Column("spread_over", "± over", number=False),
        Column("seeds", "Seeds"),
    )
    rows = []
    for scheme in schemes:
        found = measures.curve(scheme, column)
        if found is None:
            continue
        spread = [None] * len(found.round) if found.spread is None else found.spread.tolist()
        numbers = (found.round, found.time_s, found.bits, found.energy_j, found.mean)
        for row in zip(*(values.tolist() for values in numbers), spread, strict=True):
            rows.append((scheme.label, *row, found.over or None, len(scheme.runs)))
    return Table(
        name, "Mean over seeds; ± as the caption of the figure says.", columns, tuple(rows)
    )


def devices(schemes: list[Scheme]) -> Table:
    """One line per scheme and device: mean and range of pruning ratio and band share over its rounds."""
    columns = [SCHEME, DEVICE]
    for key, title in (("rho", "Pruning ratio"), ("share", "Band share")):
        columns += [
            Column(f"{key}_{how}", f"{title}, {how}", SHORT) for how in ("mean", "min", "max")
        ]
    rows = []
    for scheme in schemes:
        rho, share = (measures.per_device(scheme, key) for key in ("rho", "share"))
        numbers = np.column_stack([rho.to_numpy(), share.to_numpy()]).tolist()
        rows += [(scheme.label, int(k), *row) for k, row in zip(rho.index, numbers, strict=True)]
    return Table(
        "devices-figure",
        "Over the rounds in which the device took part.",
        tuple(columns),
        tuple(rows),
    )


def timeline(schemes: list[Scheme]) -> Table:
    """One line per scheme, device and phase of the round that the timeline shows, in seconds since its start."""
    g = measures.middle_round(schemes)
    columns = (SCHEME, ROUND, DEVICE, Column("status", "Status", number=False), PHASE)
    columns += (Column("start_s", "Start (s)", SECONDS), Column("end_s", "End (s)", SECONDS))
    rows = []
    for scheme in schemes:
        spans, start, status = spans_of(scheme.first, g)
        for row in spans.itertuples():
            word = str(status.get(row.device, ""))
            rows.append(
                (
                    scheme.label,
                    g,
                    int(row.device),
                    word,
                    row.phase,
                    row.start_s - start,
                    row.end_s - start,
                )
            )
    return Table("timeline", f"Round {g} of the run with the smallest seed.", columns, tuple(rows))


def costs(schemes: list[Scheme]) -> Table:
    """One line per scheme and part: bits by way, joules by phase."""
    columns = (SCHEME, Column("part", "Part", number=False), Column("unit", "Unit", number=False))
    columns += (Column("per_round", "Per round, all devices", figures(4)),)
    both = (("bit", bits_per_round(schemes)), ("J", joules_per_round(schemes)))
    rows = [
        (scheme.label, part, unit, row[i])
        for i, scheme in enumerate(schemes)
        for unit, parts in both
        for part, row in parts.items()
    ]
    return Table("costs-figure", "Means over rounds and seeds.", columns, tuple(rows))


def partition(schemes: list[Scheme]) -> Table:
    """One line per partition, device and label with samples."""
    columns = (
        Column("schemes", "Schemes", number=False),
        DEVICE,
        Column("label", "Label", number=False),
    )
    rows = [
        (labels, int(k), str(part["labels"][c]), int(count))
        for labels, part in partitions(schemes)
        for (k, c), count in np.ndenumerate(np.asarray(part["counts"]))
        if count
    ]
    caption = "Training samples by device and label."
    return Table("partition", caption, (*columns, Column("samples", "Samples")), tuple(rows))
