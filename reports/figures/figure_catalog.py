"""Every figure of a report: its name, title and caption, how it is drawn, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from matplotlib.figure import Figure

from reports.figures import bars as figures
from reports.figures import cell_topology as places
from reports.figures import figure_data as data
from reports.figures import latency_distribution as latencies
from reports.figures import learning_curves as curves
from reports.figures import shadow_prices as worth
from reports.figures import sweep_figures as swept
from reports.figures import timeline, tradeoffs
from reports.run_data import measures
from reports.run_data.schemes import Scheme, axes_of, slice_of
from reports.styling.house_style import RHO, Style
from reports.styling.table_formats import Table

CURVES, SWEEP, TIME, COSTS, CELL = "Learning", "Sweep", "Latency", "Costs", "Cell and devices"
SECTIONS = (SWEEP, CURVES, TIME, COSTS, CELL)


@dataclass(frozen=True)
class Plate:
    """One figure. draw returns None where there is nothing to draw; data is asked only where there is."""

    section: str
    name: str
    title: str
    caption: str
    draw: Callable[[Style], Figure | None]
    data: Callable[[], Table | None]


def plates(schemes: list[Scheme]) -> list[Plate]:
    """The figures of these schemes, in the order of the page."""
    axes = axes_of(schemes)
    shown, chosen = slice_of(schemes, axes)
    some = f" Shown: {chosen}; the data has all." if chosen else ""
    made = [*_sweep(schemes, axes), *_learning(schemes, shown, some), *_time(schemes, shown, some)]
    made += [*_costs(schemes, shown, some), *_cell(schemes, shown, some)]
    return made


def _sweep(schemes: list[Scheme], axes: list) -> list[Plate]:
    if not axes:
        return []
    made = []
    for axis in axes:
        for result in swept.RESULTS:
            _, fixed = swept.lines(schemes, axes, axis, result)
            at = f" Shown: {fixed}; the data has all." if fixed else ""
            made.append(
                Plate(
                    SWEEP, f"{result.name}-by-{axis.slug}", f"{_short(result)} against {axis.name}",
                    f"Mean over seeds{_seeds(schemes)}.{at}",
                    partial(swept.against, schemes, axes, axis, result),
                    partial(swept.data, schemes, axes, result),
                )
            )  # fmt: skip
    for result in (swept.ACCURACY, swept.LATENCY):
        if swept.heat_maps(schemes, axes, result):
            more = len(swept.heat_maps(schemes, axes, result)) - swept.MOST_MAPS
            rest = f" {more} further series are in the data." if more > 0 else ""
            made.append(
                Plate(
                    SWEEP, f"{result.name}-map", f"{_short(result)} over {axes[0].name} and {axes[1].name}",
                    f"Means over seeds; a blank cell has no finished run.{rest}",
                    partial(swept.heat, schemes, axes, result), partial(swept.data, schemes, axes, result),
                )
            )  # fmt: skip
    return made


def _short(result: swept.Result) -> str:
    return {"accuracy": "Final accuracy", "loss": "Final loss", "rho": "Pruning ratio"}.get(
        result.name, result.name.capitalize()
    )


def _learning(schemes: list[Scheme], shown: list[Scheme], some: str) -> list[Plate]:
    accuracy = partial(data.curve, schemes, column="accuracy")
    caption = f"{_accuracy_caption(shown)}{some}"
    return [
        Plate(CURVES, "accuracy", "Accuracy over simulated time and over rounds", caption,
              partial(curves.accuracy, shown), partial(accuracy, "accuracy")),
        Plate(CURVES, "spending", "Accuracy over bits and over joules", _spending_caption() + some,
              partial(curves.spending, shown), partial(accuracy, "spending")),
        Plate(CURVES, "loss", "Loss over simulated time and over rounds", f"Test loss, mean over devices.{some}",
              partial(curves.loss, shown), partial(data.curve, schemes, "loss", "loss")),
    ]  # fmt: skip


def _time(schemes: list[Scheme], shown: list[Scheme], some: str) -> list[Plate]:
    return [
        Plate(TIME, "latency", "Latency per round", _latency_caption(shown) + some,
              partial(figures.latency, shown), partial(data.curve, schemes, "latency", "latency_s")),
        Plate(TIME, "cdf", "Distribution of the latency", "Share of the rounds of all seeds that took at most so long; "
              f"dashed: the latency threshold.{some}",
              partial(latencies.cdf, shown), partial(latencies.cdf_data, schemes)),
        Plate(TIME, "decomposition", "Where the latency comes from", _decomposition_caption() + some,
              partial(latencies.decomposition, shown), partial(latencies.decomposition_data, schemes)),
        Plate(TIME, "timeline", "Timeline of one round", _timeline_caption(shown) + some,
              partial(timeline.timeline, shown), partial(data.timeline, shown)),
    ]  # fmt: skip


def _costs(schemes: list[Scheme], shown: list[Scheme], some: str) -> list[Plate]:
    pareto = (
        "Final accuracy against what a round costs. Filled: on the Pareto front, where no other scheme is at least as "
        f"accurate for at most the price; dotted: the best accuracy for a price{_seeds(schemes, ', bars: ')}."
    )
    return [
        Plate(COSTS, "pareto", "Accuracy against latency and energy", pareto,
              partial(tradeoffs.pareto, schemes), partial(tradeoffs.pareto_data, schemes)),
        Plate(COSTS, "to-target", "Cost to a target accuracy",
              f"What had been spent when an evaluated round first reached the target, over the seeds that did"
              f"{_seeds(shown, ', bars: ')}.{some}",
              partial(tradeoffs.to_target, shown), partial(tradeoffs.to_target_data, schemes)),
        Plate(COSTS, "costs", "Payload and energy",
              "Sums over the devices, per round (means over rounds and seeds). Joules are those of the energy ledger."
              + some,
              partial(figures.costs, shown), partial(data.costs, schemes)),
    ]  # fmt: skip


def _cell(schemes: list[Scheme], shown: list[Scheme], some: str) -> list[Plate]:
    return [
        Plate(CELL, "devices", "Pruning ratio and band share per device", _devices_caption() + some,
              partial(figures.devices, shown), partial(data.devices, schemes)),
        Plate(CELL, "worth", "What would more band or time buy?", _worth_caption() + some,
              partial(worth.worth, shown), partial(worth.worth_data, schemes)),
        Plate(CELL, "topology", "The cell", _topology_caption(schemes),
              partial(places.topology, schemes), partial(places.topology_data, schemes)),
        Plate(CELL, "partition", "Who holds what", _partition_caption(schemes),
              partial(timeline.partition, schemes), partial(data.partition, schemes)),
    ]  # fmt: skip


def _seeds(schemes: list[Scheme], lead: str = ", ") -> str:
    """The words about the interval: n seeds, or nothing with one."""
    counts = sorted({len(scheme.runs) for scheme in schemes})
    if counts[-1] == 1:
        return ""
    n = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
    return f"{lead}95 % interval (Student t) over {n} seeds"


def _accuracy_caption(schemes: list[Scheme]) -> str:
    over = {curve.over for scheme in schemes if (curve := measures.curve(scheme, "accuracy"))}
    band = f" Bands: {_seeds(schemes, '')}." if "seeds" in over else ""
    band += " Bars: one standard deviation over devices." if "devices" in over else ""
    return (
        f"Test accuracy of every device's own model on its own test data, mean over devices.{band}"
    )


def _spending_caption() -> str:
    return (
        "The same accuracy against what it took since the first round: bits of all devices, up and down, and joules of "
        "all devices. A curve that lies further left reaches its accuracy for less."
    )


def _latency_caption(schemes: list[Scheme]) -> str:
    several = any(len(scheme.runs) > 1 for scheme in schemes)
    seeds = f" Curves and bands: mean over seeds{_seeds(schemes)}." if several else ""
    return (
        "Simulated time that each global round took: mean (marker) and range over all rounds, and round by round; "
        f"dashed: the latency threshold. Markers are staggered, so that equal lines show all of theirs.{seeds}"
    )


def _decomposition_caption() -> str:
    return (
        "Mean seconds of a round in each phase: of the device that finishes last, whose phases make the round so long, "
        "and of the mean device that took part. Waiting is what is left of the round; both bars are as long as the "
        "mean latency."
    )


def _devices_caption() -> str:
    return (
        "Mean (marker or line) and range (bar or band) over the rounds in which the device took part, all seeds "
        f"together. {RHO} is the pruned share of the prunable weights; schemes without pruning stay at zero."
    )


def _worth_caption() -> str:
    return (
        f"By how many percentage points the mean {RHO} of the devices that are served would fall, to first order, if "
        "the uplink had 1 MHz more or the threshold were 1 ms longer: the multipliers of the allocation (kkt or "
        "convex). Zero: nobody is pruned for want of it."
    )


def _timeline_caption(schemes: list[Scheme]) -> str:
    g = measures.middle_round(schemes)
    axis = "" if timeline.shares_axis(schemes) else " The panels have different time axes."
    many = any(scheme.first.summary["devices"] > timeline.MOST_DEVICES for scheme in schemes)
    some = (
        f" Shown are {timeline.MOST_DEVICES} devices, among them the last to finish."
        if many
        else ""
    )
    return f"Round {g} of the run with the smallest seed.{axis}{some} Phases without a duration are not visible."


def _topology_caption(schemes: list[Scheme]) -> str:
    run = schemes[0].first
    kind = places.positions(run)[1] if run.devices is not None and len(run.devices) else "star"
    where = {
        "positions": "Devices at their positions",
        "distances": "Devices at their distances; the direction means nothing",
        "star": "Devices as a star: the scenario gives no distances",
    }[kind]
    many = run.devices is not None and len(run.devices) > places.MOST_DRAWN
    where += (
        f" ({places.MOST_DRAWN} of {len(run.devices)}, evenly spaced by number)" if many else ""
    )
    colour = "each device's uplink rate in round 0 if it had the whole band"
    return f"{where}. Triangle: the base station. Colour: {colour}. {_whose(schemes)}"


def _whose(schemes: list[Scheme]) -> str:
    return f"Scheme {schemes[0].label}, smallest seed." if len(schemes) > 1 else "Smallest seed."


def _partition_caption(schemes: list[Scheme]) -> str:
    found = timeline.partitions(schemes)
    more = (
        f" {len(found) - timeline.MOST_PARTITIONS} further partitions are not shown."
        if len(found) > 4
        else ""
    )
    same = " All schemes have the same." if len(found) == 1 and len(schemes) > 1 else ""
    return f"Training samples per device and label, smallest seed.{same}{more}"
