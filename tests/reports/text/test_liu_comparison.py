"""Statements of Liu et al. are tested where the scenario asks for it and both sides were run."""

import numpy as np
import pytest

from edgesim.results.run_search import find_runs
from reports.run_data.scheme_grouping import load_schemes
from reports.text import findings
from reports.text.liu_comparison import (
    AS_REPORTED,
    DIFFERS,
    SIDE_BY_SIDE,
    UNDECIDED,
    compare_with_liu,
    verdict_over_seeds,
)

AS_IN_THE_PAPER = {
    "joint": (0.025, 0.9, 5e6),
    "equal": (0.038, 0.8, 5e6),
    "pruned": (0.045, 0.7, 5e6),
    "personal": (0.055, 0.91, 10e6),
}


def verdicts(schemes):
    return [claim.verdict for claim in compare_with_liu(schemes)]


def texts(schemes):
    return [claim.text.replace("\u00a0", " ") for claim in compare_with_liu(schemes)]


@pytest.mark.slow
def test_everything_as_in_the_paper_over_three_seeds(schemes_of):
    schemes = schemes_of(seeds=3, **AS_IN_THE_PAPER)
    assert verdicts(schemes) == [AS_REPORTED] * 7
    first, *_, last = texts(schemes)
    assert first == (
        "Stated: joint takes less time per round than equal (25 against 38 ms, Table I). Here: "
        "25.0 ms against 38.0 ms, -34.21 % with each of 3 common seeds; mean pruning ratios "
        "0.500 and 0.500."
    )
    assert "5 against 10 Mbit per round, +50.00 % with each of 3 common seeds" in last


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [1, 2])
def test_below_three_seeds_there_is_no_verdict(schemes_of, seeds):
    schemes = schemes_of(seeds=seeds, **AS_IN_THE_PAPER)
    assert verdicts(schemes) == [SIDE_BY_SIDE] * 7
    assert all("three are needed" in text for text in texts(schemes))


@pytest.mark.slow
def test_on_other_data_there_is_no_verdict_but_latency_needs_only_the_model(schemes_of):
    schemes = schemes_of(
        seeds=3, learning={"model": "liu-cnn", "dataset": "none"}, **AS_IN_THE_PAPER
    )
    assert verdicts(schemes) == [AS_REPORTED] * 3 + [SIDE_BY_SIDE] * 3 + [AS_REPORTED]
    assert "no verdict: the paper has no liu-cnn on none" in texts(schemes)[3]


@pytest.mark.slow
def test_on_another_model_there_is_no_verdict_at_all(schemes_of):
    digits = {"model": "digits-cnn", "dataset": "digits"}
    schemes = schemes_of(seeds=3, learning=digits, **AS_IN_THE_PAPER)
    assert verdicts(schemes) == [SIDE_BY_SIDE] * 7


@pytest.mark.slow
def test_nothing_is_compared_unless_the_scenario_asks(schemes_of):
    schemes = schemes_of(seeds=3, beside=None, **AS_IN_THE_PAPER)
    assert [scheme.role for scheme in schemes] == [None] * 4 and compare_with_liu(schemes) == []


@pytest.mark.slow
def test_what_differs_and_what_the_seeds_do_not_decide(schemes_of):
    schemes = schemes_of(
        seeds=3,
        step=0.02,
        joint=(0.030, 0.77, 9e6),
        equal=(0.020, 0.8, 5e6),
        personal=(0.055, 0.95, 10e6),
    )
    # accuracies of joint 77, 79, 81 %: 1 +- 5.0 points below equal, 16 +- 5.0 below personal
    assert verdicts(schemes) == [DIFFERS, AS_REPORTED, UNDECIDED, DIFFERS, DIFFERS]
    assert "-1.00 ± 4.97 points over 3 common seeds" in texts(schemes)[2]


def test_an_interval_below_the_digits_that_are_shown_is_not_said_to_be_none(schemes_of):
    schemes = schemes_of(seeds=3, step=1e-5, joint=(0.025, 0.9, 5e6), equal=(0.038, 0.8, 5e6))
    # 10.000, 10.001, 10.002 points: 4.303 * 0.001 / sqrt(3)
    assert "+10.00 ± 0.002 points over 3 common seeds" in texts(schemes)[1]


@pytest.mark.slow
def test_plans_that_fill_the_threshold_are_not_shorter(schemes_of):
    schemes = schemes_of(seeds=3, joint=(0.025, 0.9, 5e6), equal=(0.025, 0.898, 5e6))
    # equally long, and 0.2 points are less than the half that counts
    assert verdicts(schemes) == [DIFFERS, DIFFERS]


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((0.03, 0.05, 0.07), UNDECIDED),  # 5 +- 4.97
        ((0.04, 0.05, 0.06), AS_REPORTED),  # 5 +- 2.48
        ((-0.04, -0.05, -0.06), DIFFERS),
        ((0.0, 0.0, 0.0), DIFFERS),
    ],
)
def test_the_whole_interval_decides(values, verdict):
    assert verdict_over_seeds(np.array(values), 0.005, np.inf) == verdict


def test_no_claim_across_scenarios_or_without_accuracy(tmp_path, write_run):
    asked = "report: {beside: liu, schemes: {a: proposed, b: equal-resource}}"
    nothing = (float("nan"),) * 4
    one = write_run(tmp_path / "a", name="one", scheme="a", extra=asked, accuracy=nothing)
    two = write_run(tmp_path / "b", name="two", scheme="b", extra=asked, accuracy=nothing)
    assert compare_with_liu(load_schemes([one, two])) == []
    other = write_run(tmp_path / "c", name="one", scheme="b", extra=asked, accuracy=nothing)
    assert len(compare_with_liu(load_schemes([one, other]))) == 1
    assert len(findings.rankings(load_schemes([one, other]))) == 1


@pytest.mark.slow
def test_only_schemes_at_the_same_values_are_held_against_each_other(tmp_path, write_run):
    asked = "report: {beside: liu, schemes: {kkt: proposed, equal: equal-resource}}"
    for solver in ("kkt", "equal"):
        for band in (10, 20):
            write_run(
                tmp_path / "runs" / f"{solver}-{band}", scheme=solver, solver=solver,
                bandwidth=f"{band} MHz", extra=asked,
            )  # fmt: skip
    found = texts(load_schemes(find_runs([tmp_path / "runs"]).finished))
    assert [text.count("20 MHz") for text in found if "less time" in text] == [0, 2]
