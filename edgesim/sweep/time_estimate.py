"""How long a sweep takes: from points that have run, else from steps that are timed now."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from edgesim.results.sweep_file import DONE
from edgesim.runs.error_sentences import user_errors
from edgesim.runs.run import prepare
from edgesim.scenario.loader import Scenario
from edgesim.sweep.sweep_folder import SweepFolder
from edgesim.sweep.sweep_point import SweepPoint
from edgesim.sweep.timed_round import RoundTimes, timed_round
from fl.stored_files import read_sealed_json

# measured with one process
ROUND_S, DEVICE_S, POINT_S = 0.008, 2e-4, 0.3  # of the engine: per round, device and round, point
STEPS = "a few steps and test samples of each method"
WORKER_S = 3.0  # until a process has loaded its libraries


def estimate(
    folder: SweepFolder, workers: int, data: str | None = None, allow_code: bool = False
) -> tuple[float, str]:
    """How long the missing points take, with a core each; what they share is not counted.

    Of each kind of point of which none has run, a few training steps and test samples are timed.

    Args:
        folder: of the sweep.
        workers: points at a time.
        data: folder of the data files; None: EDGESIM_DATA.
        allow_code: code of the user's own may run.

    Returns:
        Seconds, and what they are estimated from.
    """
    known, todo = measured(folder), folder.to_run()
    times: dict[tuple, RoundTimes] = {}
    seconds, sources = 0.0, set()
    for point in todo:
        rounds, like = folder.rounds_left(point), kind(point)
        if like in known:
            sources.add("finished points of the same method")
            seconds += POINT_S + rounds * known[like]
            continue
        if like not in times:
            times[like] = times_of(point.scenario, data, allow_code)
        trained = times[like] != RoundTimes()
        sources.add(STEPS if trained else "the mean time of a round")
        engine_s = rounds * (ROUND_S + DEVICE_S * point.scenario.device_count)
        training_s = rounds * times[like].training_s
        evaluation_s = evaluations(point.scenario, rounds) * times[like].evaluation_s
        seconds += POINT_S + engine_s + training_s + evaluation_s
    return WORKER_S * bool(todo) + seconds / max(1, workers), " and ".join(sorted(sources))


def times_of(scenario: Scenario, data: str | None, allow_code: bool) -> RoundTimes:
    """Timed on one core of this machine, whatever trains in the run itself."""
    executor = scenario.learning.executor
    chosen = "auto" if executor == "dask" else executor
    here = scenario.with_keys("learning", device="cpu", executor=chosen)
    with user_errors(scenario):
        return timed_round(prepare(here, None, data, allow_code, processes=1).setup)


def measured(folder: SweepFolder) -> dict[tuple, float]:
    """Mean seconds of a round, by kind of point, of finished ones that took no training over."""
    seen: dict[tuple, list[float]] = {}
    for point in folder.with_status(DONE):
        with suppress(OSError, ValueError, KeyError, TypeError):
            spent = read_sealed_json(folder.of(point) / "timing.json")
            rounds = spent.get("rounds", point.scenario.rounds)
            if rounds and not spent.get("passes_taken"):
                seen.setdefault(kind(point), []).append(spent["wall_s"] / rounds)
    return {each: sum(rates) / len(rates) for each, rates in seen.items()}


def kind(point: SweepPoint) -> tuple:
    """Points that take about as long per round."""
    learning = point.scenario.learning
    return (
        learning.method.name,
        learning.model,
        learning.dataset,
        learning.method.params.get("participants"),
        round(point.training_flops, -3),
        point.scenario.device_count,
    )


def in_words(seconds: float) -> str:
    """Such as ``40 s``, ``12 min``, ``3.5 h``."""
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def groups(points: Sequence[SweepPoint]) -> int:
    """In how many groups points fall that may share their training."""
    return len({point.group for point in points if point.group is not None})


def evaluations(scenario: Scenario, rounds: int) -> int:
    """In so many rounds; at most one in each where `evaluate.every` is a time."""
    every = scenario.evaluate.every
    return -(-rounds // every) if isinstance(every, int) else rounds
