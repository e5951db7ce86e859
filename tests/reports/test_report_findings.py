"""The sentences say what the numbers say, and never what did not happen."""

import pytest

from reports.run_data.scheme_grouping import load_schemes
from reports.text import findings, liu_comparison
from reports.text.liu_comparison import AS_REPORTED, DIFFERS, SAME

ROLES = {"joint": ("liu", "kkt"), "equal": ("liu", "equal"), "pruned": ("pruning-only", "kkt")}
ROLES |= {"personal": ("fedalt", "equal"), "fedavg": ("fedavg", "equal")}


@pytest.fixture
def schemes_of(tmp_path, write_run):
    def make(**given):
        folders = []
        for label, (latency_s, accuracy, bits_up) in given.items():
            method, solver = ROLES[label]
            folders.append(
                write_run(
                    tmp_path / label, scheme=label, method=method, solver=solver, bits_up=bits_up,
                    latency_s=(latency_s,) * 2, accuracy=(0.1, accuracy),
                )
            )  # fmt: skip
        return load_schemes(folders)

    return make


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


def test_orders(schemes_of):
    schemes = schemes_of(
        joint=(0.025, 0.9, 5e6), fedavg=(0.1, 0.5, 5e6), personal=(0.055, 0.95, 5e6)
    )
    latency, accuracy = (text.replace("\u00a0", " ") for text in findings.rankings(schemes))
    assert latency.endswith("joint 25.0 ms; personal 55.0 ms; fedavg 100.0 ms.")
    assert accuracy.endswith("personal 95.0 %; joint 90.0 %; fedavg 50.0 %.")


def test_leaving_the_threshold_is_said_by_how_much(tmp_path, write_run):
    one = write_run(tmp_path / "a", latency_s=(0.020, 0.025, 0.030, 0.035))
    two = write_run(tmp_path / "b", scheme="fedavg", method="fedavg", latency_s=(0.1,) * 4)
    aiming, others = findings.threshold_notes(load_schemes([one, two]))
    assert [text.replace("\u00a0", " ") for text in aiming] == [
        "joint: 50.0 % of the rounds take longer than 25.0 ms; mean 27.5 ms (+10 %), longest 35.0 ms (+40 %)."
    ]
    assert [text.replace("\u00a0", " ") for text in others] == [
        "fedavg: all rounds take longer than 25.0 ms; mean 100.0 ms (+300 %), longest 100.0 ms (+300 %)."
    ]


def test_meeting_the_threshold_is_said(scheme_of):
    exact, _ = findings.threshold_notes([scheme_of()])
    assert "every round takes" in exact[0]
    below, _ = findings.threshold_notes([scheme_of(latency_s=(0.02, 0.02, 0.025, 0.01))])
    assert (
        "no round takes longer than 25.0\u00a0ms; mean 18.8\u00a0ms, shortest 10.0\u00a0ms"
        in below[0]
    )


def test_overview(schemes_of):
    text = findings.overview(schemes_of(joint=(0.025, 0.9, 5e6)))
    assert (
        text
        == "1 scheme on the scenario demo: 2 devices, 2 global rounds, seed 0, latency threshold 25.0\u00a0ms."
    )
