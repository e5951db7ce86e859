"""Statements of Liu et al. are only compared where both sides were run."""

from edgesim.results.run_search import find_runs
from reports.run_data.scheme_grouping import load_schemes
from reports.text import findings, liu_comparison
from reports.text.liu_comparison import AS_REPORTED, DIFFERS, SAME


def test_everything_as_in_the_paper(schemes_of):
    schemes = schemes_of(
        joint=(0.025, 0.9, 5e6),
        equal=(0.038, 0.8, 5e6),
        pruned=(0.045, 0.7, 5e6),
        personal=(0.055, 0.91, 10e6),
    )
    claims = liu_comparison.compare_with_liu(schemes)
    assert [claim.verdict for claim in claims] == [AS_REPORTED] * 7
    assert "25.0\u00a0ms against 38.0\u00a0ms here, 25 against 38 ms in Table I" in claims[0].text
    assert "50.0\u00a0% of the uplink bits" in claims[-1].text


def test_what_differs_is_said_with_both_numbers(schemes_of):
    schemes = schemes_of(
        joint=(0.030, 0.7, 9e6), equal=(0.020, 0.8, 5e6), personal=(0.055, 0.75, 10e6)
    )
    claims = liu_comparison.compare_with_liu(schemes)
    assert [claim.verdict for claim in claims] == [DIFFERS, AS_REPORTED, DIFFERS, DIFFERS, DIFFERS]
    assert (
        "joint takes more time per round than equal: 30.0\u00a0ms against 20.0\u00a0ms here"
        in claims[0].text
    )
    assert "joint ends less accurate than equal: 70.0\u00a0% against 80.0\u00a0%" in claims[2].text
    assert "5.0 points below personal" in claims[3].text


def test_plans_that_fill_the_threshold_are_equally_long(schemes_of):
    claims = liu_comparison.compare_with_liu(
        schemes_of(joint=(0.025, 0.9, 5e6), equal=(0.025, 0.898, 5e6))
    )
    assert [claim.verdict for claim in claims] == [SAME, SAME]
    assert "mean pruning ratios are 0.500 and 0.500" in claims[0].text


def test_no_claim_without_both_sides(schemes_of):
    assert (
        liu_comparison.compare_with_liu(schemes_of(joint=(0.025, 0.9, 5e6), fedavg=(0.1, 0.5, 5e6)))
        == []
    )


def test_no_claim_across_scenarios(tmp_path, write_run):
    one = write_run(tmp_path / "a", name="one")
    two = write_run(tmp_path / "b", name="two", scheme="equal", solver="equal")
    assert liu_comparison.compare_with_liu(load_schemes([one, two])) == []


def test_no_accuracy_claim_without_accuracy(tmp_path, write_run):
    nothing = (float("nan"),) * 4
    one = write_run(tmp_path / "a", accuracy=nothing)
    two = write_run(tmp_path / "b", scheme="equal", solver="equal", accuracy=nothing)
    assert len(liu_comparison.compare_with_liu(load_schemes([one, two]))) == 1
    assert len(findings.rankings(load_schemes([one, two]))) == 1


def test_only_schemes_at_the_same_values_are_held_against_each_other(tmp_path, write_run):
    folders = [
        write_run(
            tmp_path / f"{solver}-{band}", scheme=solver, solver=solver, bandwidth=f"{band} MHz"
        )
        for solver in ("kkt", "equal")
        for band in (10, 20)
    ]
    claims = liu_comparison.compare_with_liu(load_schemes(folders))
    assert [claim.text.count("20 MHz") for claim in claims if "equally long" in claim.text] == [
        0,
        2,
    ]


def test_a_long_list_of_references_is_cut(write_sweep):
    bands = tuple(f"{i} MHz" for i in range(1, 13))
    note = liu_comparison.reference_note(
        load_schemes(find_runs([write_sweep(("15 ms",), bands, (0,))]).finished)
    )
    assert "; 5 others; fedavg (bandwidth 12 MHz) 150.0" in note and note.count("per round") == 7
