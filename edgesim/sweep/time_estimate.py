"""How long a sweep takes: from points that have run, else from counted FLOPs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress

from edgesim.sweep.points import Point
from edgesim.sweep.sweep_folder import DONE, SweepFolder

FLOPS_PER_S, STEP_S = (
    8e10,
    1.2e-3,
)  # of a process: liu-cnn at batch 128, and what a step takes beside (digits-cnn)
ROUND_S, DEVICE_S, START_S = 0.008, 2e-4, 0.3  # engine: per round, per device and round, per point
WORKER_S = 3.0  # until a process has loaded what it needs


def estimate(folder: SweepFolder, workers: int) -> tuple[float, str]:
    """Seconds that the missing points take on so many workers, and what that is taken from.

    What points share is not counted: it can only make a sweep shorter.
    """
    known, todo = measured(folder), folder.to_run()
    seconds, sources = 0.0, set()
    for point in todo:
        rate = known.get(kind(point))
        sources.add("finished points of the same method" if rate is not None else "counted FLOPs")
        rounds = point.scenario.rounds
        seconds += START_S + rounds * (counted_s(point) if rate is None else rate)
    return WORKER_S * bool(todo) + seconds / max(1, workers), " and ".join(sorted(sources))


def measured(folder: SweepFolder) -> dict[tuple, float]:
    """Seconds of a round, by kind of point: the mean over finished ones that took nothing from others."""
    seen: dict[tuple, list[float]] = {}
    for point in folder.with_status(DONE):
        with suppress(OSError, ValueError, KeyError, TypeError):
            spent = json.loads((folder.of(point) / "timing.json").read_text(encoding="utf-8"))
            if not spent.get("passes_taken"):
                seen.setdefault(kind(point), []).append(spent["wall_s"] / point.scenario.rounds)
    return {each: sum(rates) / len(rates) for each, rates in seen.items()}


def kind(point: Point) -> tuple:
    """Points that take about as long per round."""
    learning = point.scenario.learning
    return (
        learning.method.name,
        learning.model,
        learning.dataset,
        round(point.effort.flops, -3),
        point.scenario.device_count,
    )


def counted_s(point: Point) -> float:
    """Seconds of a round, from the FLOPs that it trains and evaluates."""
    effort, scenario = point.effort, point.scenario
    computed = effort.flops + effort.evaluation / scenario.evaluate.every
    return (
        computed / FLOPS_PER_S + effort.steps * STEP_S + ROUND_S + DEVICE_S * scenario.device_count
    )


def in_words(seconds: float) -> str:
    """``40 s``, ``12 min``, ``3.5 h``"""
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def groups(points: Sequence[Point]) -> int:
    """In how many groups points fall that may share their training."""
    return len({point.group for point in points if point.group is not None})
