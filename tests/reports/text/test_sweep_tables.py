"""Pivoted tables of a sweep."""

import csv
import io
from itertools import product

import pytest
from pytest import approx

from reports.run_data.given_runs import schemes_of
from reports.run_data.scheme_grouping import load_schemes, swept_keys
from reports.text.sweep_tables import sweep_pivots


def test_the_key_with_the_most_values_goes_across(swept_schemes):
    tables = {table.name: table for table in sweep_pivots(swept_schemes, swept_keys(swept_schemes))}
    assert set(tables) == {
        f"{x}-by-bandwidth" for x in ("accuracy", "loss", "rho", "latency", "energy")
    }
    rows = list(csv.DictReader(io.StringIO(tables["accuracy-by-bandwidth"].csv())))
    assert [(row["scheme"], row["budget.latency_threshold (ms)"]) for row in rows] == [
        *(("liu", "15.0"), ("liu", "30.0"), ("fedavg", "15.0"), ("fedavg", "30.0"))
    ]
    values = [float(rows[0][f"accuracy at network.bandwidth {x} MHz"]) for x in (10, 20, 40)]
    assert values == approx([0.205, 0.305, 0.505])


@pytest.mark.slow
def test_latex_has_the_interval_over_three_seeds_and_the_best_in_bold(write_sweep):
    schemes = schemes_of(
        write_sweep(thresholds=("15 ms",), bands=("10 MHz", "20 MHz"), seeds=(0, 1, 2))
    )
    text = sweep_pivots(schemes, swept_keys(schemes))[0].latex()
    assert "interval over 3 seeds" in text
    # means 0.21 and 0.31 of liu, 0.1 less of fedavg; t of two degrees times 0.01 / sqrt(3)
    assert r"liu & \textbf{21.0} $\pm$ 2.5 & \textbf{31.0} $\pm$ 2.5 \\" in text
    assert r"fedavg & 11.0 $\pm$ 2.5 & 21.0 $\pm$ 2.5 \\" in text


@pytest.mark.slow
def test_the_best_is_that_among_schemes_at_equal_values_of_the_other_keys(write_sweep):
    """Liu's rounds last as long as the threshold, those of FedAvg ten times as long."""
    schemes = schemes_of(write_sweep(bands=("10 MHz", "20 MHz"), seeds=(0, 1, 2)))
    keys = swept_keys(schemes)
    (band,) = (key for key in keys if key.name == "bandwidth")

    def latencies(some):
        found = sweep_pivots(some, keys, band)
        return next(table for table in found if table.name == "latency-by-bandwidth").latex()

    both, bold = latencies(schemes), r"\textbf{15.00} & \textbf{15.00}"
    assert f"liu & 15 & {bold}" in both
    assert r"liu & 30 & \textbf{30.00} & \textbf{30.00}" in both
    assert "fedavg & 30 & 300.0 & 300.0" in both
    assert "% Bold: the best mean of each column among lines of the same latency threshold" in both
    alone = latencies([scheme for scheme in schemes if scheme.series == "liu"])
    assert f"liu & 15 & {bold}" in alone and "liu & 30 & 30.00 & 30.00" in alone


def test_keys_that_only_change_together_have_no_table(tmp_path, write_run):
    for rounds, band in ((10, 1), (20, 2)):
        write_run(
            tmp_path / "runs" / str(band),
            bandwidth=f"{band} MHz",
            extra=f"evaluate: {{every: {rounds}}}",
        )
    schemes = schemes_of(tmp_path / "runs")
    assert sweep_pivots(schemes, swept_keys(schemes)) == []


@pytest.mark.slow
def test_values_in_units_that_do_not_go_together_have_rows_of_their_own(tmp_path, write_run):
    for noise, gain in (("-110 dBm", 0.0), ("-174 dBm/Hz", 0.2)):
        for band in (10, 20):
            write_run(
                tmp_path / "runs" / f"{band}{noise.replace('/', '')}",
                bandwidth=f"{band} MHz, noise: {noise}",
                accuracy=(0.1, 0.1, 0.1, band / 100 + gain),
            )
    schemes = schemes_of(tmp_path / "runs")
    table = sweep_pivots(schemes, swept_keys(schemes))[0]
    assert table.name == "accuracy-by-bandwidth"
    rows = [(row[0], row[1], row[3]) for row in table.rows]
    assert rows == [
        ("joint (noise -110 dBm)", approx(0.1), approx(0.2)),
        ("joint (noise -174 dBm/Hz)", approx(0.3), approx(0.4)),
    ]


@pytest.mark.slow
def test_none_beside_numbers_has_a_column(tmp_path, write_run):
    for i, limit in enumerate(("none", "15 ms", "20 ms")):
        write_run(
            tmp_path / "runs" / str(i),
            extra=f"budget: {{latency_threshold: {limit}}}",
            accuracy=(0.1, 0.1, 0.1, 0.2 + i / 10),
        )
    write_run(tmp_path / "runs/other", scheme="other", accuracy=(0.1,) * 4)  # without the key
    schemes = schemes_of(tmp_path / "runs")
    (table,) = (t for t in sweep_pivots(schemes, swept_keys(schemes)) if t.name[:3] == "acc")
    assert [column.title for column in table.columns if not column.half_of] == [
        *("Scheme", "15 ms", "20 ms", "none")
    ]
    (row,) = table.rows
    assert row[1::2] == (approx(0.3), approx(0.4), approx(0.2))


def test_none_of_a_key_down_the_rows_is_no_missing_value(tmp_path, write_run):
    """It stood as a dash, as for schemes without the key."""
    for i, (limit, band) in enumerate(product(("none", "15 ms", "20 ms"), (10, 20, 40, 80))):
        write_run(
            tmp_path / "runs" / str(i),
            bandwidth=f"{band} MHz",
            extra=f"budget: {{latency_threshold: {limit}}}",
        )
    schemes = schemes_of(tmp_path / "runs")
    table = sweep_pivots(schemes, swept_keys(schemes))[0]
    assert [cells[1] for cells in table.cells()] == ["15", "20", "none"]
    assert [row[1] for row in csv.reader(io.StringIO(table.csv()))][1:] == ["15.0", "20.0", "none"]
    assert [table.sort_value(r, 1) for r in range(3)] == ["15.0", "20.0", ""]


def test_the_accuracies_of_schemes_that_are_not_tuned_say_so(tmp_path, write_run):
    reason = "report: {untuned: As printed.}"
    bands = ("10 MHz", "20 MHz")
    schemes = load_schemes([write_run(tmp_path / b, bandwidth=b, extra=reason) for b in bands])
    tables = sweep_pivots(schemes, swept_keys(schemes))
    said = [t.name for t in tables if t.caption.endswith("accuracies: As printed.")]
    assert said == ["accuracy-by-bandwidth"]
