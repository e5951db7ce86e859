"""How long a sweep takes: from points that have run, else from counted FLOPs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from edgesim.scenario.loader import Scenario
from edgesim.sweep.sweep_folder import DONE, SweepFolder
from edgesim.sweep.sweep_point import SweepPoint
from fl.stored_files import read_sealed_json

# Measured with one process: liu-cnn at batch 128, and what a step takes beside it (digits-cnn).
FLOPS_PER_S, STEP_S = 8e10, 1.2e-3
ROUND_S, DEVICE_S, POINT_S = 0.008, 2e-4, 0.3  # of the engine: per round, device and round, point
WORKER_S = 3.0  # until a process has loaded its libraries


def estimate(folder: SweepFolder, workers: int) -> tuple[float, str]:
    """How long the missing points take; what they share is not counted.

    Args:
        folder: of the sweep.
        workers: points at a time.

    Returns:
        Seconds, and what they are estimated from.
    """
    known, todo = measured(folder), folder.to_run()
    seconds, sources = 0.0, set()
    for point in todo:
        rate = known.get(kind(point))
        sources.add("finished points of the same method" if rate is not None else "counted FLOPs")
        rounds = point.scenario.rounds
        seconds += POINT_S + rounds * (counted_s(point) if rate is None else rate)
    return WORKER_S * bool(todo) + seconds / max(1, workers), " and ".join(sorted(sources))


def measured(folder: SweepFolder) -> dict[tuple, float]:
    """Mean seconds of a round, by kind of point, of finished ones that took no training over."""
    seen: dict[tuple, list[float]] = {}
    for point in folder.with_status(DONE):
        with suppress(OSError, ValueError, KeyError, TypeError):
            spent = read_sealed_json(folder.of(point) / "timing.json")
            if not spent.get("passes_taken"):
                seen.setdefault(kind(point), []).append(spent["wall_s"] / point.scenario.rounds)
    return {each: sum(rates) / len(rates) for each, rates in seen.items()}


def kind(point: SweepPoint) -> tuple:
    """Points that take about as long per round."""
    learning = point.scenario.learning
    return (
        learning.method.name,
        learning.model,
        learning.dataset,
        round(point.work.training_flops, -3),
        point.scenario.device_count,
    )


def counted_s(point: SweepPoint) -> float:
    """Seconds of a round, from the FLOPs that it trains and evaluates."""
    work, scenario = point.work, point.scenario
    computed = work.training_flops + work.evaluation_flops / evaluated_every(scenario)
    engine_s = ROUND_S + DEVICE_S * scenario.device_count
    return computed / FLOPS_PER_S + work.sgd_steps * STEP_S + engine_s


def in_words(seconds: float) -> str:
    """Such as ``40 s``, ``12 min``, ``3.5 h``."""
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def groups(points: Sequence[SweepPoint]) -> int:
    """In how many groups points fall that may share their training."""
    return len({point.group for point in points if point.group is not None})


def evaluated_every(scenario: Scenario) -> int:
    """Rounds between two evaluations; 1, the most that there can be, where it is a time."""
    every = scenario.evaluate.every
    return every if isinstance(every, int) else 1
