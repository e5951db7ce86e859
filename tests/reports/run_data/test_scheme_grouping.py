"""Runs grouped into schemes, their labels and order."""

import pytest

from edgesim.errors import ResultsError
from edgesim.results.run_search import find_runs
from edgesim.scenario.schema import LIU_SCHEMES
from reports.run_data.missing_runs import superseded_runs
from reports.run_data.scheme_grouping import (
    MOST_SERIES,
    few_schemes,
    load_schemes,
    swept_keys,
    target_accuracies,
)
from reports.text.target_table import target_table


def test_the_targets_are_those_of_any_run_and_read_of_every_run(tmp_path, write_run):
    """Accuracy 0.5 after two rounds of 25 ms, 0.9 after four: 0.05 s to 0.5, 0.1 s to 0.8."""
    one = write_run(tmp_path / "a", targets=("0.8",))
    two = write_run(tmp_path / "b", scheme="x", targets=("0.5", "0.8"))
    schemes = load_schemes([one, two])
    assert target_accuracies(schemes) == [0.5, 0.8]
    assert [row[:2] + row[5:6] for row in target_table(schemes).rows] == [
        (0.5, "joint", 0.05), (0.5, "x", 0.05), (0.8, "joint", 0.1), (0.8, "x", 0.1)
    ]  # fmt: skip


@pytest.mark.slow
def test_runs_that_differ_in_their_targets_only_are_one_run_with_all_of_them(tmp_path, write_run):
    targets = {"a": ("0.8",), "b": ("0.5", "0.8"), "c": ("0.3",)}
    given = [
        write_run(
            tmp_path / name, targets=each, extra=f"evaluate: {{targets: [{', '.join(each)}]}}"
        )
        for name, each in targets.items()
    ]
    schemes = load_schemes(given)
    assert [run.folder.name for scheme in schemes for run in scheme.runs] == ["a"]
    assert target_accuracies(schemes) == [0.3, 0.5, 0.8]
    rest = superseded_runs(find_runs([tmp_path]), [given[0]])
    reason = "another run of the same scheme and seed, or one with more rounds, is reported"
    assert [(run.what, run.error) for run in rest] == [("b", reason), ("c", reason)]
    again = write_run(tmp_path / "d", targets=("0.3",))
    with pytest.raises(ResultsError, match=r"c and .*d are the same scheme .* same seed 0"):
        load_schemes([*given, again])


def test_other_targets_make_no_other_scheme(tmp_path, write_run):
    """Of one label and seed the listed run stays; of other seeds they are one scheme."""
    given = [
        write_run(tmp_path / name, seed=seed, extra=f"evaluate: {{targets: [{target}]}}")
        for name, seed, target in (("old", 0, 0.3), ("new", 0, 0.4), ("more", 1, 0.3))
    ]
    (scheme,) = load_schemes(given, listed=[given[1].resolve()])
    assert scheme.label == "joint" and [run.folder.name for run in scheme.runs] == ["new", "more"]


def test_a_listed_run_stands_for_those_from_which_it_went_on(tmp_path, write_run):
    """Not for one of another seed or place, with another key changed, or with more rounds still."""
    given = [
        write_run(tmp_path / name, seed=seed, bandwidth=band, extra=f"rounds: {rounds}")
        for name, seed, band, rounds in (
            ("short", 0, "200 MHz", 2),
            ("new", 0, "200 MHz", 4),
            ("longer", 0, "200 MHz", 5),
            ("seed", 1, "200 MHz", 2),
            ("band", 0, "100 MHz", 2),
            ("elsewhere/given", 0, "200 MHz", 2),
        )
    ]
    names = lambda schemes: {run.folder.name for each in schemes for run in each.runs}  # noqa: E731
    everything = {folder.name for folder in given}
    assert names(load_schemes(given, listed=[given[1].resolve()])) == everything - {"short"}
    assert names(load_schemes(given[:-1])) == everything - {"given"}
    both = [given[0].resolve(), given[1].resolve()]
    assert names(load_schemes(given[:-1], listed=both)) == everything - {"given"}


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


@pytest.mark.slow
def test_schemes_come_in_the_order_of_their_file_and_of_older_runs_by_label(tmp_path, write_run):
    extra = {
        "z": "scheme_position: 0",
        "m": "scheme_position: 1",
        "b": "",
        "a": "scheme_position: x",
    }
    folders = [write_run(tmp_path / x, scheme=x, extra=line) for x, line in extra.items()]
    assert [scheme.label for scheme in load_schemes(folders[::-1])] == ["z", "m", "a", "b"]
    swept = [scheme.label for scheme in load_schemes(folders, [f.resolve() for f in folders[::-1]])]
    assert swept == ["a", "b", "m", "z"]


@pytest.mark.slow
def test_schemes_of_two_files_do_not_mix(tmp_path, write_run):
    """Each file has z before a: by place alone both z came first."""
    folders = [
        write_run(tmp_path / f"{name}-{x}", scheme=x, name=name, extra=f"scheme_position: {i}")
        for name in ("two", "one")
        for i, x in enumerate("za")
    ]
    labels = ["z (one)", "a (one)", "z (two)", "a (two)"]
    assert [scheme.label for scheme in load_schemes(folders)] == labels
    listed = [folder.resolve() for folder in folders[:2]]  # of a sweep's file, then others
    assert [scheme.label for scheme in load_schemes(folders, listed)] == labels[2:] + labels[:2]


def test_a_scheme_has_the_least_place_of_its_runs(tmp_path, write_run):
    """The older run of z, with another solver, does not know that it is the first of its file."""
    older = write_run(tmp_path / "old", scheme="z", solver="equal")
    other = write_run(tmp_path / "other", scheme="a", extra="scheme_position: 1")
    new = write_run(tmp_path / "new", scheme="z", extra="scheme_position: 0")
    labels = [scheme.label for scheme in load_schemes([older, other, new])]
    assert labels == ["z (solver equal)", "z (solver kkt)", "a"]


def test_a_sweep_of_some_schemes_leaves_those_beside_it_in_the_order_of_the_file(
    tmp_path, write_run
):
    """As `edgesim sweep --only a` lists a alone, in a folder that holds points of all."""
    folders = [
        write_run(tmp_path / x, scheme=x, extra=f"scheme_position: {i}")
        for i, x in enumerate("zam")
    ]
    schemes = load_schemes(folders, [folders[1].resolve()])
    assert [scheme.label for scheme in schemes] == ["z", "a", "m"]


def test_schemes_come_in_the_order_of_the_paper_where_the_scenario_names_them(tmp_path, write_run):
    roles = "{z: proposed, e: equal-resource, p: pruning-only, m: personalization-only}"
    asked = f"report: {{beside: liu, schemes: {roles}}}"
    folders = [write_run(tmp_path / x, scheme=x, extra=asked) for x in ("z", "a", "m", "e", "p")]
    schemes = load_schemes(folders)
    assert [scheme.label for scheme in schemes] == ["z", "e", "p", "m", "a"]
    assert [scheme.role for scheme in schemes] == [*LIU_SCHEMES, None]


@pytest.mark.slow
def test_seeds_that_are_older_than_the_section_report_are_of_the_same_schemes(tmp_path, write_run):
    asked = "report: {beside: liu, schemes: {z: proposed}, untuned: One step for all.}"
    folders = [
        write_run(tmp_path / f"{x}{seed}", scheme=x, seed=seed, extra=asked if seed else "")
        for x in "az"
        for seed in (0, 1)
    ]
    schemes = load_schemes(folders)
    assert [(scheme.label, scheme.role) for scheme in schemes] == [("z", "proposed"), ("a", None)]
    assert [len(scheme.runs) for scheme in schemes] == [2, 2]
    assert {scheme.untuned for scheme in schemes} == {"One step for all."}


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


@pytest.mark.slow
def test_schemes_come_in_the_order_of_their_numbers(write_sweep):
    folders = find_runs(
        [write_sweep(bands=("100 MHz", "20 MHz", "3 MHz"), thresholds=("15 ms",))]
    ).finished
    numbers = [scheme.numbers["network.bandwidth"] for scheme in load_schemes(folders)]
    assert numbers == ["3 MHz", "20 MHz", "100 MHz"] * 2


@pytest.mark.slow
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
