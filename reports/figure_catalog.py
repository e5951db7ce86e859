"""Every figure of a report: its name, title and caption, how it is drawn, and its numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from matplotlib.figure import Figure

from edgesim.results.run_files import ResultsError
from reports.figures import (
    accuracy_cost_tradeoff,
    cell_topology,
    device_allocation,
    label_partition,
    learning_curves,
    payload_and_energy,
    round_latency,
    round_timeline,
    shadow_prices,
    sweep_curves,
    sweep_maps,
)
from reports.report_options import ReportOptions
from reports.run_data.metrics import ACCURACY, LATENCY, METRICS, RHO, Metric
from reports.run_data.run_statistics import LEAST_SEEDS
from reports.run_data.scheme_grouping import Scheme, few_schemes, swept_keys, tied_keys
from reports.run_data.scheme_selection import find_key, unknown_name
from reports.run_data.swept_keys import SweptKey, numeric_differences
from reports.styling.figure_style import FigureStyle
from reports.styling.table_formats import Table

SWEEP, LEARNING, TIME, COSTS, CELL = "Sweep", "Learning", "Latency", "Costs", "Cell and devices"
SECTIONS = (SWEEP, LEARNING, TIME, COSTS, CELL)
AXIS_NAMES = {"time": "simulated time", "rounds": "rounds", "bits": "bits", "energy": "joules"}
METRIC_TITLES = {"accuracy": "Final accuracy", "loss": "Final loss", "rho": "Pruning ratio"}


@dataclass(frozen=True)
class ReportFigure:
    """One figure; name: of its files.

    draw: None where there is nothing to draw.     table: the numbers of a figure that is drawn.
    """

    section: str
    name: str
    title: str
    caption: str
    draw: Callable[[FigureStyle], Figure | None]
    table: Callable[[], Table | None]


def report_figures(
    schemes: list[Scheme], options: ReportOptions | None = None
) -> tuple[list[ReportFigure], list[str]]:
    """The figures of these schemes, in the order of the page, and what could not be drawn.

    Raises:
        ResultsError: the options name a figure or a swept key that there is not.
    """
    options = options or ReportOptions()
    keys = swept_keys(schemes, apart=bool(options.along))
    few, chosen = few_schemes(schemes, keys)
    sweep, notes = _sweep(schemes, keys, options)
    every = [*sweep, *_other_sections(schemes, few, _shown(chosen), options)]
    if options.figures:
        known = {figure.name: figure for figure in every}
        for name in options.figures:
            if name not in known:
                raise ResultsError(unknown_name("figures", name, list(known)))
        every = [figure for figure in every if figure.name in options.figures]
    return every, notes


def _shown(chosen: str) -> str:
    return f" Shown: {chosen}; the data has all." if chosen else ""


def _sweep(
    schemes: list[Scheme], keys: Sequence[SweptKey], options: ReportOptions
) -> tuple[list[ReportFigure], list[str]]:
    figures, notes = [], []
    axes: Sequence[SweptKey] = keys
    if options.along:
        along = find_key("along", options.along, keys)
        tied = tied_keys(schemes, keys, along)
        along = replace(along, tied=tuple(key.name for key in tied))
        axes, keys = [along], [along, *(k for k in keys if k.key != along.key and k not in tied)]
    family = find_key("family", options.family, keys) if options.family else None
    for key in axes:
        for metric in METRICS:
            lines, chosen = sweep_curves.sweep_lines(schemes, keys, key, metric, family)
            if not any(len(line.x) > 1 for line in lines):
                continue
            figures.append(
                ReportFigure(
                    SWEEP,
                    f"{metric.name}-by-{key.slug}",
                    f"{_metric_title(metric)} against {key.name}",
                    f"Mean over seeds{_seeds(schemes)}.{_shown(chosen)}",
                    partial(sweep_curves.sweep_curves, schemes, lines, key, metric),
                    partial(sweep_curves.sweep_table, schemes, keys, metric),
                )
            )
        if not any(figure.name.endswith(f"-by-{key.slug}") for figure in figures):
            notes.append(_no_axis(schemes, key))
    for metric in (ACCURACY, LATENCY):
        maps = sweep_maps.sweep_maps(schemes, keys, metric)
        if maps:
            more = len(maps) - sweep_maps.MOST_MAPS
            rest = f" {more} further series are in the data." if more > 0 else ""
            figures.append(
                ReportFigure(
                    SWEEP,
                    f"{metric.name}-map",
                    f"{_metric_title(metric)} over {keys[0].name} and {keys[1].name}",
                    f"Means over seeds; a blank cell has no finished run.{rest}",
                    partial(sweep_maps.sweep_map_figure, schemes, keys, metric),
                    partial(sweep_curves.sweep_table, schemes, keys, metric),
                )
            )
    return figures, notes


def _no_axis(schemes: list[Scheme], key: SweptKey) -> str:
    """Why there is no figure along a key: runs that differ in it differ in others, too."""
    others = numeric_differences([scheme.values for scheme in schemes if key.key in scheme.numbers])
    names = ", ".join(other for other in others if other != key.key)
    return (
        f"No figure against {key.key}: no two runs of a scheme differ in it alone. They differ in "
        f"{names} too; the option along={key.key} draws them all the same, with the keys named."
    )


def _metric_title(metric: Metric) -> str:
    return METRIC_TITLES.get(metric.name, metric.name.capitalize())


def _other_sections(
    schemes: list[Scheme], few: list[Scheme], shown: str, options: ReportOptions
) -> list[ReportFigure]:
    """Figures with a line, bar or panel for each of a few schemes; their tables have all schemes.

    A timeline has no more numbers than it shows; one point per scheme is never too much.
    """
    against = options.x or ("time", "rounds")
    over = " and ".join(f"over {AXIS_NAMES[name]}" for name in against)
    return [
        ReportFigure(
            LEARNING,
            "accuracy",
            f"Accuracy {over}",
            _accuracy_caption(few, options) + shown,
            partial(learning_curves.learning_curves, few, learning_curves.ACCURACY, against),
            partial(learning_curves.curve_table, schemes, "accuracy", "accuracy"),
        ),
        ReportFigure(
            LEARNING,
            "spending",
            "Accuracy over bits and over joules",
            "The same accuracy against what it took since the first round: bits of all devices, "
            "up and down, and joules of all devices. A curve that lies further left reaches its "
            f"accuracy for less.{shown}",
            partial(
                learning_curves.learning_curves, few, learning_curves.ACCURACY, ("bits", "energy")
            ),
            partial(learning_curves.curve_table, schemes, "spending", "accuracy"),
        ),
        ReportFigure(
            LEARNING,
            "loss",
            f"Loss {over}",
            f"Test loss, mean over devices{_seeds(few)}.{shown}",
            partial(learning_curves.learning_curves, few, learning_curves.LOSS, against),
            partial(learning_curves.curve_table, schemes, "loss", "loss"),
        ),
        ReportFigure(
            TIME,
            "latency",
            "Latency per round",
            _latency_caption(few) + shown,
            partial(round_latency.latency_by_round, few),
            partial(learning_curves.curve_table, schemes, "latency", "latency_s"),
        ),
        ReportFigure(
            TIME,
            "cdf",
            "Distribution of the latency",
            "Share of the rounds of all seeds that took at most so long; dashed: the latency "
            f"threshold.{shown}",
            partial(round_latency.latency_cdf, few),
            partial(round_latency.cdf_table, schemes),
        ),
        ReportFigure(
            TIME,
            "decomposition",
            "Where the latency comes from",
            "Mean seconds of a round in each phase: of the device that finishes last, whose "
            "phases make the round so long, and of the mean device that took part. Waiting is "
            "what is left of the round; both bars are as long as the mean latency." + shown,
            partial(round_latency.latency_by_phase, few),
            partial(round_latency.phase_table, schemes),
        ),
        ReportFigure(
            TIME,
            "timeline",
            "Timeline of one round",
            _timeline_caption(few) + shown,
            partial(round_timeline.round_timeline, few),
            partial(round_timeline.timeline_table, few),
        ),
        ReportFigure(
            COSTS,
            "pareto",
            "Accuracy against latency and energy",
            "Final accuracy against what a round costs. Filled: on the Pareto front, where no "
            "other scheme is at least as accurate for at most the price; dotted: the best "
            f"accuracy for a price{_seeds(schemes, ', bars: ')}.",
            partial(accuracy_cost_tradeoff.accuracy_against_cost, schemes),
            partial(accuracy_cost_tradeoff.pareto_table, schemes),
        ),
        ReportFigure(
            COSTS,
            "to-target",
            "Cost to a target accuracy",
            "What had been spent when an evaluated round first reached the target, over the "
            f"seeds that did{_seeds(few, ', bars: ')}.{shown}",
            partial(accuracy_cost_tradeoff.target_costs, few),
            partial(accuracy_cost_tradeoff.target_cost_table, schemes),
        ),
        ReportFigure(
            COSTS,
            "costs",
            "Payload and energy",
            "Sums over the devices, per round (means over rounds and seeds). Joules are those of "
            f"the energy ledger.{shown}",
            partial(payload_and_energy.payload_and_energy, few),
            partial(payload_and_energy.payload_and_energy_table, schemes),
        ),
        ReportFigure(
            CELL,
            "devices",
            "Pruning ratio and band share per device",
            "Mean (marker or line) and range (bar or band) over the rounds in which the device "
            f"took part, all seeds together. {RHO} is the pruned share of the prunable weights; "
            f"schemes without pruning stay at zero.{shown}",
            partial(device_allocation.device_allocation, few),
            partial(device_allocation.device_allocation_table, schemes),
        ),
        ReportFigure(
            CELL,
            "worth",
            "What would more band or time buy?",
            f"By how many percentage points the mean {RHO} of the devices that are served would "
            "fall, to first order, if the uplink had 1 MHz more or the threshold were 1 ms "
            "longer: the multipliers of the allocation (kkt or convex). Zero: nobody is pruned "
            f"for want of it.{shown}",
            partial(shadow_prices.shadow_prices, few),
            partial(shadow_prices.shadow_price_table, schemes),
        ),
        ReportFigure(
            CELL,
            "topology",
            "The cell",
            _topology_caption(schemes),
            partial(cell_topology.cell_topology, schemes),
            partial(cell_topology.device_table, schemes[0].first),
        ),
        ReportFigure(
            CELL,
            "partition",
            "Who holds what",
            _partition_caption(schemes),
            partial(label_partition.label_partition, schemes),
            partial(label_partition.partition_table, schemes),
        ),
    ]


def _seeds(schemes: list[Scheme], lead: str = ", ") -> str:
    """The words about the spread over seeds: interval, dots, or nothing with one seed."""
    counts = sorted({len(scheme.runs) for scheme in schemes})
    many = [n for n in counts if n >= LEAST_SEEDS]
    words = []
    if many:
        n = f"{many[0]}" if len(many) == 1 else f"{many[0]} to {many[-1]}"
        words.append(f"95 % interval (Student t) over {n} seeds")
    if 2 in counts:
        words.append("dots: the values of two seeds")
    return f"{lead}{'; '.join(words)}" if words else ""


def _accuracy_caption(schemes: list[Scheme], options: ReportOptions) -> str:
    text = "Test accuracy of every device's own model on its own test data, mean over devices"
    text += f" and seeds{_seeds(schemes)}." if _seeds(schemes) else "."
    text += " Bars: one standard deviation over devices." if options.bars == "devices" else ""
    return text


def _latency_caption(schemes: list[Scheme]) -> str:
    several = any(len(scheme.runs) > 1 for scheme in schemes)
    return (
        "Simulated time that each global round took: mean (marker) and range over all rounds, and "
        "round by round; dashed: the latency threshold. Markers are staggered, so that equal "
        "lines show all of theirs." + (f" Curves: mean over seeds{_seeds(schemes)}." * several)
    )


def _timeline_caption(schemes: list[Scheme]) -> str:
    text = f"Round {round_timeline.middle_round(schemes)} of the run with the smallest seed."
    if not round_timeline.shares_axis(schemes):
        text += " The panels have different time axes."
    if any(scheme.first.summary["devices"] > round_timeline.MOST_DEVICES for scheme in schemes):
        text += f" Shown are {round_timeline.MOST_DEVICES} devices, among them the last to finish."
    return f"{text} Phases without a duration are not visible."


def _topology_caption(schemes: list[Scheme]) -> str:
    devices = schemes[0].first.devices
    kind = "star" if devices is None else cell_topology.node_positions(devices)[1]
    where = {
        "positions": "Devices at their positions",
        "distances": "Devices at their distances; the direction means nothing",
        "star": "Devices as a star: the scenario gives no distances",
    }[kind]
    if devices is not None and len(devices) > cell_topology.MOST_DRAWN:
        where += f" ({cell_topology.MOST_DRAWN} of {len(devices)}, evenly spaced by number)"
    whose = f"Scheme {schemes[0].label}, smallest seed" if len(schemes) > 1 else "Smallest seed"
    return (
        f"{where}. Triangle: the base station. Colour: each device's uplink rate in round 0 if it "
        f"had the whole band. {whose}."
    )


def _partition_caption(schemes: list[Scheme]) -> str:
    count, text = (
        len(label_partition.partitions(schemes)),
        "Training samples per device and label, smallest seed.",
    )
    if count == 1 and len(schemes) > 1:
        text += " All schemes have the same."
    if count > label_partition.MOST_PARTITIONS:
        text += f" {count - label_partition.MOST_PARTITIONS} further partitions are not shown."
    return text
