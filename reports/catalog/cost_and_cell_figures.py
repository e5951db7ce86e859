"""Figures of costs, of the devices and of the cell."""

from __future__ import annotations

from functools import partial

from reports.catalog.report_figure import (
    CELL,
    COSTS,
    ReportFigure,
    lacking_text,
    seeds_text,
    spread_text,
)
from reports.figures import (
    cell_topology,
    device_allocation,
    label_partition,
    shadow_prices,
)
from reports.figures.costs import accuracy_against_cost, payload_and_energy, target_costs
from reports.figures.network import sector_map, sinr_and_throughput
from reports.run_data.scheme_grouping import Scheme, target_accuracies, untuned_notes
from reports.run_data.statistics.metrics import ACCURACY, RHO
from reports.run_data.statistics.seed_intervals import target_estimate
from reports.run_data.swept_keys import short_names

FRONT = (
    ". Filled: on the Pareto front, where no other scheme is at least as accurate for at most the "
    "price; dotted: the best accuracy for a price"
)


def cost_figures(schemes: list[Scheme], few: list[Scheme], shown: str) -> list[ReportFigure]:
    """One point per scheme is never too much; bars are of a few schemes, their tables of all."""
    untuned = " ".join(untuned_notes(schemes))
    return [
        ReportFigure(
            COSTS,
            "pareto",
            "Accuracy against latency and energy",
            f"Final accuracy against what a round costs{'' if untuned else FRONT}"
            f"{seeds_text(schemes, 'bars: ')}.{untuned and f' There is no front. {untuned}'}"
            f"{lacking_text(schemes, ACCURACY, ' and on no front')}{_point_names(schemes)}",
            partial(accuracy_against_cost.accuracy_against_cost, schemes),
            partial(accuracy_against_cost.pareto_table, schemes),
            partial(accuracy_against_cost.any_accuracy, schemes),
        ),
        ReportFigure(
            COSTS,
            "to-target",
            "Cost to a target accuracy",
            "What had been spent when an evaluated round first reached the target, over the "
            f"seeds that did{spread_text(_seeds_reached(few), 'bars: ')}; where not all did, the "
            f"name says how many.{shown}",
            partial(target_costs.target_costs, few),
            partial(target_costs.target_cost_table, schemes),
            lambda: bool(target_costs.reached_targets(few)),
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
    ]


def _seeds_reached(schemes: list[Scheme]) -> set[int]:
    """How many seeds each mean to a target is of."""
    targets = target_accuracies(schemes)
    return {target_estimate(scheme, t, "time_s").n for scheme in schemes for t in targets}


def _point_names(schemes: list[Scheme]) -> str:
    """What the texts beside the points of a sweep are."""
    names = short_names(dict.fromkeys(key for scheme in schemes for key in scheme.numbers))
    if not names:
        return ""
    return f" Beside the points, where there is room: {', '.join(names.values())}."


def cell_figures(schemes: list[Scheme], few: list[Scheme], shown: str) -> list[ReportFigure]:
    """Figures of the devices of a few schemes, and of the cell."""
    return [
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
            "longer: the multipliers of the allocation (kkt, alpha-fair or convex). Zero: nobody "
            f"is pruned for want of it.{shown}",
            partial(shadow_prices.shadow_prices, few),
            partial(shadow_prices.shadow_price_table, schemes),
            partial(shadow_prices.any_slopes, few),
        ),
        _topology(schemes),
        ReportFigure(
            CELL,
            "sinr",
            "SINR and throughput",
            "Share of the uploads with at most so much SINR within their band, and share of the "
            "devices that sent at most so fast while they sent, over the run; all seeds "
            f"together.{shown}",
            partial(sinr_and_throughput.sinr_and_throughput, few),
            partial(sinr_and_throughput.sinr_and_throughput_table, schemes),
            lambda: bool(sinr_and_throughput.with_sinr(few)),
        ),
        ReportFigure(
            CELL,
            "partition",
            "Who holds what",
            _partition_caption(schemes),
            partial(label_partition.label_partition, schemes),
            partial(label_partition.partition_table, schemes),
            lambda: bool(label_partition.partitions(schemes)),
        ),
    ]


def _topology(schemes: list[Scheme]) -> ReportFigure:
    """Of one cell; or the map of a network of several."""
    several = sector_map.has_sectors(schemes[0].first)
    return ReportFigure(
        CELL,
        "topology",
        "The network" if several else "The cell",
        _map_caption(schemes) if several else _topology_caption(schemes),
        partial(sector_map.sector_map if several else cell_topology.cell_topology, schemes),
        partial(cell_topology.device_table, schemes),
        partial(cell_topology.has_devices, schemes),
    )


def _map_caption(schemes: list[Scheme]) -> str:
    whose = f"Scheme {schemes[0].label}, smallest seed" if len(schemes) > 1 else "Smallest seed"
    return (
        "Triangles: sites, with a stroke along the boresight of each sector. Dots: devices, by "
        "which sector of its site serves each at the start, with a line to that site (with "
        "wrap-around perhaps to its image outside), and by SINR or coupling loss "
        f"towards it (grey: there is none). {whose}."
    )


def _topology_caption(schemes: list[Scheme]) -> str:
    devices = schemes[0].first.devices
    kind = "star" if devices is None else cell_topology.node_positions(devices)[1]
    where = {
        "positions": "Devices at their positions",
        "distances": "Devices at their distances; the direction means nothing",
        "star": "Devices as a star: the scenario gives no distances",
    }[kind]
    if cell_topology.edge_positions(schemes[0].first):
        stations = "Triangles: the edge servers, each joined to its devices"
    else:
        stations = "Triangle: the base station"
    if devices is not None and len(devices) > cell_topology.MOST_DRAWN:
        where += f" ({cell_topology.MOST_DRAWN} of {len(devices)}, evenly spaced by number)"
    whose = f"Scheme {schemes[0].label}, smallest seed" if len(schemes) > 1 else "Smallest seed"
    return (
        f"{where}. {stations}. Colour: each device's uplink rate in the first round if it "
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
