"""Table of targets, against tables made by hand."""

import csv
import io

import pytest
from pytest import approx

from reports.run_data.scheme_grouping import load_schemes
from reports.styling.table_formats import DASH
from reports.text.target_table import target_table


def rows_of(table):
    return list(csv.DictReader(io.StringIO(table.csv())))


def test_target_table_says_what_was_not_reached(scheme_of):
    table = target_table([scheme_of(latency_s=(0.02, 0.02, 0.02, 0.04))])
    first, second = rows_of(table)
    assert (first["reached"], first["rounds"], first["bits"], first["energy_j"]) == (
        "yes",
        "4.0",
        "120000000.0",
        "2.0",
    )
    assert float(first["time_s"]) == approx(0.1)
    assert (second["reached"], second["time_s"], second["bits"]) == ("not reached", "", "")
    assert table.cells()[1] == ["95", "joint", "not reached", *[DASH] * 8]


def test_targets_over_seeds_count_who_reached(tmp_path, write_run):
    one = write_run(tmp_path / "0", seed=0, accuracy=(0.1, 0.5, 0.8, 0.9))
    two = write_run(tmp_path / "1", seed=1, accuracy=(0.1, 0.5, 0.6, 0.7))
    row = rows_of(target_table(load_schemes([one, two])))[0]
    assert (row["reached"], row["rounds"]) == ("1 of 2 seeds", "3.0")


def test_rounds_to_a_target_are_whole_where_seeds_do_not_divide_them(tmp_path, write_run):
    """Reached after 3 rounds with one seed; after 3 and 2 with both."""
    one = write_run(tmp_path / "0", seed=0, accuracy=(0.1, 0.5, 0.8, 0.9))
    two = write_run(tmp_path / "1", seed=1, accuracy=(0.1, 0.8, 0.8, 0.9))
    rounds = [target_table(load_schemes(runs)).cells()[0][3] for runs in ([one], [one, two])]
    assert rounds == ["3", "2.5"]


@pytest.mark.slow
def test_the_interval_to_a_target_is_over_the_seeds_that_reached_it(schemes_of):
    """0.7, 0.76, 0.82, 0.88: two of them reach 0.8."""
    schemes = schemes_of(seeds=4, step=0.06, beside="", joint=(0.025, 0.7, 5e6))
    assert target_table(schemes).caption.endswith("Over 2 seeds: too few for an interval.")


def test_no_interval_is_explained_where_nobody_reached_a_target(scheme_of):
    caption = target_table([scheme_of(targets=("0.99",))]).caption
    assert caption.endswith("means over those that reached it.")


def test_no_targets_no_table(scheme_of):
    assert target_table([scheme_of(targets=())]) is None


def test_runs_without_accuracies_have_no_table_of_targets(scheme_of):
    """Real targets, or counts only: nothing says that a target was not reached."""
    never = {"accuracy": (float("nan"),) * 4}
    plain, other = scheme_of(**never), scheme_of(scheme="other", **never)
    assert target_table([plain, other]) is None
    assert target_table([plain, scheme_of(scheme="third")]) is not None
