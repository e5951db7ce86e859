"""What the runs say, in sentences made from their numbers, and whether it is what Liu et al. report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from reports.run_data import liu_claims as paper
from reports.run_data import measures
from reports.run_data.schemes import Scheme

SAME_LATENCY = 0.01  # relative
SAME_ACCURACY = 0.005  # half a point
CLOSE_ACCURACY = 0.02
MOST_LISTED = 8
ABOUT_HALF = 0.1  # of the bits, to either side
SPACE = "\N{NO-BREAK SPACE}"

AS_REPORTED, DIFFERS, SAME = "as reported", "differs", "no difference"


@dataclass(frozen=True)
class Claim:
    """One statement of Liu et al. beside what these runs show."""

    verdict: str  # AS_REPORTED, DIFFERS or SAME
    text: str


def overview(schemes: list[Scheme]) -> str:
    """One sentence: what was run."""
    runs = [run for scheme in schemes for run in scheme.runs]
    scenarios = list(dict.fromkeys(str(run.summary["scenario"]) for run in runs))
    limits = sorted({run.threshold_s for run in runs if run.threshold_s is not None})
    threshold = " or ".join(ms(limit) for limit in limits)
    return (
        f"{_count(len(schemes), 'scheme')} on the scenario{'s' * (len(scenarios) > 1)} {', '.join(scenarios)}: "
        f"{_range([run.summary['devices'] for run in runs])} devices, "
        f"{_range([len(run.rounds) for run in runs])} global rounds, "
        f"{_seeds(schemes)}, {'latency threshold ' + threshold if limits else 'no latency threshold'}."
    )


def _seeds(schemes: list[Scheme]) -> str:
    sets = {tuple(run.seed for run in scheme.runs) for scheme in schemes}
    if len(sets) > 1:
        return f"{_range([len(seeds) for seeds in sets])} seeds per scheme"
    seeds = sets.pop()
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


def orders(schemes: list[Scheme]) -> list[str]:
    """The schemes by latency and by accuracy, with their numbers."""
    by_latency = sorted(schemes, key=mean_latency_s)
    sentences = [
        "Mean latency per round, shortest first: "
        + _series(f"{scheme.label} {ms(mean_latency_s(scheme))}" for scheme in by_latency)
        + "."
    ]
    known = [scheme for scheme in schemes if not math.isnan(accuracy(scheme))]
    if known:
        ranked = sorted(known, key=accuracy, reverse=True)
        sentences.append(
            "Final test accuracy (mean over devices), highest first: "
            + _series(f"{scheme.label} {_accuracy_text(scheme)}" for scheme in ranked)
            + "."
        )
    return sentences


def _series(items: Iterable[str]) -> str:
    """All of a few, or the first and the last of many."""
    items = list(items)
    many = len(items) > MOST_LISTED
    return "; ".join(
        [*items[: MOST_LISTED - 2], f"{len(items) - MOST_LISTED + 1} others", items[-1]]
        if many
        else items
    )


def _accuracy_text(scheme: Scheme) -> str:
    values = np.array([measures.final(run, "accuracy") for run in scheme.runs])
    if len(values) == 1:
        return percent(values[0])
    return f"{values.mean() * 100:.1f} ± {measures.half_width(values) * 100:.1f}{SPACE}%"


def threshold_notes(schemes: list[Scheme]) -> tuple[list[str], list[str]]:
    """How each scheme's latency lies to its threshold: those whose plan aims at it, and the others."""
    aiming, others = [], []
    for scheme in schemes:
        gap = measures.gap(scheme)
        if gap is not None:
            (aiming if scheme.role in paper.AIMS_AT_THRESHOLD else others).append(
                _gap_text(scheme, gap)
            )
    return aiming, others


def _gap_text(scheme: Scheme, gap: measures.Gap) -> str:
    limit = ms(gap.threshold_s)
    text = f"{scheme.label}: "
    if gap.above:
        who = "all rounds" if gap.above == 1 else f"{percent(gap.above)} of the rounds"
        text += (
            f"{who} take longer than {limit}; mean {ms(gap.mean_s)} ({_over(gap.mean_s, gap)}), "
            f"longest {ms(gap.most_s)} ({_over(gap.most_s, gap)})."
        )
    elif gap.below:
        text += f"no round takes longer than {limit}; mean {ms(gap.mean_s)}, shortest {ms(gap.least_s)}."
    else:
        text += f"every round takes {limit}, the threshold."
    stretched = sum(int(run.summary.get("stretched_rounds") or 0) for run in scheme.runs)
    if stretched:
        text += f" In {_count(stretched, 'round')} it was not feasible, and the least feasible threshold was planned for."
    return text


def _over(seconds: float, gap: measures.Gap) -> str:
    """By how much a latency differs from the threshold, in percent of it."""
    over = (seconds / gap.threshold_s - 1) * 100
    return f"{over:+.0f}{SPACE}%" if abs(over) >= 10 else f"{over:+.2g}{SPACE}%"


def compare(schemes: list[Scheme]) -> list[Claim]:
    """The claims of Liu et al. (Table I, Fig. 5) for which both sides were run on the same scenario and threshold."""
    claims = []
    present = [role for role in paper.ROLE_ORDER if role in paper.LATENCY_MS and _of(schemes, role)]
    for one, other in pairwise(present):
        claims += [_latency_claim(a, b) for a, b in _pairs(schemes, one, other)]
    for one, other in paper.HIGHER_ACCURACY:
        claims += [_higher_claim(a, b) for a, b in _pairs(schemes, one, other) if _both_known(a, b)]
    for a, b in _pairs(schemes, paper.JOINT, paper.PERSONAL):
        claims += [_close_claim(a, b)] if _both_known(a, b) else []
        claims.append(_bits_claim(a, b))
    return claims


def reference_note(schemes: list[Scheme]) -> str:
    """FedAvg stands outside the paper's table; its numbers, or nothing."""
    found = [
        f"{s.label} {ms(mean_latency_s(s))} per round" + _and_accuracy(s)
        for s in _of(schemes, paper.REFERENCE)
    ]
    return (
        f"The common reference, which the paper's table does not have: {_series(found)}."
        if found
        else ""
    )


def _and_accuracy(scheme: Scheme) -> str:
    return "" if math.isnan(accuracy(scheme)) else f", final accuracy {_accuracy_text(scheme)}"


def _of(schemes: list[Scheme], role: str) -> list[Scheme]:
    return [scheme for scheme in schemes if scheme.role == role]


def _pairs(schemes: list[Scheme], one: str, other: str) -> Iterator[tuple[Scheme, Scheme]]:
    for a in _of(schemes, one):
        for b in _of(schemes, other):
            if _same_point(a, b):
                yield a, b


def _same_point(a: Scheme, b: Scheme) -> bool:
    """Only schemes of one scenario and threshold, and of a sweep at the same values, are held against each other."""
    if a.threshold_s != b.threshold_s or a.first.summary["scenario"] != b.first.summary["scenario"]:
        return False
    return all(
        a.values.get(key) == b.values.get(key) for key in a.numbers.keys() | b.numbers.keys()
    )


def _both_known(a: Scheme, b: Scheme) -> bool:
    return not math.isnan(accuracy(a) + accuracy(b))


def _latency_claim(a: Scheme, b: Scheme) -> Claim:
    here, there = (
        (mean_latency_s(a), mean_latency_s(b)),
        (paper.LATENCY_MS[a.role], paper.LATENCY_MS[b.role]),
    )
    numbers = (
        f"{ms(here[0])} against {ms(here[1])} here, {there[0]:g} against {there[1]:g} ms in Table I"
    )
    if {a.role, b.role} <= paper.AIMS_AT_THRESHOLD:
        rho = [measures.over_runs(scheme, measures.rho_mean) for scheme in (a, b)]
        numbers += f"; both plan for the threshold, their mean pruning ratios are {rho[0]:.3f} and {rho[1]:.3f}"
    if abs(here[0] - here[1]) <= SAME_LATENCY * max(here):
        return Claim(SAME, f"{a.label} and {b.label} take equally long per round: {numbers}.")
    if here[0] < here[1]:
        return Claim(AS_REPORTED, f"{a.label} takes less time per round than {b.label}: {numbers}.")
    return Claim(DIFFERS, f"{a.label} takes more time per round than {b.label}: {numbers}.")


def _higher_claim(a: Scheme, b: Scheme) -> Claim:
    gain = accuracy(a) - accuracy(b)
    numbers = f"{percent(accuracy(a))} against {percent(accuracy(b))} here; Fig. 5 has the first above the second"
    if abs(gain) < SAME_ACCURACY:
        return Claim(
            SAME, f"{a.label} and {b.label} end within half a point of accuracy: {numbers}."
        )
    word = "more" if gain > 0 else "less"
    return Claim(
        AS_REPORTED if gain > 0 else DIFFERS,
        f"{a.label} ends {word} accurate than {b.label}: {numbers}.",
    )


def _close_claim(a: Scheme, b: Scheme) -> Claim:
    gain = accuracy(a) - accuracy(b)
    close = abs(gain) <= CLOSE_ACCURACY
    where = (
        "within 2 points of"
        if close
        else f"{abs(gain) * 100:.1f} points {'above' if gain > 0 else 'below'}"
    )
    numbers = f"{percent(accuracy(a))} against {percent(accuracy(b))} here; Fig. 5 has the first close to the second"
    return Claim(AS_REPORTED if close else DIFFERS, f"{a.label} ends {where} {b.label}: {numbers}.")


def _bits_claim(a: Scheme, b: Scheme) -> Claim:
    bits = [
        float(np.mean(np.concatenate([run.rounds["bits_up"] for run in scheme.runs])))
        for scheme in (a, b)
    ]
    share = bits[0] / bits[1] if bits[1] else math.nan
    verdict = AS_REPORTED if abs(share - paper.BITS_SHARE) <= ABOUT_HALF else DIFFERS
    return Claim(
        verdict,
        f"{a.label} sends {percent(share)} of the uplink bits of {b.label}: {bits[0] / 1e6:.4g} against "
        f"{bits[1] / 1e6:.4g} Mbit per round here; about half in Fig. 5.",
    )


def mean_latency_s(scheme: Scheme) -> float:
    return float(measures.latencies_s(scheme).mean())


def accuracy(scheme: Scheme) -> float:
    """Final accuracy, mean over seeds; nan where it was not evaluated."""
    return measures.over_runs(scheme, lambda run: measures.final(run, "accuracy"))


def ms(seconds: float) -> str:
    value = seconds * 1e3
    return f"{value:.1f}{SPACE}ms" if value >= 10 else f"{value:.3g}{SPACE}ms"


def percent(share: float) -> str:
    return f"{share * 100:.1f}{SPACE}%"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"


def _range(values: list[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"
