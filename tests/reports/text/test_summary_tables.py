"""Tables of a report, against tables made by hand."""

import csv
import io
import json
from dataclasses import replace

import pytest
from pytest import approx

from reports.run_data.scheme_grouping import load_schemes
from reports.text import summary_tables as tables
from reports.text.target_table import target_table

NAN = float("nan")


def rows_of(table):
    return list(csv.DictReader(io.StringIO(table.csv())))


def test_scheme_table_by_hand(scheme_of):
    (row,) = rows_of(tables.scheme_table([scheme_of()]))
    assert row["scheme"] == "joint" and row["seeds"] == "1" and row["rounds"] == "4"
    assert float(row["final_accuracy"]) == 0.9 and float(
        row["final_accuracy_std_devices"]
    ) == approx(0.1)
    assert row["final_accuracy_ci95"] == ""
    assert float(row["rho_mean"]) == 0.5 and float(row["certificate_worst"]) == 1e-12


def test_of_real_targets_the_loss_stands_in_place_of_the_accuracy(scheme_of):
    schemes = [
        scheme_of(scheme=name, accuracy=(NAN,) * 4, loss=(NAN, 9.0, NAN, last))
        for name, last in (("a", 2.5), ("b", 1.5))
    ]
    table = tables.scheme_table(schemes)
    assert [float(row["final_loss"]) for row in rows_of(table)] == [2.5, 1.5]
    assert not [name for name in rows_of(table)[0] if "accuracy" in name]
    assert "Loss: mean over devices" in table.caption and "ccuracy" not in table.caption
    untrained = scheme_of(accuracy=(NAN,) * 4, loss=(NAN,) * 4)
    for mixed in ([*schemes, scheme_of(loss=(1.0,) * 4)], [untrained]):
        assert "final_accuracy" in rows_of(tables.scheme_table(mixed))[0]


@pytest.mark.slow
def test_a_metric_of_the_users_own_has_its_last_value(write_run, tmp_path):
    """0.2, 0.4 and 0.6 at the end: t(2, 0.975) is 4.303, and the standard deviation 0.2."""
    runs = [
        write_run(tmp_path / str(seed), seed=seed, top3=(NAN, 0.1, NAN, 0.2 * (seed + 1)))
        for seed in range(3)
    ]
    table = tables.scheme_table(load_schemes([*runs, write_run(tmp_path / "b", scheme="b")]))
    joint, b = sorted(rows_of(table), key=lambda row: row["scheme"] == "b")
    assert float(joint["final_top3"]) == approx(0.4) and b["final_top3"] == ""
    assert float(joint["final_top3_ci95"]) == approx(4.30265 * 0.2 / 3**0.5, rel=1e-5)
    assert "top3: mean over devices in the last evaluated round." in table.caption


def test_cost_table_by_hand(scheme_of):
    (row,) = rows_of(tables.cost_table([scheme_of(latency_s=(0.02, 0.02, 0.02, 0.04))]))
    assert float(row["mean_latency_s"]) == approx(0.025) and float(row["std_latency_s"]) == approx(
        0.0086602540
    )
    assert (
        float(row["max_latency_s"]),
        float(row["late_share"]),
        float(row["infeasible_share"]),
    ) == (0.04, 0.25, 0)
    assert (float(row["bits_up"]), float(row["bits_down"]), float(row["energy_j"])) == (
        40e6,
        80e6,
        2.0,
    )


@pytest.mark.parametrize(("rounds", "bold"), [(4, "bits_up bits_down energy_j"), (3, "")])
def test_sums_over_other_numbers_of_rounds_are_in_no_order(write_run, tmp_path, rounds, bold):
    """b spends half as much a round, and is slower in each."""
    accuracy = (NAN, 0.5, 0.6, 0.9)
    b = {"latency_s": (0.03,) * rounds, "accuracy": accuracy[:rounds], "energy_j": 0.25}
    of = {"a": {}, "b": b | {"bits_up": 5e6, "bits_down": 10e6}}
    schemes = load_schemes(
        write_run(tmp_path / f"{name}{seed}", scheme=name, seed=seed, **given)
        for name, given in of.items()
        for seed in range(3)
    )
    table = tables.cost_table(schemes)
    best = {(table.rows[row][0], table.columns[i].name) for row, i in table.best()}
    assert best == {("a", "mean_latency_s"), *(("b", name) for name in bold.split())}
    why = "The runs have 3 to 4 rounds, so that these sums rank nobody."
    assert (why in table.caption) == (rounds == 3)


@pytest.mark.slow
def test_promised_and_realised_late_shares_stand_side_by_side(write_run, tmp_path):
    """One of four rounds is late; two seeds promised 4 % and 6 %."""
    promises = ({}, {"promised_late_share": 0.04, "pruning_per_late_share": -3.0})
    promises += ({"promised_late_share": 0.06, "pruning_per_late_share": -5.0},)
    folders = []
    for seed, promised in enumerate(promises):
        scheme = "quantile" if promised else "now"
        late = (0.02, 0.02, 0.02, 0.04)
        folder = write_run(tmp_path / str(seed), scheme=scheme, seed=seed, latency_s=late)
        summary = json.loads((folder / "summary.json").read_text())
        (folder / "summary.json").write_text(json.dumps(summary | promised))
        folders.append(folder)
    now, quantile = load_schemes(folders)
    table = tables.cost_table([now, quantile])
    first, second = rows_of(table)
    assert (first["promised_late_share"], first["late_share"]) == ("", "0.25")
    assert float(second["promised_late_share"]) == approx(0.05)
    assert float(second["pruning_per_late_percent"]) == approx(-0.04)
    assert "Promised" in table.caption and "Promised" not in tables.cost_table([now]).caption


def test_captions_say_how_many_seeds_the_intervals_have(schemes_of):
    """The latency of all seeds is the same, so that its interval is zero."""
    three = schemes_of(seeds=3, beside="", joint=(0.025, 0.9, 5e6))
    said = "95 % interval over 3 seeds (Student t), none where all agree."
    every = (tables.scheme_table, tables.cost_table, target_table)
    assert all(table(three).caption.endswith(said) for table in every)
    assert tables.cost_table(three).latex().count(r"$\pm$") == 0
    one = replace(three[0], label="one", runs=three[0].runs[:1])
    mixed, alone = (tables.cost_table(schemes).caption for schemes in ([*three, one], [one]))
    assert "over 1 to 3 seeds (Student t, three seeds or more)" in mixed
    assert alone.endswith("Over 1 seed: too few for an interval.")


def test_a_mean_that_lacks_a_seed_is_not_compared(write_run, tmp_path):
    """The seed of b without an accuracy, which ended before it was evaluated, may be its worst."""
    last = {"a": (0.6, 0.61, 0.62, 0.63), "b": (0.9, 0.91, 0.92, NAN), "c": (0.3, 0.31, 0.32, 0.33)}
    schemes = load_schemes(
        write_run(tmp_path / f"{name}{seed}", scheme=name, seed=seed, accuracy=(NAN, NAN, NAN, x))
        for name, values in last.items()
        for seed, x in enumerate(values)
    )
    table = tables.scheme_table(schemes)
    mean = [column.name for column in table.columns].index("final_accuracy")
    assert [row[mean] for row in table.rows] == approx([0.615, 0.91, 0.315])
    assert table.cells()[1][mean] == "91.0"
    assert {(table.rows[row][0], i) for row, i in table.best()} == {("a", mean)}
