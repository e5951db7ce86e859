"""Runs grouped into schemes, their labels and order."""

import pytest

from edgesim.errors import ResultsError
from edgesim.results.run_search import find_runs
from edgesim.scenario.schema import LIU_SCHEMES
from reports.run_data.scheme_grouping import MOST_SERIES, few_schemes, load_schemes, swept_keys


def test_different_targets_do_not_go_together(tmp_path, write_run):
    one, two = write_run(tmp_path / "a"), write_run(tmp_path / "b", scheme="x", targets=("0.7",))
    with pytest.raises(ResultsError, match=r"different target accuracies \(0.8, 0.95 and 0.7\)"):
        load_schemes([one, two])


def test_seeds_of_one_scheme_are_one_scheme(tmp_path, write_run):
    folders = [write_run(tmp_path / str(seed), seed=seed) for seed in (2, 0, 1)]
    (scheme,) = load_schemes(folders)
    assert [run.seed for run in scheme.runs] == [0, 1, 2]


def test_the_same_seed_twice_is_an_error(tmp_path, write_run):
    with pytest.raises(ResultsError, match=r"same scheme .* same seed 0"):
        load_schemes([write_run(tmp_path / "a"), write_run(tmp_path / "b")])


def test_schemes_of_one_label_are_told_apart_by_what_differs(tmp_path, write_run):
    one, two = write_run(tmp_path / "a"), write_run(tmp_path / "b", bandwidth="20 MHz")
    labels = [scheme.label for scheme in load_schemes([one, two])]
    assert sorted(labels) == ["joint (bandwidth 20 MHz)", "joint (bandwidth 200 MHz)"]
    three = write_run(tmp_path / "c", name="other")
    assert "joint (other)" in [scheme.label for scheme in load_schemes([one, three])]


def test_schemes_come_in_the_order_of_the_paper_where_the_scenario_names_them(tmp_path, write_run):
    roles = "{z: proposed, e: equal-resource, p: pruning-only, m: personalization-only}"
    asked = f"report: {{beside: liu, schemes: {roles}}}"
    folders = [write_run(tmp_path / x, scheme=x, extra=asked) for x in ("z", "a", "m", "e", "p")]
    schemes = load_schemes(folders)
    assert [scheme.label for scheme in schemes] == ["z", "e", "p", "m", "a"]
    assert [scheme.role for scheme in schemes] == [*LIU_SCHEMES, None]


@pytest.mark.parametrize("solver", ["kkt", "fair", "energy", "./own.py:mine"])
def test_no_role_is_guessed_from_method_and_solver(tmp_path, write_run, solver):
    (scheme,) = load_schemes([write_run(tmp_path / "a", method="liu", solver=solver)])
    assert scheme.role is None


def test_labels_series_and_axes(swept_schemes):
    assert len(swept_schemes) == 12 and {len(scheme.runs) for scheme in swept_schemes} == {2}
    assert swept_schemes[0].label == "liu (bandwidth 10 MHz, latency threshold 15 ms)"
    assert {scheme.series for scheme in swept_schemes} == {"liu", "fedavg"}
    assert [axis.title for axis in swept_keys(swept_schemes)] == [
        "bandwidth (MHz)",
        "latency threshold (ms)",
    ]


def test_schemes_come_in_the_order_of_their_numbers(write_sweep):
    folders = find_runs(
        [write_sweep(bands=("100 MHz", "20 MHz", "3 MHz"), thresholds=("15 ms",))]
    ).finished
    numbers = [scheme.numbers["network.bandwidth"] for scheme in load_schemes(folders)]
    assert numbers == ["3 MHz", "20 MHz", "100 MHz"] * 2


def test_numbers_are_ordered_whatever_their_units(write_sweep):
    folders = find_runs(
        [write_sweep(bands=("1 GHz", "500 MHz"), thresholds=("1 s", "15 ms"), seeds=(0,))]
    ).finished
    found = [
        tuple(scheme.numbers.values()) for scheme in load_schemes(folders) if scheme.series == "liu"
    ]
    assert found == [("500 MHz", "15 ms"), ("500 MHz", "1 s"), ("1 GHz", "15 ms"), ("1 GHz", "1 s")]


def test_a_slice_is_the_middle_of_every_axis(swept_schemes):
    shown, chosen = few_schemes(swept_schemes, swept_keys(swept_schemes))
    assert chosen == "bandwidth 20 MHz, latency threshold 15 ms"
    assert [scheme.label for scheme in shown] == ["liu", "fedavg"]
    assert shown[0].numbers == {"network.bandwidth": "20 MHz", "budget.latency_threshold": "15 ms"}
    assert few_schemes(swept_schemes[:MOST_SERIES], swept_keys(swept_schemes)) == (
        swept_schemes[:MOST_SERIES],
        "",
    )
