"""One figure of a report, and words that many captions have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from edgesim.errors import counted
from reports.run_data.scheme_grouping import Scheme
from reports.run_data.statistics.metrics import Metric
from reports.run_data.statistics.seed_intervals import LEAST_SEEDS, estimate
from reports.styling.figure_style import FigureStyle
from reports.styling.table_formats import Table
from reports.text.number_text import list_text

SWEEP, LEARNING, TIME, COSTS, CELL = "Sweep", "Learning", "Latency", "Costs", "Cell and devices"
CLOCK = "Clock and jobs"
SECTIONS = (SWEEP, LEARNING, TIME, CLOCK, COSTS, CELL)


@dataclass(frozen=True)
class ReportFigure:
    """One figure; name: of its files.

    draw: only where it can be drawn.     table: the numbers of a figure that is drawn.
    can_be_drawn: do the results have something to draw?
    """

    section: str
    name: str
    title: str
    caption: str
    draw: Callable[[FigureStyle], Figure]
    table: Callable[[], Table | None]
    can_be_drawn: Callable[[], bool] = lambda: True

    @property
    def sentence(self) -> str:
        """The title as the first sentence of the caption."""
        return self.title if self.title.endswith("?") else f"{self.title}."


def shown_text(chosen: str, data: str = "; the data has all") -> str:
    """Which schemes a figure shows, where it does not show all, and what its data has."""
    return f" Shown: {chosen}{data}." if chosen else ""


def lacking_text(schemes: Sequence[Scheme], metric: Metric, so: str = "") -> str:
    """Which means are of some of their seeds only, and what that means for them.

    A run that ended before it was evaluated has no accuracy.
    """
    found = [(scheme, estimate(scheme, metric.of).n, len(scheme.runs)) for scheme in schemes]
    some = [
        f"{each.label}, {n} of {counted(seeds, 'seed')}"
        for each, n, seeds in found
        if 0 < n < seeds
    ]
    return f" Lacking seeds, without an interval{so}: {list_text(some)}." if some else ""


def seeds_text(schemes: Sequence[Scheme], lead: str = "") -> str:
    """`spread_text` of means over all seeds of each scheme."""
    return spread_text({len(scheme.runs) for scheme in schemes}, lead)


def spread_text(counts: Collection[int], lead: str = "") -> str:
    """The words about the spread over seeds: interval, dots, or nothing with one seed.

    Args:
        counts: how many seeds each mean is of.
        lead: what the intervals are in the figure, "bars: ".
    """
    many = sorted(n for n in counts if n >= LEAST_SEEDS)
    words = []
    if many:
        n = f"{many[0]}" if many[0] == many[-1] else f"{many[0]} to {many[-1]}"
        words.append(f"{lead}95 % interval (Student t) over {n} seeds")
    if 2 in counts:
        words.append("dots: the values of two seeds")
    return f", {'; '.join(words)}" if words else ""
