"""Numbers as the sentences of a report have them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from reports.run_data.scheme_grouping import Scheme
from reports.run_data.statistics.metrics import ACCURACY
from reports.run_data.statistics.seed_intervals import LEAST_SEEDS, ROUNDING, estimate
from reports.styling.number_formats import percent_of_rare

SPACE = "\N{NO-BREAK SPACE}"
MOST_LISTED = 8


def milliseconds(seconds: float) -> str:
    """25.0 ms, or three significant figures below 10 ms."""
    value = seconds * 1e3
    return f"{value:.1f}{SPACE}ms" if value >= 10 else f"{value:.3g}{SPACE}ms"


def percent(share: float) -> str:
    """One decimal: 0.5 as 50.0 %."""
    return f"{share * 100:.1f}{SPACE}%"


def accuracy_text(scheme: Scheme) -> str:
    """The final accuracy; of three or more seeds the mean with its 95 % interval, of two both."""
    found = estimate(scheme, ACCURACY.of)
    if found.dots:
        return f"{percent(found.mean)} ({' and '.join(f'{x * 100:.1f}' for x in found.dots)})"
    if math.isnan(found.half):
        return percent(found.mean)
    if found.half <= ROUNDING * abs(found.mean):
        return f"{percent(found.mean)} with every seed"
    return f"{found.mean * 100:.1f} ± {percent_of_rare()(found.half)}{SPACE}%"


def interval_text(seeds: Sequence[int]) -> str:
    """What ± means in a table; seeds: of each of its means."""
    over = counts_text(seeds, "seed")
    if max(seeds) < LEAST_SEEDS:
        return f"Over {over}: too few for an interval."
    least = ", three seeds or more" * (min(seeds) < LEAST_SEEDS)
    return f"±: half of the 95 % interval over {over} (Student t{least}), none where all agree."


def seed_counts(schemes: Iterable[Scheme]) -> list[int]:
    """The seeds of each."""
    return [len(scheme.runs) for scheme in schemes]


def range_text(values: Sequence[int]) -> str:
    """The one value, or the least and the largest."""
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def counts_text(values: Sequence[int], noun: str) -> str:
    """1 round, 2 to 3 rounds."""
    return f"{range_text(values)} {noun}{'s' * (max(values) != 1)}"


def list_text(items: Iterable[str]) -> str:
    """All of a few, or the first and the last of many."""
    items = list(items)
    if len(items) > MOST_LISTED:
        others = f"{len(items) - MOST_LISTED + 1} others"
        items = [*items[: MOST_LISTED - 2], others, items[-1]]
    return "; ".join(items)


def is_known(*values: float) -> bool:
    """Is none of them nan?"""
    return not any(map(math.isnan, values))
