"""The sentences say what the numbers say."""

import re

import pandas as pd
import pytest

from reports.run_data.scheme_grouping import load_schemes
from reports.text import findings
from reports.text.summary_tables import cost_table, scheme_table
from reports.text.target_table import target_table

THREE = {"joint": (0.025, 0.9, 5e6), "fedavg": (0.1, 0.5, 5e6), "personal": (0.055, 0.95, 5e6)}


def sentences(schemes):
    return [text.replace("\u00a0", " ") for text in findings.rankings(schemes)]


@pytest.mark.slow
def test_orders(schemes_of):
    """Three seeds with the same values: their intervals have no width."""
    schemes = schemes_of(seeds=3, **THREE)
    latency, accuracy = sentences(schemes)
    assert latency.endswith("shortest first: joint 25.0 ms; personal 55.0 ms; fedavg 100.0 ms.")
    assert re.findall(r"highest first|personal|joint|fedavg", accuracy) == [
        *("highest first", "personal", "joint", "fedavg")
    ]


@pytest.mark.slow
def test_equal_numbers_have_no_order(schemes_of):
    """Seeds without a spread: the intervals have no width, and lie in one place."""
    given = {"joint": (0.025, 0.5, 5e6), "fedavg": (0.025, 0.5 + 1e-16, 5e6)}
    for sentence in sentences(schemes_of(seeds=3, **given)):
        assert ", in no order, as 95 % intervals overlap: joint" in sentence
    assert sentences(schemes_of(seeds=3, untuned="none", personal=(0.05, 0, 0), **given))[0] == (
        "Mean latency per round, in no order, as 95 % intervals overlap: "
        "fedavg 25.0 ms; joint 25.0 ms; personal 50.0 ms."
    )


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [1, 2])
def test_fewer_than_three_seeds_have_values_and_no_order(schemes_of, seeds):
    """The scheme of the paper comes first, then the others by label."""
    latency, accuracy = sentences(schemes_of(seeds=seeds, **THREE))
    why = "in no order, as fewer than 3 seeds rank nobody: joint"
    assert f"Mean latency per round, {why} 25.0 ms; personal 55.0 ms; fedavg 100.0 ms." == latency
    assert f"Final test accuracy (mean over devices), {why} 90.0 %" in accuracy
    assert accuracy.index("personal") < accuracy.index("fedavg")


def test_seeds_with_other_numbers_of_rounds_count_alike_as_in_the_table(tmp_path, write_run):
    """As where a time ends the run: two rounds of 30 ms and four of 15 ms have a mean of 22.5."""
    given = {0: (0.03, 0.03), 1: (0.015,) * 4}
    folders = [
        write_run(tmp_path / str(k), seed=k, latency_s=each, accuracy=(0.5,) * len(each))
        for k, each in given.items()
    ]
    schemes = load_schemes(folders)
    assert sentences(schemes)[0] == "Mean latency per round: joint 22.5 ms."
    assert "; mean 22.5\u00a0ms (" in findings.threshold_notes(schemes)[0]
    (row,) = cost_table(schemes).rows
    assert row[1] == pytest.approx(0.0225)
    (row,) = scheme_table(schemes).rows
    assert row[4] == 3


@pytest.mark.parametrize("seeds", [1, 3])
def test_one_scheme_has_its_values_and_no_rank(schemes_of, seeds):
    latency, accuracy = sentences(schemes_of(seeds=seeds, joint=THREE["joint"]))
    assert latency == "Mean latency per round: joint 25.0 ms."
    assert accuracy.startswith("Final test accuracy (mean over devices): joint 90.0")


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (0.0, "90.0 % with every seed"),  # it was 90.0 ± 0.0, as if it were rounded
        (1e-4, "90.0 ± 0.02 %"),  # t of two degrees times 1e-4 / sqrt(3); this one is
        (1e-2, "91.0 ± 2.5 %"),
    ],
)
def test_an_interval_in_a_sentence_is_zero_nowhere(schemes_of, step, text):
    _, accuracy = sentences(schemes_of(seeds=3, step=step, joint=THREE["joint"]))
    assert accuracy == f"Final test accuracy (mean over devices): joint {text}."


@pytest.mark.slow
def test_schemes_that_are_not_tuned_are_not_ranked(schemes_of):
    """Three seeds each, which else have an order and their best."""
    given = {"fedavg": (0.1, 0.5, 5e6), "joint": (0.025, 0.9, 5e6)}
    _, order = findings.rankings(tuned := schemes_of(seeds=3, beside="", **given))
    assert "highest first: joint" in order and scheme_table(tuned).best()
    _, listed, why = findings.rankings(odd := schemes_of(seeds=3, untuned="As printed.", **given))
    assert "highest first" not in listed and f"over devices): {odd[0].label} " in listed
    assert why == "Not a comparison of accuracies: As printed."
    table = scheme_table(odd)
    assert not table.best() and why in table.latex() and why in target_table(odd).caption
    undone = schemes_of(seeds=3, untuned="none", **given)  # over a file that gives a reason
    assert "highest first: joint" in findings.rankings(undone)[1] and scheme_table(undone).best()


@pytest.mark.slow
def test_training_that_diverged_is_said_with_its_seeds(tmp_path, write_run):
    accuracy = (0.5, 0.75)
    runs = [
        write_run(tmp_path / str(seed), seed=seed, latency_s=(0.02,) * 2, accuracy=accuracy)
        for seed in (0, 1, 3)
    ]
    assert findings.divergence_notes(load_schemes(runs)) == []
    for run in runs[1:]:
        table = run / "rounds.csv"
        table.write_text(table.read_text().replace(",0.25,", ",inf,"))  # the loss of round 1
    assert findings.divergence_notes(load_schemes(runs)) == [
        "joint: training diverged with seeds 1, 3; the notes below say when."
    ]


def test_leaving_the_threshold_is_said_by_how_much(tmp_path, write_run):
    one = write_run(tmp_path / "a", latency_s=(0.020, 0.025, 0.030, 0.035))
    two = write_run(tmp_path / "b", scheme="fedavg", method="fedavg", latency_s=(0.1,) * 4)
    notes = findings.threshold_notes(load_schemes([one, two]))
    assert [text.replace("\u00a0", " ") for text in reversed(notes)] == [
        "joint: 50.0 % of the rounds take longer than 25.0 ms; mean 27.5 ms (+10 %), "
        "longest 35.0 ms (+40 %).",
        "fedavg: all rounds take longer than 25.0 ms; mean 100.0 ms (+300 %), "
        "longest 100.0 ms (+300 %).",
    ]


def test_a_rare_round_beyond_the_threshold_is_not_none(scheme_of):
    one = scheme_of()
    many = pd.concat([one.first.rounds] * 1000, ignore_index=True)
    many.loc[7, "latency_s"] = 0.030
    object.__setattr__(one.first, "rounds", many)
    (note,) = findings.threshold_notes([one])
    assert note.startswith("joint: 0.03\u00a0% of the rounds take longer than 25.0\u00a0ms;")


def test_versions_of_overlapping_jobs_are_not_held_against_the_threshold(overlapping):
    """It counts from the dispatch of each job; a version is made whenever enough have arrived."""
    overlapping.first.summary["latency_threshold_s"] = 2.0
    assert findings.threshold_notes([overlapping]) == []
    overlapping.first.summary["stretched_rounds"] = 2
    (note,) = findings.threshold_notes([overlapping])
    assert note.startswith("clocked: In 2 rounds it was not feasible")


def test_meeting_the_threshold_is_said(scheme_of):
    exact = findings.threshold_notes([scheme_of()])
    assert "every round takes" in exact[0]
    below = findings.threshold_notes([scheme_of(latency_s=(0.02, 0.02, 0.025, 0.01))])
    assert (
        "no round takes longer than 25.0\u00a0ms; mean 18.8\u00a0ms, shortest 10.0\u00a0ms"
        in below[0]
    )


def test_overview(schemes_of):
    text = findings.overview(schemes_of(joint=(0.025, 0.9, 5e6)))
    assert (
        text == "1 scheme on the scenario demo: 2 devices, 2 global rounds, seed 0, "
        "latency threshold 25.0\u00a0ms."
    )


def test_the_overview_says_that_some_schemes_have_no_threshold(scheme_of):
    schemes = [scheme_of(), scheme_of(scheme="free", threshold_s=None)]
    assert findings.overview(schemes).endswith("latency threshold 25.0\u00a0ms or none.")
    assert findings.overview(schemes[1:]).endswith("seed 0, no latency threshold.")


@pytest.mark.slow
def test_schemes_whose_intervals_overlap_have_no_order(schemes_of):
    """Seeds 0, 1, 2 of joint: 0.7, 0.75, 0.8; t(2) s / sqrt(3) is 0.124, so 0.65 is not told apart.

    0.5 is, and stays plain; latencies are those of equal seeds and have their order.
    """
    given = {"fedavg": (0.1, 0.65, 5e6), "joint": (0.025, 0.7, 5e6), "personal": (0.03, 0.5, 5e6)}
    schemes = schemes_of(seeds=3, step=0.05, beside="", **given)
    latency, accuracy = findings.rankings(schemes)
    assert "shortest first: joint" in latency
    assert "in no order, as 95 % intervals overlap: fedavg 65.0" in accuracy
    table = scheme_table(schemes)
    column = [each.name for each in table.columns].index("final_accuracy")
    bold = {table.rows[row][0] for row, i in table.best() if i == column}
    assert bold == {"fedavg", "joint"}
