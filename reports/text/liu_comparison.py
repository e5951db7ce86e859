"""Statements of Liu et al. (Table I, Fig. 5) beside what the runs show."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from reports.run_data import liu_reported_results as liu
from reports.run_data.run_statistics import final_accuracy, mean_latency_s, rho_mean, seed_mean
from reports.run_data.scheme_grouping import Scheme
from reports.text.number_text import accuracy_text, is_known, list_text, milliseconds, percent

SAME_LATENCY = 0.01  # relative
SAME_ACCURACY = 0.005  # half a point
CLOSE_ACCURACY = 0.02
ABOUT_HALF = 0.1  # of the bits, to either side
AS_REPORTED, DIFFERS, SAME = "as reported", "differs", "no difference"


@dataclass(frozen=True)
class CheckedClaim:
    """One statement of Liu et al. and whether the runs agree: AS_REPORTED, DIFFERS or SAME."""

    verdict: str
    text: str


def compare_with_liu(schemes: list[Scheme]) -> list[CheckedClaim]:
    """The statements for which both sides were run on the same scenario and threshold."""
    claims = []
    present = [role for role in liu.LATENCY_MS if _of(schemes, role)]
    for one, other in pairwise(present):
        stated = liu.LATENCY_MS[one], liu.LATENCY_MS[other]
        claims += [_latency_claim(a, b, stated) for a, b in _pairs(schemes, one, other)]
    for one, other in liu.HIGHER_ACCURACY:
        claims += [_higher_claim(a, b) for a, b in _pairs(schemes, one, other) if _evaluated(a, b)]
    for a, b in _pairs(schemes, liu.JOINT, liu.PERSONAL):
        claims += [_close_claim(a, b)] if _evaluated(a, b) else []
        claims.append(_bits_claim(a, b))
    return claims


def reference_note(schemes: list[Scheme]) -> str:
    """FedAvg stands outside the paper's table; its numbers, or nothing."""
    found = []
    for scheme in _of(schemes, liu.REFERENCE):
        text = f"{scheme.label} {milliseconds(mean_latency_s(scheme))} per round"
        if is_known(final_accuracy(scheme)):
            text += f", final accuracy {accuracy_text(scheme)}"
        found.append(text)
    if not found:
        return ""
    return f"The common reference, which the paper's table does not have: {list_text(found)}."


def _of(schemes: list[Scheme], role: str) -> list[Scheme]:
    return [scheme for scheme in schemes if scheme.role == role]


def _pairs(schemes: list[Scheme], one: str, other: str) -> Iterator[tuple[Scheme, Scheme]]:
    for a in _of(schemes, one):
        for b in _of(schemes, other):
            if _same_point(a, b):
                yield a, b


def _same_point(a: Scheme, b: Scheme) -> bool:
    """Have they one scenario, one threshold, and in a sweep the same values?"""
    if a.threshold_s != b.threshold_s or a.first.summary["scenario"] != b.first.summary["scenario"]:
        return False
    keys = a.numbers.keys() | b.numbers.keys()
    return all(a.values.get(key) == b.values.get(key) for key in keys)


def _evaluated(a: Scheme, b: Scheme) -> bool:
    return is_known(final_accuracy(a), final_accuracy(b))


def _latency_claim(a: Scheme, b: Scheme, stated_ms: tuple[float, float]) -> CheckedClaim:
    here = mean_latency_s(a), mean_latency_s(b)
    numbers = (
        f"{milliseconds(here[0])} against {milliseconds(here[1])} here, {stated_ms[0]:g} against "
        f"{stated_ms[1]:g} ms in Table I"
    )
    if {a.role, b.role} <= liu.AIMS_AT_THRESHOLD:
        rho = [seed_mean(scheme, rho_mean) for scheme in (a, b)]
        numbers += (
            "; both plan for the threshold, their mean pruning ratios are "
            f"{rho[0]:.3f} and {rho[1]:.3f}"
        )
    if abs(here[0] - here[1]) <= SAME_LATENCY * max(here):
        text = f"{a.label} and {b.label} take equally long per round: {numbers}."
        return CheckedClaim(SAME, text)
    verdict, word = (AS_REPORTED, "less") if here[0] < here[1] else (DIFFERS, "more")
    return CheckedClaim(
        verdict, f"{a.label} takes {word} time per round than {b.label}: {numbers}."
    )


def _accuracies(a: Scheme, b: Scheme, stated: str) -> str:
    here = f"{percent(final_accuracy(a))} against {percent(final_accuracy(b))} here"
    return f"{here}; Fig. 5 has the first {stated} the second"


def _higher_claim(a: Scheme, b: Scheme) -> CheckedClaim:
    gain, numbers = final_accuracy(a) - final_accuracy(b), _accuracies(a, b, "above")
    if abs(gain) < SAME_ACCURACY:
        text = f"{a.label} and {b.label} end within half a point of accuracy: {numbers}."
        return CheckedClaim(SAME, text)
    verdict, word = (AS_REPORTED, "more") if gain > 0 else (DIFFERS, "less")
    return CheckedClaim(verdict, f"{a.label} ends {word} accurate than {b.label}: {numbers}.")


def _close_claim(a: Scheme, b: Scheme) -> CheckedClaim:
    gain, numbers = final_accuracy(a) - final_accuracy(b), _accuracies(a, b, "close to")
    verdict, where = AS_REPORTED, "within 2 points of"
    if abs(gain) > CLOSE_ACCURACY:
        side = "above" if gain > 0 else "below"
        verdict, where = DIFFERS, f"{abs(gain) * 100:.1f} points {side}"
    return CheckedClaim(verdict, f"{a.label} ends {where} {b.label}: {numbers}.")


def _bits_claim(a: Scheme, b: Scheme) -> CheckedClaim:
    bits = [
        float(np.mean(np.concatenate([run.rounds["bits_up"] for run in scheme.runs])))
        for scheme in (a, b)
    ]
    share = bits[0] / bits[1] if bits[1] else math.nan
    verdict = AS_REPORTED if abs(share - liu.BITS_SHARE) <= ABOUT_HALF else DIFFERS
    return CheckedClaim(
        verdict,
        f"{a.label} sends {percent(share)} of the uplink bits of {b.label}: {bits[0] / 1e6:.4g} "
        f"against {bits[1] / 1e6:.4g} Mbit per round here; about half in Fig. 5.",
    )
