"""Sentences that say what the runs show, made from their numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from edgesim.errors import counted
from reports.run_data.scheme_grouping import Scheme, untuned_notes
from reports.run_data.statistics.metrics import ACCURACY, LATENCY, Metric
from reports.run_data.statistics.round_latencies import ThresholdGap, mean_latency_s, threshold_gap
from reports.run_data.statistics.seed_intervals import (
    LEAST_SEEDS,
    are_told_apart,
    estimate,
    final_accuracy,
)
from reports.styling.number_formats import percent_of_rare
from reports.text.number_text import (
    SPACE,
    accuracy_text,
    counts_text,
    is_known,
    list_text,
    milliseconds,
)

OVERLAP = ", in no order, as 95 % intervals overlap"
TOO_FEW = f", in no order, as fewer than {LEAST_SEEDS} seeds rank nobody"


def overview(schemes: list[Scheme]) -> str:
    """One sentence: what was run."""
    runs = [run for scheme in schemes for run in scheme.runs]
    scenarios = list(dict.fromkeys(str(run.summary["scenario"]) for run in runs))
    limits = sorted({run.threshold_s for run in runs if run.threshold_s is not None})
    without = ["none"] * any(run.threshold_s is None for run in runs)
    threshold = "latency threshold " + " or ".join([*map(milliseconds, limits), *without])
    return (
        f"{counted(len(schemes), 'scheme')} on the scenario{'s' * (len(scenarios) > 1)} "
        f"{', '.join(scenarios)}: "
        f"{counts_text([run.summary['devices'] for run in runs], 'device')}, "
        f"{counts_text([len(run.rounds) for run in runs], 'global round')}, "
        f"{_seeds(schemes)}, {threshold if limits else 'no latency threshold'}."
    )


def _seeds(schemes: list[Scheme]) -> str:
    sets = {tuple(run.seed for run in scheme.runs) for scheme in schemes}
    if len(sets) > 1:
        return f"{counts_text([len(seeds) for seeds in sets], 'seed')} per scheme"
    seeds = sets.pop()
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


def rankings(schemes: list[Scheme]) -> list[str]:
    """The schemes by latency and by accuracy, with their numbers."""
    fastest, order = _ranked(schemes, LATENCY, mean_latency_s, "shortest")
    latency = list_text(f"{s.label} {milliseconds(mean_latency_s(s))}" for s in fastest)
    sentences = [f"Mean latency per round{order}: {latency}."]
    known = [scheme for scheme in schemes if is_known(final_accuracy(scheme))]
    if known:
        notes = untuned_notes(known)
        best, order = (known, "") if notes else _ranked(known, ACCURACY, final_accuracy, "highest")
        accuracy = list_text(f"{s.label} {accuracy_text(s)}" for s in best)
        sentences.append(f"Final test accuracy (mean over devices){order}: {accuracy}.")
        sentences += notes
    return sentences


def _ranked(
    schemes: list[Scheme], metric: Metric, shown: Callable[[Scheme], float], first: str
) -> tuple[list[Scheme], str]:
    """The schemes, best first where their seeds tell them apart, and what is said of the order.

    Args:
        schemes: which have the metric.
        metric: of a run.
        shown: the mean of a scheme, as the sentence has it.
        first: which value is the best, such as shortest.
    """
    found = [estimate(scheme, metric.of) for scheme in schemes]
    if len(schemes) == 1:
        return schemes, ""
    if min(each.n for each in found) < LEAST_SEEDS:
        return schemes, TOO_FEW
    if not are_told_apart(found):
        return schemes, OVERLAP
    return sorted(schemes, key=shown, reverse=metric.best == "max"), f", {first} first"


def divergence_notes(schemes: list[Scheme]) -> list[str]:
    """Whose loss was no finite number, and with which seeds."""
    return [
        f"{scheme.label}: training diverged with seed{'s' * (len(seeds) > 1)} "
        f"{', '.join(map(str, seeds))}; the notes below say when."
        for scheme in schemes
        if (seeds := [run.seed for run in scheme.runs if np.isinf(run.rounds["loss"]).any()])
    ]


def threshold_notes(schemes: list[Scheme]) -> list[str]:
    """How the latencies lie to the threshold, of every scheme that has one."""
    said = [(scheme, _gap_text(scheme) + _stretched_text(scheme)) for scheme in schemes]
    return [f"{scheme.label}:{text}" for scheme, text in said if text]


def _gap_text(scheme: Scheme) -> str:
    gap = threshold_gap(scheme)
    return "" if gap is None else f" {_sentence(gap)}"


def _sentence(gap: ThresholdGap) -> str:
    limit, mean = milliseconds(gap.threshold_s), milliseconds(gap.mean_s)
    if gap.above:
        share = f"{percent_of_rare()(gap.above)}{SPACE}%"
        who = "all rounds" if gap.above == 1 else f"{share} of the rounds"
        longest = milliseconds(gap.most_s)
        return (
            f"{who} take longer than {limit}; mean {mean} ({_over(gap.mean_s, gap)}), "
            f"longest {longest} ({_over(gap.most_s, gap)})."
        )
    if gap.below:
        shortest = milliseconds(gap.least_s)
        return f"no round takes longer than {limit}; mean {mean}, shortest {shortest}."
    return f"every round takes {limit}, the threshold."


def _stretched_text(scheme: Scheme) -> str:
    rounds = sum(int(run.summary.get("stretched_rounds") or 0) for run in scheme.runs)
    if not rounds:
        return ""
    return (
        f" In {counted(rounds, 'round')} it was not feasible, and the least feasible threshold "
        "was planned for."
    )


def _over(seconds: float, gap: ThresholdGap) -> str:
    """By how much a latency differs from the threshold, in percent of it."""
    over = (seconds / gap.threshold_s - 1) * 100
    return f"{over:+.0f}{SPACE}%" if abs(over) >= 10 else f"{over:+.2g}{SPACE}%"
